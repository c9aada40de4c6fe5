"""Stretches of time in which something is so, from masks over even instants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]


class Span(NamedTuple):
    """Places of instants: from ``begin`` to before ``end``."""

    begin: int
    end: int

    def __contains__(self, place: object) -> bool:
        return isinstance(place, int) and self.begin <= place < self.end

    @property
    def length(self) -> int:
        """How many instants."""
        return self.end - self.begin


def spans(mask: Mask, bridge: int = 0, least: int = 1) -> tuple[Span, ...]:
    """Where it is true, in order; gaps of up to ``bridge`` instants are no gaps, and less than ``least`` is nothing."""
    return tuple(each for each in merged(_runs(mask), bridge) if each.length >= least)


def merged(found: Iterable[Span], bridge: int = 0) -> Iterator[Span]:
    """Spans of several masks as one row; what overlaps, or is at most ``bridge`` apart, is one."""
    last: Span | None = None
    for each in sorted(found):
        if last is not None and each.begin - last.end <= bridge:
            last = Span(last.begin, max(last.end, each.end))
            continue
        if last is not None:
            yield last
        last = each
    if last is not None:
        yield last


def _runs(mask: Mask) -> Iterator[Span]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False]))))
    for begin, end in edges.reshape(-1, 2):
        yield Span(int(begin), int(end))
