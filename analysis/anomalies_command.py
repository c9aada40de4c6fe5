"""``thrashold anomalies SOURCE...``: what was unusual, where, since when and how far."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from analysis.match_option import match_option
from exporter.ending import leave
from exporter.usage import FiniteRange, UsageFailure

if TYPE_CHECKING:
    from analysis.unusual import Look

_SCHEMES = ("tcp://", "tls://")
_MISSING = "anomalies needs pandas, scipy and others: pip install 'thrashold[analysis]'"


@dataclass(frozen=True, slots=True)
class Range:
    """What of each source is looked at: seconds since the epoch, None: from its beginning, to its end."""

    start: float | None
    end: float | None
    step_seconds: float | None
    matchers: tuple[str, ...] = ()


@click.command()
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option(
    "--start",
    metavar="TIME",
    help="ISO 8601, seconds since the epoch, or -2h: before --end, of a server before now.",
)
@click.option("--end", metavar="TIME", help="The same; of a server by default now.")
@click.option(
    "--step",
    metavar="SECONDS",
    type=FiniteRange(min=0, min_open=True),
    help="Between instants that are looked at.  [default: the source's own]",
)
@match_option
@click.option("--json", "wants_json", is_flag=True, help="The same as one JSON object.")
@click.option(
    "--html",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A page with charts as well, in one file that needs nothing else.",
)
@click.option(
    "--scheduler",
    metavar="tcp://HOST:PORT",
    help="A Dask scheduler, whose workers read and judge a source each.",
)
def anomalies(  # noqa: PLR0913, PLR0917 - one each for click's options
    sources: tuple[str, ...],
    start: str | None,
    end: str | None,
    step: float | None,
    matchers: tuple[str, ...],
    wants_json: bool,  # noqa: FBT001 - click calls by name
    html: Path | None,
    scheduler: str | None,
) -> None:
    """Say what was unusual in each SOURCE: where, since when, how far from usual, and what moved first.

    A SOURCE is the URL of a Prometheus-compatible server, a recorder's file, a dump with timestamps, Parquet, or the
    folder of a drill's run. Exit code 0: all were looked at, whatever was found; 1: one couldn't be read.
    """
    if scheduler is not None and not scheduler.startswith(_SCHEMES):
        raise UsageFailure(f"--scheduler {scheduler}: a Dask scheduler is tcp://HOST:PORT or tls://HOST:PORT")
    if html is not None and not html.resolve().parent.is_dir():
        raise UsageFailure(f"--html {html}: there is no folder {html.resolve().parent}")
    try:
        leave(
            _told(
                sources, _range(sources, start, end, step, matchers), scheduler, html, wants_json=wants_json
            )
        )
    except ImportError as error:
        raise click.ClickException(f"{_MISSING} ({error})") from error


def _range(
    sources: Sequence[str], start: str | None, end: str | None, step: float | None, matchers: tuple[str, ...]
) -> Range:
    from analysis.history.reading import parse_range  # noqa: PLC0415 - --help needs click alone

    try:
        since, until = parse_range(start, end, ends_now=all("://" in each for each in sources))
    except ValueError as error:
        raise UsageFailure(str(error)) from error
    return Range(since, until, step, matchers)


def _told(
    sources: Sequence[str], asked: Range, scheduler: str | None, html: Path | None, *, wants_json: bool
) -> int:
    from analysis import unusual_words as words  # noqa: PLC0415 - --help needs click alone
    from analysis.fleet import FleetError, here, over  # noqa: PLC0415
    from analysis.history.history import HistoryError  # noqa: PLC0415
    from analysis.history.reading import source_shown  # noqa: PLC0415
    from analysis.unusual import looked_at  # noqa: PLC0415

    function: Callable[[str], Look] = partial(
        looked_at,
        start=asked.start,
        end=asked.end,
        step_seconds=asked.step_seconds,
        matchers=asked.matchers,
    )
    if scheduler is None:
        results = here(function, sources)
    else:
        # workers stand in other folders
        whole = [each if "://" in each else str(Path(each).absolute()) for each in sources]
        results = over(scheduler, function, whole)
    found: dict[int, Look] = {}
    problems: list[tuple[str, str]] = []
    try:
        with click.progressbar(
            results, length=len(sources), label="reads and judges", file=sys.stderr, hidden=_hidden()
        ) as bar:
            for place, result in bar:
                source = source_shown(sources[place])
                if isinstance(result, HistoryError):
                    problems.append((source, str(result)))
                elif isinstance(result, Exception):
                    problems.append((source, f"{source}: {type(result).__name__}: {result}"))
                else:
                    found[place] = result
    except FleetError as error:
        raise click.ClickException(str(error)) from error
    looks = [found[place] for place in sorted(found)]
    if html is not None:
        _written(html, looks, problems)
    if wants_json:
        click.echo(words.as_json(looks, problems))
    elif looks:
        click.echo("\n\n".join(words.text(look) for look in looks))
    for _, problem in problems:
        click.echo(f"Error: {problem}", err=True)
    return 1 if problems else 0


def _hidden() -> bool:
    return not sys.stderr.isatty()


def _written(path: Path, looks: Sequence[Look], problems: Sequence[tuple[str, str]]) -> None:
    from analysis.unusual_page import page  # noqa: PLC0415 - bokeh takes a second to load

    try:
        path.write_text(page(looks, problems), encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{path}: can't be written: {error.strerror}") from error
    click.echo(f"charts: {path}", err=True)
