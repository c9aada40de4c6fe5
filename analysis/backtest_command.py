"""``thrashold backtest``: when alerts would have fired on history, how early, and how often for nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from alerts.pack_file import read_pack_settings, thresholds_option
from analysis.backtest import as_json, run, text
from analysis.backtest.frames import Ups
from analysis.backtest.outcome import Moment
from analysis.backtest.run import Asked
from analysis.history.history import HistoryError
from analysis.history.reading import parse_range
from exporter.recorder_command import Instant
from exporter.recorder_times import shown
from exporter.usage import FiniteRange, UsageFailure


@click.command()
@click.argument("source", metavar="SOURCE")
@click.option(
    "--start",
    metavar="TIME",
    help="Begin here: ISO 8601 (UTC unless it names a zone), seconds since the epoch, or -2h: before --end, of a server"
    " before now.  [default: the history's begin; of a server a day before the end]",
)
@click.option("--end", metavar="TIME", help="End before this.  [default: the history's end; of a server now]")
@click.option(
    "--every",
    "every_seconds",
    metavar="SECONDS",
    type=FiniteRange(min=0.1, max=3600),
    default=15.0,
    show_default=True,
    help="How often rules are evaluated, and of a file also how often it is looked at.",
)
@click.option(
    "--alert", "alerts", metavar="NAME", multiple=True, help="Only this alert. Repeatable.  [default: all]"
)
@thresholds_option
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
    type=FiniteRange(min=0),
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
    start: str | None,
    end: str | None,
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
    try:
        since, until = parse_range(start, end, ends_now="://" in source)
    except ValueError as error:
        raise UsageFailure(str(error)) from error
    if html_file is not None and not html_file.resolve().parent.is_dir():
        raise UsageFailure(f"--html {html_file}: there is no folder {html_file.resolve().parent}")
    asked = Asked(
        source,
        since,
        until,
        round(every_seconds, 3),  # as finely as servers know time
        alerts,
        read_pack_settings(thresholds_file),
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


def _show(asked: Asked, rules_file: Path | None, html_file: Path | None, *, wants_json: bool) -> None:
    tested, history = run.tested(asked, rules_file)
    if html_file is not None and history is None:
        history = run.drawn(asked, tested)
    _refuse_elsewhere(asked.moment, tested.start, tested.end)
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


def _refuse_elsewhere(moment: Moment, start: float, end: float) -> None:
    """A moment that no alert of this history can be about would make noise of all of them."""
    if (
        moment.at is not None
        and not start - moment.within_seconds <= moment.at <= end + moment.within_seconds
    ):
        raise UsageFailure(
            f"--since {shown(moment.at)} is not within what is tested, {shown(start)} to {shown(end)}"
        )


def _show_sweeps(asked: Asked, sweeps: Sequence[str], html_file: Path | None, *, wants_json: bool) -> None:
    found, history = run.swept(asked, sweeps)
    _refuse_elsewhere(asked.moment, history.frame.start, history.frame.end)
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


def _write(path: Path, page: str) -> None:
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"can't write {path}: {error.strerror}") from error
    click.echo(f"wrote {path}", err=True)
