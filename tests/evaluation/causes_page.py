"""The page of the causes over the drill, from what came of each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.evaluation.causes import Outcome

_HEAD = """# Causes over the drill

Written by `python -m tests.evaluation.causes docs/evaluation-causes.md`, which fails where a bar is missed. Every
scenario of the drill is played small with each seed: as it is, moved (another generation, GPU, model, number of
engines or ramp), and with another fault on the same fleet, in turn. The ranking of `analysis/cascade` sees what a
sidecar recorded, and nothing else: with steps of 1 s, with steps of 15 s as Prometheus would have kept it, with the
engines' signals alone, with the GPUs' alone, and with nothing known from a minute before the onset to a minute after.
"""

_LESS = (
    "The same runs. A fault that GPUs or gateways tell of can't be found without them, and then must not be taken for"
    " another: `wrong` are runs whose first cause is none of the true ones. `confidence` is the mean of the first told."
)


def page(
    outcomes: Sequence[Outcome], reached: Mapping[str, tuple[float, float]], seeds: tuple[int, int]
) -> str:
    """As Markdown. ``seeds``: the first and the last."""
    lines = [_HEAD, f"Seeds {seeds[0]} to {seeds[1]}, {len({id(each.case) for each in outcomes})} runs.", ""]
    lines += ["| bar | reached | has to be |", "|---|---|---|"]
    lines += [f"| {name} | {value:.1%} | {least:.0%} |" for name, (value, least) in reached.items()]
    lines += ["", "## Scenario by scenario", ""]
    lines += [
        "`onset` is how many seconds after the truth it was put, the median and the worst of its own cause.",
        "",
        "| scenario | runs | right first cause | all true causes first | onset |",
        "|---|---|---|---|---|",
    ]
    fine = [each for each in outcomes if each.view == "1 s"]
    for name in dict.fromkeys(each.case.scenario for each in fine):
        lines.append(_row(name, [each for each in fine if each.case.scenario == name]))
    lines += ["", "## With less to go by", ""]
    lines += [
        _LESS,
        "",
        "| view | right first cause | nothing or not enough told | wrong | confidence |",
        "|---|---|---|---|---|",
    ]
    for view in dict.fromkeys(each.view for each in outcomes):
        lines.append(_view(view, [each for each in outcomes if each.view == view and each.expected]))
    missed = [each for each in fine if not each.right]
    if missed:
        lines += ["", "## Missed", ""]
        lines += [
            f"- {each.case.title}: {_told(each)} instead of {', '.join(each.expected) or 'nothing'}"
            for each in missed
        ]
    return "\n".join(lines) + "\n"


def _row(name: str, runs: Sequence[Outcome]) -> str:
    own = [
        each.onsets[each.expected[0]] for each in runs if each.expected and each.expected[0] in each.onsets
    ]
    onset = f"{median(own):+.0f} s, {max(own, key=abs):+.0f} s" if own else "-"
    first, every = (
        sum(held) for held in ([each.right_first for each in runs], [each.right for each in runs])
    )
    return f"| {name} | {len(runs)} | {first} | {every} | {onset} |"


def _view(view: str, runs: Sequence[Outcome]) -> str:
    right = sum(each.right_first for each in runs)
    silent = sum(not each.told for each in runs)
    told = [each.confidence for each in runs if each.told]
    sure = f"{sum(told) / len(told):.2f}" if told else "-"
    return f"| {view} | {right} of {len(runs)} | {silent} | {len(runs) - right - silent} | {sure} |"


def _told(outcome: Outcome) -> str:
    return ", ".join(outcome.told[: max(2, len(outcome.expected))]) or "nothing"
