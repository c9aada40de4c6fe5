"""What a recording is, at a glance: when, how much, of whom, and what is missing."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from exporter.recorder_file import size_in_bytes
from exporter.recorder_reader import Family, Recording
from exporter.recorder_times import shown

_GAP_INTERVALS = 2.5
"""A cycle that comes so many intervals after the one before it was not the next one."""
_MOST_GAPS = 10
_WIDTH, _INDENT = 80, 10


@dataclass(frozen=True, slots=True)
class Overview:
    """``interval`` is the usual time between cycles, None where there are fewer than two.

    ``gaps`` are the times between which cycles are missing. Times in seconds since the epoch.
    """

    size: int
    cycles: int
    start: float | None
    end: float | None
    interval: float | None
    gaps: tuple[tuple[float, float], ...]
    families: tuple[Family, ...]

    def told(self, label: str) -> list[str]:
        """What stands in ``label`` of any series."""
        series = (labels for family in self.families for labels in family.series.values())
        return sorted({labels[label] for labels in series if label in labels})


def overview(recording: Recording) -> Overview:
    """Go through a recording. Raises RecordingError."""
    times = recording.times()
    steps = [after - before for before, after in pairwise(times)]
    interval = statistics.median(steps) if steps else None
    return Overview(
        size_in_bytes(recording.path),
        len(times),
        times[0] if times else None,
        times[-1] if times else None,
        interval,
        tuple(_gaps(times, interval)),
        tuple(recording.families()),
    )


def _gaps(times: Sequence[float], interval: float | None) -> Iterator[tuple[float, float]]:
    for before, after in pairwise(times):
        if interval is not None and after - before > _GAP_INTERVALS * interval:
            yield before, after


def lines(of: Overview, now: float, *, with_signals: bool = False) -> Iterator[str]:
    """Say it for people; ``now`` in seconds since the epoch."""
    if of.start is None or of.end is None:
        yield f"nothing recorded yet, {_bytes(of.size)}"
        return
    yield f"from      {shown(of.start)}"
    yield f"to        {shown(of.end)}, {_ago(now - of.end)}"
    yield f"span      {_span(of.end - of.start)}, {_bytes(of.size)}"
    each = f", one each {of.interval:.3g} s" if of.interval else ""
    yield f"cycles    {of.cycles}{each}"
    yield f"gaps      {len(of.gaps) or 'none'}"
    longest = sorted(sorted(of.gaps, key=lambda gap: gap[0] - gap[1])[:_MOST_GAPS])
    for begin, end in longest:
        yield f"          {shown(begin)} to {shown(end)}: {_span(end - begin)}"
    if len(of.gaps) > _MOST_GAPS:
        yield f"          the {_MOST_GAPS} longest of them"
    for name, label in (("engines", "engine"), ("gpus", "uuid"), ("versions", "version")):
        if told := of.told(label):
            yield from textwrap.wrap(
                ", ".join(told),
                _WIDTH,
                initial_indent=name.ljust(_INDENT),
                subsequent_indent=" " * _INDENT,
                break_on_hyphens=False,
                break_long_words=False,
            )
    yield f"signals   {len(of.families)} in {sum(len(family.series) for family in of.families)} series"
    if with_signals:
        yield from _signals(of.families)


def _signals(families: Iterable[Family]) -> Iterator[str]:
    for family in families:
        yield f"  {family.kind.value:<8}{len(family.series):>5}  {family.name}"


def _bytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def _ago(seconds: float) -> str:
    return f"{_span(seconds)} ago" if seconds >= 0 else f"{_span(-seconds)} ahead of this machine's clock"


def _span(seconds: float) -> str:
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 2 * 24:
        return f"{hours // 24} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
