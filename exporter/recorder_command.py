"""``thrashold recorder``: what can be done with a recording afterwards."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import click

from exporter.recorder_export import export_openmetrics
from exporter.recorder_file import RecordingError
from exporter.recorder_reader import Recording
from exporter.recorder_selection import Selection
from exporter.recorder_times import instant


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
@click.option(
    "-o",
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="Where to write; - is standard output.",
)
@click.option("--from", "start", type=Instant(), help="Begin here: seconds since the epoch or ISO 8601.")
@click.option("--to", "end", type=Instant(), help="End before this.")
def export(file: Path, out: Path, start: float | None, end: float | None) -> None:
    """Write a recording as OpenMetrics, also while it is being written."""
    if out.suffix == ".parquet":
        raise click.UsageError(
            "Parquet needs the analysis extra, which is to come; OpenMetrics goes to any other OUT"
        )
    if start is not None and end is not None and start >= end:
        raise click.UsageError("--from must be before --to")
    try:
        with Recording(file) as recording, _written(out) as stream:
            written = export_openmetrics(recording, stream, Selection(start, end))
    except RecordingError as error:
        raise click.ClickException(str(error)) from error
    except BrokenPipeError:
        # What is left in the buffer would be tried once more at the end, and complained of.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        raise click.ClickException(f"can't write {out}: {error.strerror}") from error
    else:
        click.echo(f"{written} values", err=True)


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
