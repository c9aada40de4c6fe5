"""``docs/scoreboard.md``, from ``docs/scoreboard.json`` and what is written down of the peers."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from alerts.causes import Cause
from tests.evaluation.scoreboard_peers import Peer
from tests.evaluation.scoreboard_tools_page import tools_section

OURS = "thrashold"
_SEED = re.compile(r", seed \d+$")
_HEAD = """# Scoreboard

Made by `make scoreboard` from [scoreboard.json](scoreboard.json), which it writes too; don't edit it. Each scenario of
the drill is played, and our pack and those of others are evaluated over it every 15 s by one real Prometheus: ours on
what the sidecar exposes, theirs on the pages of engines and gateway themselves, scraped every 15 s. What fires goes
through one real Alertmanager with our example configuration, which is taken as their routing too: what wakes somebody
is told after 10 s, a warning after two minutes, and of the same in a cluster no more within ten and thirty.

Our pack was made on these scenarios, and theirs weren't: this says what they would have told here, not which is better
elsewhere. What goes wrong in these runs lasts two to ten minutes, so that a rule that waits for ten can fire in few.

- **caught**: somebody was told of anything that began after the fault did, whatever it was called; one that merely
  happened to begin counts too
- **named**: of those, what was told names what is wrong. Latency, queues and full pools are what faults look like
- **in time**: of those caught, before what brought it about was over; thrashing and queues outlast that
- **can't see**: not caught, and no rule of the pack looks at anything that such a fault shows in; the reasons are below
- **false**: told where nothing was wrong, or of what was so before anything was: it would have come anyhow
- **lead**: from what people are told first of the incident to the first sequence that is swapped in or preempted again;
  below 0: after it
"""
_TOTALS = """\
| pack | caught | named | in time | can't see | false pages | false warnings | first told after | lead | notifications |
|---|---|---|---|---|---|---|---|---|---|"""
_MENDED = """\
First told: the median over what is caught. Lead and notifications: of `incident`; that nobody is told of one is no
merit. Mended: the same with metric names that vLLM has, V0 and V1."""
_CELLS = """\
What was told first, and how long after the onset; **bold** where it woke somebody; late: its source was over.
With several seeds: in how many it was told, and the median."""


def page(told: Mapping[str, Any], packs: Sequence[Peer]) -> str:
    """All of it. ``told``: as ``docs/scoreboard.json`` has it."""
    titles = {OURS: OURS, **{peer.name: peer.title for peer in packs}}
    runs = {each["run"] for each in told["outcomes"]}
    seeds = "seed" if told["seeds"] == 1 else "seeds"
    lines = [
        _HEAD,
        f"{len(runs)} runs: each scenario, and the incident on vLLM V1, with {told['seeds']} {seeds}.",
        "",
        _TOTALS,
        *(_total(titles[name], told["packs"][name]) for name in titles),
        "",
        _MENDED,
        "",
        "## Where others are better",
        "",
        *_better(told["outcomes"], titles),
        "",
        "## By scenario",
        "",
        _CELLS,
        "",
        f"| scenario | {' | '.join(titles.values())} |",
        f"|---|{'---|' * len(titles)}",
        *_rows(told["outcomes"], {OURS: {}, **{peer.name: peer.cannot_see for peer in packs}}),
        *(line for peer in packs if not peer.mended for line in _peer(peer)),
        *tools_section(told.get("tools")),
    ]
    return "\n".join(lines) + "\n"


def _total(title: str, figures: Mapping[str, Any]) -> str:
    cells = (
        title,
        f"{figures['caught']} of {figures['faults']}",
        figures["named"],
        figures["in_time"],
        figures["cannot_see"],
        figures["false_pages"],
        figures["false_warnings"],
        _seconds(figures["seconds_to_first"]),
        _seconds(figures["incident_lead_seconds"]),
        figures["incident_notifications"],
    )
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.0f} s"


def _by_scenario(
    outcomes: Sequence[Mapping[str, Any]],
) -> dict[str, dict[str, list[Mapping[str, Any]]]]:
    """Outcomes of all seeds, by scenario and pack."""
    found: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for each in outcomes:
        found.setdefault(_SEED.sub("", each["run"]), {}).setdefault(each["pack"], []).append(each)
    return found


def _rows(outcomes: Sequence[Mapping[str, Any]], unseen: Mapping[str, Mapping[Cause, str]]) -> Iterator[str]:
    for scenario, packs in _by_scenario(outcomes).items():
        cells = [_cell(packs[pack], unseen[pack]) for pack in unseen]
        yield f"| {scenario} | {' | '.join(cells)} |"


def _cell(seeds: Sequence[Mapping[str, Any]], cannot_see: Mapping[Cause, str]) -> str:
    causes = [Cause(cause) for cause in seeds[0]["causes"]]
    if not causes:
        pages = sum(each["false_pages"] for each in seeds)
        warnings = sum(each["false_warnings"] for each in seeds)
        if pages:
            return f"**false pages: {pages}**"
        return f"false warnings: {warnings}" if warnings else "quiet"
    caught = [each for each in seeds if each["caught"]]
    count = f"{len(caught)} of {len(seeds)}: " if len(seeds) > 1 else ""
    if not caught:
        return "can't see it" if all(cause in cannot_see for cause in causes) else "missed"
    names = Counter(", ".join(each["first"]["names"]) for each in caught).most_common(1)[0][0]
    seconds = statistics.median(each["first"]["seconds"] for each in caught)
    woke = any(each["page"] == each["first"] for each in caught)
    late = ", late" if all(each["late"] for each in caught) else ""
    return f"{count}{f'**{names}**' if woke else names} {seconds:.0f} s{late}"


def _better(outcomes: Sequence[Mapping[str, Any]], titles: Mapping[str, str]) -> Iterator[str]:
    """What any of the others does better, told as plainly as the rest."""
    any_found = False
    by_scenario = _by_scenario(outcomes)
    for pack in list(titles)[1:]:
        sooner = [
            f"{scenario} ({_median(packs[pack]):.0f} s, ours {_median(packs[OURS]):.0f} s)"
            for scenario, packs in by_scenario.items()
            if _median(packs[pack]) < _median(packs[OURS])
        ]
        missed = [
            scenario
            for scenario, packs in by_scenario.items()
            if sum(each["caught"] for each in packs[pack]) > sum(each["caught"] for each in packs[OURS])
        ]
        false = [
            scenario for scenario, packs in by_scenario.items() if _false(packs[pack]) < _false(packs[OURS])
        ]
        fewer = [
            f"{scenario} ({_notified(packs[pack])}, ours {_notified(packs[OURS])})"
            for scenario, packs in by_scenario.items()
            if scenario.startswith("incident")
            and all(each["caught"] for each in packs[pack])
            and _notified(packs[pack]) < _notified(packs[OURS])
        ]
        for found, words in (
            (fewer, "takes fewer notifications for"),
            (sooner, "tells first of"),
            (missed, "catches what ours doesn't in"),
            (false, "tells less for nothing in"),
        ):
            if found:
                any_found = True
                yield f"- {titles[pack]} {words} {'; '.join(found)}"
    if not any_found:
        yield "In nothing that is counted here."


def _median(seeds: Sequence[Mapping[str, Any]]) -> float:
    """Of what was told first; infinite where nothing was."""
    caught = [each["first"]["seconds"] for each in seeds if each["caught"]]
    return statistics.median(caught) if caught else float("inf")


def _notified(seeds: Sequence[Mapping[str, Any]]) -> int:
    return max(int(each["notified"]) for each in seeds)


def _false(seeds: Sequence[Mapping[str, Any]]) -> int:
    return sum(each["false_pages"] + each["false_warnings"] for each in seeds)


def _peer(peer: Peer) -> Iterator[str]:
    yield from ("", f"## {peer.title}", "", peer.about, "", f"Source: <{peer.source}>", "", "Taken as:", "")
    yield from (f"- {each}" for each in peer.taken_as)
    yield from ("", "Left out:", "")
    yield from (f"- {name}: {why}" for name, why in peer.not_expressed)
    yield from ("", "Can't see:", "")
    yield from (f"- {cause.value}: {why}" for cause, why in peer.cannot_see.items())
