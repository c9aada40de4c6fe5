"""What judges share: a figure, the instants it is made of, and how late the machine itself was."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from tests.real_engine.recorder import Row
from tests.real_engine.recording import Recording

Run = TypeVar("Run")
LAG_SECONDS = 1.0  # a scrape shows a cycle up to a second old


class Figure(NamedTuple):
    """One claim: what was measured, what is true, how far apart they may be, and whether they are."""

    measured: float | None
    truth: float | None
    allowed: str
    holds: bool
    note: str = ""


def judged(makers: Mapping[str, Callable[[Run], Figure]], run: Run) -> dict[str, Figure]:
    """All figures; one that can't be made is one that doesn't hold, and spoils no other."""
    figures = {}
    for name, make in makers.items():
        try:
            figures[name] = make(run)
        except Exception as error:  # noqa: BLE001 - whatever a broken sidecar leads to
            figures[name] = Figure(None, None, "", holds=False, note=repr(error))
    return figures


class Instant(NamedTuple):
    """A scrape and the time its engine numbers are from (at most ``LAG_SECONDS`` before it)."""

    row: Row
    at: float


def within(measured: float | None, happened: float, margin: float, allowed: str, note: str = "") -> Figure:
    """A figure that holds where what was measured is that close to the truth."""
    holds = measured is not None and abs(measured - happened) <= margin
    return Figure(measured, happened, allowed, holds, note)


def instants(run: Recording, begin: str, end: str) -> Iterator[Instant]:
    """Scrapes with an engine sample of their own, read in no more than ``LAG_SECONDS``."""
    return (Instant(row, at) for row, at, took in reads(run, begin, end) if took <= LAG_SECONDS)


def reads(run: Recording, begin: str, end: str) -> Iterator[tuple[Row, float, float]]:
    """Each read of the engine in that time: a scrape that shows it, when it began, and how long it took.

    A stalled engine repeats the last one.
    """
    last, engine = 0.0, str(run.facts["engine"])
    for row in run.between(begin, end):
        age = row.get("source_age_seconds", source=engine)
        if age is None or row.at - age < last + 0.5:
            continue
        last = row.at - age
        yield row, last, row.get("source_read_seconds", source=engine) or 0.0


def late(rows: Sequence[Row]) -> float:
    """Seconds by which this machine delayed what the sidecar says: its longest scrape, and cycles it had to skip."""
    skipped = [count for row in rows if (count := row.get("cycles_skipped_total")) is not None]
    return max((row.seconds for row in rows), default=0.0) + (skipped[-1] - skipped[0] if skipped else 0.0)
