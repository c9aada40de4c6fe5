"""What has to be said of a reading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from analysis.frame import Frame
from analysis.history.server_asked import Asked, day
from analysis.history.server_columns import mixed
from analysis.history.server_names import Wanted
from analysis.history.server_reader import Told

_MOST_NAMES = 20
_MOST_WARNINGS = 3


def notes_of(
    asked: Asked, which: Wanted, told: Told, intervals: Counter[float], frame: Frame
) -> tuple[str, ...]:
    """One line each of what is missing, doubtful or was left out; ``intervals``: how many series come how often."""
    return tuple(
        note
        for note in (
            *_missing(asked, which, told),
            *_doubtful(told),
            *(f"the server warns: {warning}" for warning in sorted(told.warnings)[:_MOST_WARNINGS]),
            f"how often series come can't be told: taken as each {frame.step_seconds:g} s"
            if told.undated
            else "",
            mixed(intervals, frame.step_seconds),
            *(() if told.stopped else _edges(asked, frame)),
        )
        if note
    )


def _missing(asked: Asked, which: Wanted, told: Told) -> Iterator[str]:
    if told.stopped:
        yield f"not all of it was read: {told.stopped}"
    if told.lost:
        since, until = min(each.start for each in told.lost), max(each.end for each in told.lost)
        yield (
            f"{len(told.lost)} small parts between {day(since / 1000)} and {day(until / 1000)} are missing:"
            f" the server refused them: {told.refusal}"
        )
    if which.raw:
        yield "the server has no signals of thrashold: read the engines' and exporters' own series"
    missing = sorted(set(asked.names or ()) - set(which.names))
    if missing:
        yield f"not there: {', '.join(missing[:_MOST_NAMES])}"


def _doubtful(told: Told) -> Iterator[str]:
    if told.histograms:
        yield "native histograms were left out"
    if told.disordered:
        yield "some samples came twice or out of order; of one time the last was taken"
    if told.strays:
        yield f"{told.strays} samples of other times than were asked for were left out; did a clock jump?"


def _edges(asked: Asked, frame: Frame) -> Iterator[str]:
    """Where a frame is shorter than what was asked for."""
    slack = 2 * frame.step_seconds
    if frame.start - asked.between[0] / 1000 > slack:
        yield f"there is nothing before {day(frame.start)}"
    if min(asked.between[1] / 1000, asked.now) - frame.end > slack:
        yield f"there is nothing from {day(frame.end)} on"
