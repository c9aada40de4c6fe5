"""What of a recording is written elsewhere: a range and some signals, series by series in bounded memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from exporter.recorder_reader import Family, Recording, Series
from exporter.recorder_times import shown
from exporter.signal import PEAK_SUFFIX, PREFIX, Kind

_VALUES_AT_ONCE = 1_500_000
"""Values held in memory, 4 to 16 bytes each; for each such lot the recording is gone through once."""


class UnknownSignalError(ValueError):
    """A signal that a recording doesn't hold, in one line."""


@dataclass(frozen=True, slots=True)
class Selection:
    """From ``start`` to before ``end`` in seconds since the epoch, of ``signals``: all where none is named.

    A signal may be named without its prefix.
    """

    start: float | None = None
    end: float | None = None
    signals: tuple[str, ...] = ()


def selected_families(recording: Recording, selection: Selection) -> list[Family]:
    """The families of a selection by name, whether or not they have a value in its range.

    Raises UnknownSignalError, and RecordingError.
    """
    families = recording.families()
    if not selection.signals:
        return families
    known = {family.name for family in families}
    wanted = {_known(name, known) for name in selection.signals}
    return [family for family in families if family.name in wanted]


def selected(recording: Recording, selection: Selection) -> Iterator[tuple[Family, Series]]:
    """Read the series of a selection that have a value in it, in order of name and labels.

    A counter's value that is negative or no number is left out: nothing was counted there. Raises
    UnknownSignalError and RecordingError.
    """
    families = selected_families(recording, selection)
    cycles = recording.cycles(selection.start, selection.end)
    at_once = max(1, _VALUES_AT_ONCE // max(1, cycles))
    wanted = [(family, number) for family in families for number in family.series]
    for begin in range(0, len(wanted), at_once):
        lot = wanted[begin : begin + at_once]
        found = recording.values({number for _, number in lot}, selection.start, selection.end)
        for family, number in lot:
            times, values = found.pop(number, (array("d"), array("d")))
            if family.kind is Kind.COUNTER and not all(value >= 0 for value in values):
                counted = [value >= 0 for value in values]
                times, values = _where(counted, times), _where(counted, values)
            if times:
                yield family, Series(family.name, family.kind, family.series[number], times, values)


def nothing_in(recording: Recording, selection: Selection) -> str:
    """One line where nothing was recorded in the range of a selection, which says what was; else nothing."""
    found = recording.span()
    if found is None:
        return "nothing is recorded yet"
    first, last = found
    is_outside = (selection.end is not None and selection.end <= first) or (
        selection.start is not None and selection.start > last
    )
    if not is_outside and recording.cycles(selection.start, selection.end):
        return ""
    where = "" if is_outside else ", with gaps"
    return f"nothing was recorded in that time: the recording is from {shown(first)} to {shown(last)}{where}"


def _where(holds: list[bool], values: array[float]) -> array[float]:
    return array(values.typecode, [value for value, kept in zip(values, holds, strict=True) if kept])


def _known(name: str, known: set[str]) -> str:
    for spelling in (name, PREFIX + name):
        if spelling in known:
            return spelling
    base = name.removesuffix(PEAK_SUFFIX)
    if base != name and {base, PREFIX + base} & known:
        raise UnknownSignalError(f"no signal {name} is recorded: peaks are left out; take {base}")
    short = {each.removeprefix(PREFIX) for each in known}
    near = get_close_matches(name.removeprefix(PREFIX), short, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise UnknownSignalError(f"no signal {name} is recorded{hint}")
