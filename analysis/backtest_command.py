"""``thrashold backtest``: when alerts would have fired on history, how early, and how often for nothing."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import click

from alerts.alert import Expression
from alerts.pack_settings import PackSettings
from analysis.backtest import as_json, frames, text
from analysis.backtest.asked import axes_of, chosen, grids, series_names
from analysis.backtest.frames import Ups
from analysis.backtest.outcome import Backtest, Moment
from analysis.backtest.sweep import SweepError, Swept, sweep
from analysis.history.history import History, HistoryError
from analysis.history.reading import read
from exporter.recorder_command import Instant
from exporter.settings import SettingsError, load
from exporter.usage import UsageFailure

PARSER = "promql_parser"
_DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class _Asked:
    """The command line."""

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
        return self.source.startswith(("http://", "https://"))

    def span(self) -> tuple[float, float]:
        """What a server is asked for: a day, unless told. Raises UsageFailure."""
        end = time.time() if self.end is None else self.end
        start = end - _DAY_SECONDS if self.start is None else self.start
        if start >= end:
            raise UsageFailure("--start must be before --end")
        return start, end


@click.command()
@click.argument("source", metavar="SOURCE")
@click.option(
    "--start",
    type=Instant(),
    help="Begin here: seconds since the epoch or ISO 8601 (UTC unless it names a zone)."
    "  [default: the history's begin; of a server a day before the end]",
)
@click.option("--end", type=Instant(), help="End before this.  [default: the history's end; of a server now]")
@click.option(
    "--every",
    "every_seconds",
    metavar="SECONDS",
    type=click.FloatRange(min=0.1, max=3600),
    default=15.0,
    show_default=True,
    help="How often rules are evaluated, and of a file also how often it is looked at.",
)
@click.option(
    "--alert", "alerts", metavar="NAME", multiple=True, help="Only this alert. Repeatable.  [default: all]"
)
@click.option(
    "--thresholds",
    "thresholds_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Settings of the pack in YAML, as `thrashold alerts render --config` takes them.",
)
@click.option(
    "--rules",
    "rules_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Your own rules in place of the shipped ones; SOURCE has to be a server.",
)
@click.option(
    "--since",
    "moment",
    type=Instant(),
    help="When what alerts had to tell of began: says how much earlier they did, and counts the others as noise.",
)
@click.option(
    "--within",
    "within_seconds",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=3600.0,
    show_default=True,
    help="How far from --since an alert may fire and still be about it.",
)
@click.option(
    "--restart",
    "restarts",
    type=Instant(),
    multiple=True,
    help="Prometheus was started anew then: alerts wait again, or are restored. Repeatable.",
)
@click.option(
    "--sweep",
    "sweeps",
    metavar="WHAT",
    multiple=True,
    help="Try a grid: THRESHOLD=FROM:TO:N (for and keep_firing_for too; several make one grid), or an alert's name.",
)
@click.option("--json", "wants_json", is_flag=True, help="The same as one JSON object.")
@click.option(
    "--html",
    "html_file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write a page with the episodes on the signals' charts.",
)
def backtest(  # noqa: PLR0913, PLR0917 - click gives each by name
    source: str,
    start: float | None,
    end: float | None,
    every_seconds: float,
    alerts: tuple[str, ...],
    thresholds_file: Path | None,
    rules_file: Path | None,
    moment: float | None,
    within_seconds: float,
    restarts: tuple[float, ...],
    sweeps: tuple[str, ...],
    wants_json: bool,  # noqa: FBT001
    html_file: Path | None,
) -> None:
    """Say when each alert would have fired: with its for, keep_firing_for, lookback and what restarts restore.

    SOURCE is history: a recorder's file, a dump in OpenMetrics, Parquet, the folder of a drill's run, or the URL of a
    Prometheus-compatible server, which evaluates PromQL itself.
    """
    if start is not None and end is not None and start >= end:
        raise UsageFailure("--start must be before --end")
    asked = _Asked(
        source,
        start,
        end,
        every_seconds,
        alerts,
        _settings(thresholds_file),
        Moment(moment, within_seconds),
        Ups(tuple(sorted(restarts))),
    )
    if sweeps and rules_file:
        raise UsageFailure("--sweep varies the shipped alerts' thresholds: it can't be had with --rules")
    try:
        if sweeps:
            _show_sweeps(asked, sweeps, html_file, wants_json=wants_json)
        else:
            _show(asked, rules_file, html_file, wants_json=wants_json)
    except HistoryError as error:
        raise click.ClickException(str(error)) from error


def _show(asked: _Asked, rules_file: Path | None, html_file: Path | None, *, wants_json: bool) -> None:
    tested, history = _tested(asked, rules_file)
    if asked.alerts and all(outcome.not_said for outcome in tested.outcomes):
        raise UsageFailure(
            "; ".join(f"{outcome.rule.name}: {outcome.not_said}" for outcome in tested.outcomes)
        )
    if html_file is not None:
        from analysis.backtest.page import backtest_page  # noqa: PLC0415 - charts take a second to load

        _write(html_file, backtest_page(tested, history, asked.moment, asked.settings))
    if wants_json:
        click.echo(json.dumps(as_json.backtest_json(tested, asked.moment), allow_nan=False))
        return
    for line in text.backtest_lines(tested, asked.moment):
        click.echo(line)


def _show_sweeps(asked: _Asked, sweeps: Sequence[str], html_file: Path | None, *, wants_json: bool) -> None:
    wanted = grids(sweeps, asked.alerts)
    history = _history(asked, series_names(alert for alert, _ in wanted))
    subjects = frames.subjects_of(history, asked.settings)
    found: list[Swept] = []
    for grid in wanted:
        alert = grid[0]
        assert not isinstance(alert.condition, Expression)  # noqa: S101 - grids refuses those
        lacks = subjects.missing(alert.condition)
        if lacks:
            raise UsageFailure(f"{alert.name}: the history has no {', '.join(lacks)}")
        axes = axes_of(grid, asked.settings, subjects)
        try:
            with _Progress(alert.name) as tell:
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
    if html_file is not None:
        from analysis.backtest.page import sweep_page  # noqa: PLC0415 - charts take a second to load

        _write(html_file, sweep_page(found, history, asked.moment))
    if wants_json:
        sweeps_told = [as_json.sweep_json(each) for each in found]
        click.echo(
            json.dumps(
                {"source": history.source, "since": asked.moment.at, "sweeps": sweeps_told}, allow_nan=False
            )
        )
        return
    for place, each in enumerate(found):
        if place:
            click.echo()
        for line in text.sweep_lines(each, asked.moment):
            click.echo(line)


def _tested(asked: _Asked, rules_file: Path | None) -> tuple[Backtest, History | None]:
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
    with _Progress("backtest") as progress:
        return frames.backtest(history, alerts, asked.settings, ups=asked.ups, progress=progress), history


def _on_server(asked: _Asked, rules_file: Path | None) -> Backtest:
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
        with Server(asked.source) as there, _Progress("backtest") as progress:
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


def _history(asked: _Asked, names: frozenset[str]) -> History:
    start, end = asked.span() if asked.is_server else (asked.start, asked.end)
    with _Progress("reading") as progress:
        return read(
            asked.source,
            start,
            end,
            step_seconds=asked.every_seconds,
            names=names,
            progress=lambda share, *_: progress(f"{share:.0%}"),
        )


def _settings(file: Path | None) -> PackSettings:
    try:
        return load(PackSettings, file=file, environ=os.environ, prefix="THRASHOLD_ALERTS_")
    except SettingsError as error:
        raise UsageFailure(str(error)) from error


def _write(path: Path, page: str) -> None:
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"can't write {path}: {error.strerror}") from error
    click.echo(f"wrote {path}", err=True)


class _Progress:
    """One line on a terminal that is written over, and nothing anywhere else."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._shown = sys.stderr.isatty()

    def __enter__(self) -> Callable[[str], None]:
        return self._tell

    def __exit__(self, *_: object) -> None:
        if self._shown:
            click.echo("\r\x1b[K", nl=False, err=True)

    def _tell(self, what: str) -> None:
        if self._shown:
            click.echo(f"\r\x1b[K{self._title}: {what}", nl=False, err=True)
