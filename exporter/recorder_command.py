"""``thrashold recorder``: what can be done with a recording afterwards."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import click

from exporter.recorder_export import export_openmetrics
from exporter.recorder_file import RecordingError
from exporter.recorder_info import lines, overview
from exporter.recorder_reader import Recording
from exporter.recorder_selection import Selection, UnknownSignalError, nothing_in
from exporter.recorder_times import instant

_OTHER_FORMATS = frozenset(
    {".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".xlsx", ".feather", ".arrow", ".pq", ".gz"}
)
"""Endings that promise what isn't written: neither OpenMetrics nor, by its one name, Parquet."""


class Instant(click.ParamType[float]):
    """Seconds since the epoch, or a date and time in ISO 8601, which is UTC where it names no zone."""

    name = "time"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Give seconds since the epoch."""
        if isinstance(value, float):
            return value
        try:
            return instant(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.group()
def recorder() -> None:
    """Work with what the flight recorder has recorded."""


@recorder.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--signals", is_flag=True, help="List all signals: kind, number of series, name.")
def info(file: Path, signals: bool) -> None:  # noqa: FBT001 - click calls by name
    """Say what a recording holds.

    Since when, how much, of which engines and GPUs, and what is missing; also while it is being written.
    """
    try:
        with Recording(file) as recording:
            found = overview(recording)
    except RecordingError as error:
        raise click.ClickException(str(error)) from error
    click.echo(str(file))
    for line in lines(found, time.time(), with_signals=signals):
        click.echo(line)


@recorder.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="Where to write: Parquet where it ends in .parquet, else OpenMetrics; - is standard output.",
)
@click.option(
    "--from",
    "start",
    type=Instant(),
    help="Begin here: seconds since the epoch or ISO 8601 (UTC unless it names a zone).",
)
@click.option("--to", "end", type=Instant(), help="End before this.")
@click.option(
    "--signal", "signals", metavar="NAME", multiple=True, help="Only this signal. Repeatable.  [default: all]"
)
def export(file: Path, out: Path, start: float | None, end: float | None, signals: tuple[str, ...]) -> None:
    """Write a recording as OpenMetrics or Parquet.

    Also while it is being written. A sidecar that records gives the same at /api/v1/recorder.
    """
    if out.suffix.lower() in _OTHER_FORMATS:
        raise click.UsageError(
            f"{out}: can't write {out.suffix}; end it in .parquet for Parquet, in .om for OpenMetrics"
        )
    write = _parquet() if out.suffix == ".parquet" else export_openmetrics
    if start is not None and end is not None and start >= end:
        raise click.UsageError("--from must be before --to")
    try:
        with Recording(file) as recording, _written(out) as stream:
            selection = Selection(start, end, signals)
            written = write(recording, stream, selection)
            empty = "" if written else nothing_in(recording, selection)
    except UnknownSignalError as error:
        raise click.UsageError(str(error)) from error
    except RecordingError as error:
        raise click.ClickException(str(error)) from error
    except BrokenPipeError:
        # What is left in the buffer would be tried once more at the end, and complained of.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        raise click.ClickException(f"can't write {out}: {error.strerror}") from error
    else:
        click.echo(f"{written} values" + (f": {empty}" if empty else ""), err=True)


def _parquet() -> Callable[[Recording, BinaryIO, Selection], int]:
    try:
        from exporter.recorder_parquet import export_parquet  # noqa: PLC0415 - an extra, and slow to load
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("pyarrow"):
            raise
        raise click.ClickException(
            "Parquet needs pyarrow, which comes with an extra: pip install 'thrashold[analysis]';"
            " OpenMetrics goes to any other OUT"
        ) from error
    return export_parquet


@contextlib.contextmanager
def _written(out: Path) -> Iterator[BinaryIO]:
    """Open ``out`` for writing; a file is there only once it is whole."""
    if str(out) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if out.exists() and not out.is_file():  # a pipe or a device can't be replaced
        with out.open("wb") as stream:
            yield stream
        return
    with tempfile.NamedTemporaryFile(
        dir=out.absolute().parent, prefix=f".{out.name}.", delete=False
    ) as stream:
        try:
            yield stream  # type: ignore[misc]
            stream.close()
            # a temporary file is its owner's alone; this one is as open as any other that is made here
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(stream.name, 0o666 & ~mask)  # noqa: PTH101
            os.replace(stream.name, out)  # noqa: PTH105
        except BaseException:
            Path(stream.name).unlink()
            raise
