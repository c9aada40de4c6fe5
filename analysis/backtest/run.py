"""A backtest as it was asked for on the command line: reads what there is to read, and asks whom there is to ask.

Raises UsageFailure for what can't be asked so, HistoryError for what can't be read, click's own for what is missing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import click

from alerts.alert import Expression
from alerts.pack_settings import PackSettings
from analysis.backtest import frames
from analysis.backtest.asked import axes_of, chosen, grids, series_names
from analysis.backtest.frames import Ups
from analysis.backtest.outcome import Backtest, Moment
from analysis.backtest.progress import Progress
from analysis.backtest.sweep import SweepError, Swept, sweep
from analysis.history.history import History, HistoryError
from analysis.history.reading import is_server, read
from exporter.derive.inventory import ENGINE_GPU_INFO
from exporter.usage import UsageFailure

PARSER = "promql_parser"
_DAY_SECONDS = 86_400.0
_FEWEST_INSTANTS = 2


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be tested, over what, and how it is judged."""

    source: str
    start: float | None
    end: float | None
    every_seconds: float
    alerts: tuple[str, ...]
    settings: PackSettings
    moment: Moment
    ups: Ups

    @property
    def is_server(self) -> bool:
        """Whether the source evaluates PromQL itself."""
        return is_server(self.source)

    def span(self) -> tuple[float, float]:
        """What a server is asked for: a day, unless told. Raises UsageFailure."""
        end = time.time() if self.end is None else self.end
        start = end - _DAY_SECONDS if self.start is None else self.start
        if start >= end:
            raise UsageFailure("--start must be before --end")
        return start, end


def swept(asked: Asked, sweeps: Sequence[str]) -> tuple[list[Swept], History]:
    """Each alert's grid, and the history that it was tried on."""
    wanted = grids(sweeps, asked.alerts)
    history = _history(asked, series_names(alert for alert, _ in wanted))
    subjects = frames.subjects_of(history, asked.settings)
    found: list[Swept] = []
    left_out: list[str] = []
    for grid in wanted:
        alert = grid[0]
        assert not isinstance(alert.condition, Expression)  # noqa: S101 - grids refuses those
        lacks = subjects.missing(alert.condition)
        if lacks:
            left_out.append(f"{alert.name}: the history has no {', '.join(lacks)}")
            continue
        axes = axes_of(grid, asked.settings, subjects)
        try:
            with Progress(alert.name) as tell:
                found.append(
                    sweep(
                        alert,
                        axes,
                        subjects,
                        asked.settings,
                        moment=asked.moment,
                        ups=asked.ups,
                        progress=tell,
                    )
                )
        except SweepError as error:
            raise UsageFailure(str(error)) from error
    if not found:
        raise UsageFailure("; ".join(left_out))
    for words in left_out:
        click.echo(f"not swept: {words}", err=True)
    return found, history


def tested(asked: Asked, rules_file: Path | None) -> tuple[Backtest, History | None]:
    """What was found, and the signals it was found in where they were read."""
    if asked.is_server:
        return _on_server(asked, rules_file), None
    if rules_file is not None:
        raise UsageFailure(
            f"--rules are PromQL, which a server evaluates, and {asked.source} is none: let Prometheus have it"
            " (`thrashold recorder export` and promtool tsdb create-blocks-from openmetrics) and give its URL"
        )
    alerts = chosen(asked.alerts, asked.settings)
    if all(isinstance(alert.condition, Expression) for alert in alerts):
        raise UsageFailure(f"{', '.join(alert.name for alert in alerts)}: {frames.NEEDS_A_SERVER}")
    history = _history(asked, series_names(alerts))
    if len(history.frame) < _FEWEST_INSTANTS:
        raise UsageFailure(
            f"--every {asked.every_seconds:g}: that is longer than what {history.source} holds"
        )
    with Progress("backtest") as progress:
        return frames.backtest(history, alerts, asked.settings, ups=asked.ups, progress=progress), history


def drawn(asked: Asked, made: Backtest) -> History | None:
    """The signals of what fired, to be drawn; None where they can't be read, which costs the charts alone."""
    fired = [outcome.rule for outcome in made.outcomes if outcome.alarms]
    names = frozenset(name for rule in fired for name in rule.signals)
    try:
        return _history(asked, names | {ENGINE_GPU_INFO.full_name}) if names else None
    except HistoryError as error:
        click.echo(f"the page has no charts of signals: {error}", err=True)
        return None


def _on_server(asked: Asked, rules_file: Path | None) -> Backtest:
    if find_spec(PARSER) is None:
        raise click.ClickException("PromQL is read with promql-parser: pip install 'thrashold[lint]'")
    # what needs the extra is loaded where it is used
    from analysis.backtest import server  # noqa: PLC0415
    from analysis.backtest.asking import Server  # noqa: PLC0415
    from analysis.backtest.pack_rules import pack_rules  # noqa: PLC0415
    from analysis.backtest.rule_file import RulesError, check_names, read_rule_file  # noqa: PLC0415

    start, end = asked.span()
    try:
        own = None if rules_file is None else read_rule_file(rules_file, asked.alerts)
        alerts = () if own is not None else chosen(asked.alerts, asked.settings)
        with Server(asked.source) as there, Progress("backtest") as progress:
            names = there.names(start, end)
            if own is None:
                rules, left_out = pack_rules(alerts, asked.settings, names, there.shown)
            else:
                rules, left_out = own.asked, ()
                check_names(own, names, there.shown)
            tested = server.backtest(
                there,
                rules,
                start,
                end,
                every_seconds=asked.every_seconds,
                cluster_labels=asked.settings.cluster_labels,
                ups=asked.ups,
                progress=progress,
            )
    except RulesError as error:
        raise UsageFailure(str(error)) from error
    return server.with_left_out(tested, left_out)


def _history(asked: Asked, names: frozenset[str]) -> History:
    start, end = asked.span() if asked.is_server else (asked.start, asked.end)
    with Progress("reading") as progress:
        return read(
            asked.source,
            start,
            end,
            step_seconds=asked.every_seconds,
            names=names,
            progress=lambda share, *_: progress(f"{share:.0%}"),
        )
