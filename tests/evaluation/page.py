"""``docs/evaluation.md``, from verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from alerts.catalogue import ALERTS
from tests.evaluation.bars import Verdict
from tests.evaluation.live_figures import (
    LEAD_ON_A_RAMP_SECONDS,
    MOST_NOTIFICATIONS,
    PAGE_WITHIN_SECONDS,
    SLOW_SECONDS,
)
from tests.evaluation.reach import UNREACHED

_HEAD = f"""# The pack over the drill

Written by `make eval`, which fails where a bar is missed. Each run of the drill is scraped every 15 s and loaded into a
real Prometheus, which evaluates every rule as it is shipped each 15 s; scrapes and evaluations begin at other moments
for each seed. What fires goes through a real Alertmanager with `deploy/prometheus/alertmanager.example.yml`, all its
durations divided by 30, and what a receiver gets is counted: pages, warnings, and what says that they are over. What
still fires at a run's end goes on for three minutes.

| bar | |
|---|---|
| nothing is wrong (`benign-day`, `peak`) | no page |
| something is | an alert of that cause fires and is told; what else is told is a consequence |
| `overload` | nobody is paged but of an objective that is missed |
| the same with less load, which fills pools and keeps the objective | no page |
| `incident` | the right page within {PAGE_WITHIN_SECONDS:.0f} s of the first swap-in or repeat preemption |
| | before p99 TPOT passes {SLOW_SECONDS:g} s, and {LEAD_ON_A_RAMP_SECONDS:.0f} s before on a ramp |
| | at most {MOST_NOTIFICATIONS} notifications, and no all-clear that is taken back |
| recordings of a real engine under contention | cache pressure at most |

The bar about p99 TPOT is judged to the letter: from the onset on, in each second that the sidecar recorded, whatever
made it. It is missed where prefills (on V0 of prompts computed whole) hold up decodes before anything is preempted: no
rule about swapping can come before that, and users feel it all the same. So the same is told beside it from the
first preemption on, which is what that page can be about.

What else is told than an alert of what is wrong is a consequence where the pack names it as one and what explains it
fired too; an objective that is missed, where the recording says so; or a warning that much is asked for.

Times are after the onset. `told` reached somebody; `silent` fired and was explained by what did, or is for nobody.
"""
_HOW_SOON = (
    "| run | first swap-in or repeat preemption | first page | right page"
    f" | p99 TPOT above {SLOW_SECONDS:g} s | bar | the same from the first preemption on | bar |"
)


def page(verdicts: Sequence[Verdict]) -> str:
    """All of it."""
    false_pages = sum(verdict.pages for verdict in verdicts if verdict.onset is None)
    missed = [verdict for verdict in verdicts if verdict.missed]
    quiet = sum(verdict.onset is None for verdict in verdicts)
    lines = [
        _HEAD,
        (
            f"{len(verdicts)} runs, {quiet} of them with nothing wrong; {false_pages} false pages;"
            f" {len(missed)} runs that miss a bar."
        ),
        "",
        "| run | own alert | first page | pages | notifications | told | silent |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [_row(verdict) for verdict in verdicts]
    incidents = [verdict for verdict in verdicts if verdict.title.startswith("incident")]
    if incidents:
        lines += [
            "",
            "## How soon",
            "",
            _HOW_SOON,
            "|---|---|---|---|---|---|---|---|",
            *(
                f"| {each.title} | {_at(each.thrash)} | {_named(each.first_page)} | {_at(each.right_page)}"
                f" | {_at(each.ever_slow)} | {_before(each, each.ever_slow)}"
                f" | {_at(each.slow)} | {_before(each, each.slow)} |"
                for each in incidents
            ),
        ]
    loaded = [verdict for verdict in verdicts if "overload" in verdict.title]
    if loaded:
        lines += [
            "",
            "## Load that the objective is kept under, and load beyond",
            "",
            "An objective of 99 % allows one late first token in a hundred. As recorded each second:",
            "",
            "| run | fullest KV pool | most that wait | late first tokens | pages |",
            "|---|---|---|---|---|",
            *(_load_row(each) for each in loaded),
        ]
    lines += ["", "## Alerts that fire in none of these runs", "", *_silent_everywhere(verdicts)]
    if missed:
        lines += ["", "## Missed", ""]
        lines += [f"- {verdict.title}: {'; '.join(verdict.missed)}" for verdict in missed]
    return "\n".join(lines) + "\n"


def _silent_everywhere(verdicts: Sequence[Verdict]) -> list[str]:
    fired = {name for verdict in verdicts for name in (*verdict.told, *verdict.silent)}
    return [f"- {name}: {UNREACHED.get(name, 'not known why')}" for name in ALERTS if name not in fired]


def _row(verdict: Verdict) -> str:
    cells = (
        verdict.title,
        _named(verdict.own),
        _named(verdict.first_page),
        str(verdict.pages),
        str(verdict.notified),
        ", ".join(verdict.told) or "-",
        ", ".join(verdict.silent) or "-",
    )
    return f"| {' | '.join(cells)} |"


def _load_row(verdict: Verdict) -> str:
    seen = verdict.recorded
    late = f"{seen.late_ratios['ttft']:.1%}" if "ttft" in seen.late_ratios else "-"
    return f"| {verdict.title} | {seen.usage_ratio:.0%} | {seen.waiting:.0f} | {late} | {verdict.pages} |"


def _before(verdict: Verdict, slow: float | None) -> str:
    """Whether the right page came before p99 TPOT was above the line."""
    if slow is None:
        return "met"
    return "met" if verdict.right_page is not None and slow - verdict.right_page >= verdict.lead else "missed"


def _named(told: tuple[str, float] | None) -> str:
    return "-" if told is None else f"{told[0]} {_at(told[1])}"


def _at(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds:.0f} s"
