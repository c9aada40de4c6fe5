"""``thrashold analyze``: what happened in a history, as a report."""

from __future__ import annotations

import shutil
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from analysis.match_option import match_option
from exporter.usage import UsageFailure

if TYPE_CHECKING:
    from analysis.report.report import Report

_NEEDED = ("numpy", "scipy", "bokeh", "jinja2")
_WIDEST = 120
_EXTRA = "pip install 'thrashold[analysis]'"


@click.command()
@click.argument("source", metavar="SOURCE")
@click.option(
    "--start",
    metavar="TIME",
    help="Begin here: ISO 8601 (UTC), seconds since the epoch, -2h before --end, of a server before now.",
)
@click.option("--end", metavar="TIME", help="End before this.  [default: the history's end; of a server now]")
@match_option
@click.option(
    "-o",
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where report.html, report.md, report.json and postmortem.md go.  [default: report; none with --json]",
)
@click.option("--json", "wants_json", is_flag=True, help="The report as one JSON object on standard output.")
@click.option(
    "--annotations",
    "annotations_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="What people noted, in JSON or YAML: a list of at, text, action, where.",
)
def analyze(  # noqa: PLR0913, PLR0917 - one each for click's options
    source: str,
    start: str | None,
    end: str | None,
    matchers: tuple[str, ...],
    out: Path | None,
    wants_json: bool,  # noqa: FBT001 - click calls by name
    annotations_file: Path | None,
) -> None:
    """Say what happened in a history: phases, figures, causes, what would have paged, and how sure each of it is.

    SOURCE is the URL of a Prometheus-compatible server, a recorder's file, an OpenMetrics dump, Parquet, or the folder
    of a drill's run. Exit code 0: analysed, whatever was found; 1: it can't be; 2: it was asked wrongly.
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise click.ClickException(f"thrashold analyze needs {', '.join(missing)}: {_EXTRA}")
    from analysis import analyze as work  # noqa: PLC0415 - --help needs none of it
    from analysis.history.history import HistoryError  # noqa: PLC0415 - as above
    from analysis.history.reading import is_server  # noqa: PLC0415 - as above
    from analysis.incident.annotations import AnnotationError, read_annotations  # noqa: PLC0415 - as above
    from analysis.report.as_json import as_json  # noqa: PLC0415 - as above

    until = _instant("--end", end, None)
    if until is None and is_server(source):
        until = time.time()
    since = _instant("--start", start, until)
    if since is not None and until is not None and since >= until:
        raise UsageFailure("--start must be before --end")
    try:
        noted = read_annotations(annotations_file) if annotations_file is not None else ()
    except AnnotationError as error:
        raise UsageFailure(str(error)) from error
    try:
        history, made = work.analyze(source, since, until, noted, matchers=matchers, progress=_progress)
        folder = out if out is not None or wants_json else Path("report")
        written = work.write(folder, history, made) if folder is not None else ()
    except HistoryError as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"the report can't be written: {error}") from error
    if wants_json:
        click.echo(as_json(made))
    else:
        click.echo(_summary(made))
    for path in written:
        click.echo(f"{path}", err=wants_json)


def _progress(what: str) -> None:
    """On standard error, where somebody looks at it."""
    if sys.stderr.isatty():
        click.echo(f"  {what} ...", err=True)


def _instant(option: str, text: str | None, end: float | None) -> float | None:
    if text is None:
        return None
    from analysis.history.reading import parse_time  # noqa: PLC0415 - as above

    try:
        return parse_time(text, end)
    except ValueError as error:
        raise UsageFailure(f"{option}: {error}") from error


def _summary(made: Report) -> str:
    """For a terminal: the answer, the sentences, and what is missing."""
    lines = [click.style(made.headline, bold=True), ""]
    for episode in made.episodes:
        if len(made.episodes) > 1:
            lines.append(click.style(episode.headline, bold=True))
        lines += [_wrapped(each.words, f"{number}. ") for number, each in enumerate(episode.statements, 1)]
        lines += [_wrapped(each, "   ") for each in episode.notes]
        lines.append("")
    lines += [_wrapped(each, "note: ") for each in made.caveats]
    return "\n".join(lines).rstrip() + "\n"


def _wrapped(words: str, before: str) -> str:
    """As wide as the terminal, and no wider than is read with ease; 80 columns where there is none."""
    width = min(shutil.get_terminal_size().columns, _WIDEST)
    return click.wrap_text(words, width, before, " " * len(before))
