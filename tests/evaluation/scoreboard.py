"""``python -m tests.evaluation.scoreboard``: our pack and those of others over the drill, in figures.

Exit code 1 where ours misses a fault, or wakes somebody for nothing.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, replace
from typing import Any, TypeVar

import click

from alerts.catalogue import ALERTS
from alerts.causes import Cause
from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.setting import Setting, SettingError
from drill.serving.config import Generation
from tests.evaluation.bars import judge
from tests.evaluation.paging import Notification
from tests.evaluation.playing import ROOT, Case
from tests.evaluation.scoreboard_page import page
from tests.evaluation.scoreboard_peers import peers
from tests.evaluation.scoreboard_runs import OURS, Run, heard, run
from tests.evaluation.scoreboard_score import Heard, Outcome, outcome, total
from tests.evaluation.scoreboard_tools import PACKAGES, ToolsError, installed, said, said_before

Found = TypeVar("Found")
PAGE, FIGURES = ROOT / "docs" / "scoreboard.md", ROOT / "docs" / "scoreboard.json"
_MOVED = (Case("incident", Setting(generation=Generation.V1)),)
"""Beside every scenario as it is: the incident where the names are that rules of others read."""


def cases(seeds: int, only: Sequence[str]) -> list[Case]:
    """All that are played, each with its seeds."""
    return [
        replace(case, setting=replace(case.setting, seed=seed))
        for case in [*(Case(name) for name in SCENARIOS), *_MOVED]
        for seed in range(1, seeds + 1)
        if not only or case.scenario in only
    ]


@click.command()
@click.option("--seeds", default=2, show_default=True, help="Of each scenario.")
@click.option("--tools", is_flag=True, help="Ask vllm-doctor and inferpilot too, which are installed for it.")
@click.argument("only", nargs=-1, metavar="[SCENARIO]...")
def main(seeds: int, only: tuple[str, ...], *, tools: bool) -> None:
    """Play scenarios, evaluate packs over them, and write docs/scoreboard.md and docs/scoreboard.json.

    With SCENARIOs these alone, and the page is printed. What was played and evaluated before is taken from where it is
    kept: after Ctrl-C the same command goes on where it was.
    """
    for name in only:
        if name not in SCENARIOS:
            raise click.UsageError(
                str(SettingError(f"no scenario {name!r}: `thrashold drill list` has them"))
            )
    runs = _runs(cases(seeds, only))
    click.echo("pages, in compressed time", err=True)
    told = figures(seeds, outcomes(runs, heard(runs)))
    told["tools"] = _tools(only, ask=tools)
    written = json.dumps(told, indent=1, sort_keys=True) + "\n"
    if only:
        click.echo(page(json.loads(written), peers()))
    else:
        FIGURES.write_text(written, encoding="utf-8")
        PAGE.write_text(page(json.loads(written), peers()), encoding="utf-8")
        click.echo(PAGE)
    ours = told["packs"][OURS]
    for each in told["outcomes"]:
        if each["pack"] == OURS and (each["false_pages"] or (each["causes"] and not each["caught"])):
            click.echo(f"{each['run']}: {'missed' if each['causes'] else 'a page for nothing'}", err=True)
    if ours["false_pages"] or ours["caught"] < ours["faults"]:
        sys.exit(1)


def outcomes(runs: Sequence[Run], got: Mapping[tuple[str, str], Sequence[Notification]]) -> list[Outcome]:
    """Of each pack and run, ours first."""
    names = {OURS: {name: frozenset({alert.cause}) for name, alert in ALERTS.items()}}
    names |= {peer.name: dict(peer.names) for peer in peers()}
    found = []
    for each in runs:
        title, truth = each.case.title, each.truth
        verdict = judge(title, truth, each.evaluated[OURS], got[OURS, title])
        thrash = None if verdict.thrash is None or truth["onset"] is None else truth["onset"] + verdict.thrash
        for pack, evaluated in each.evaluated.items():
            heard_of = Heard(evaluated.fired, got[pack, title])
            found.append(outcome((pack, title), truth, heard_of, names[pack], thrash))
    return found


def figures(seeds: int, found: Sequence[Outcome]) -> dict[str, Any]:
    """All of it as JSON: totals by pack, and what they are of."""
    unseen: dict[str, Mapping[Cause, str]] = {OURS: {}, **{peer.name: peer.cannot_see for peer in peers()}}
    return {
        "seeds": seeds,
        "packs": {
            pack: asdict(total([each for each in found if each.pack == pack], reasons))
            for pack, reasons in unseen.items()
        },
        "outcomes": [{**asdict(each), "caught": each.caught} for each in found],
    }


def _tools(only: Sequence[str], *, ask: bool) -> dict[str, Any] | None:
    """What tools say of each scenario as it is, or said when they were asked; None: they weren't."""
    wanted = [Case(name) for name in SCENARIOS if not only or name in only]
    if ask:
        try:
            _all(said, wanted, installed())
        except ToolsError as error:
            raise click.ClickException(str(error)) from error
    told = {case.scenario: found for case in wanted if (found := said_before(case)) is not None}
    return {"versions": PACKAGES, "said": told} if told else None


def _runs(wanted: Sequence[Case]) -> list[Run]:
    done = _all(run, wanted)
    return [done[case.title] for case in wanted]


def _all(what: Callable[..., Found], wanted: Sequence[Case], *arguments: object) -> dict[str, Found]:
    """By title, as many at a time as there are cores."""
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        running = {pool.submit(what, case, *arguments): case for case in wanted}
        done = as_completed(running)
        with click.progressbar(done, length=len(wanted), label=what.__name__, file=sys.stderr) as bar:
            return {running[each].title: each.result() for each in bar}


if __name__ == "__main__":
    main()
