"""When an alert fires, of many waits at once: the same as ``analysis.firing.episodes``, for grids of hundreds of them.

    firing_spans(times, holds, [(0.0, 0.0), (60.0, 120.0)])    # of each wait and keep: shape (k, 2)

What only was pending isn't told, and Prometheus isn't started anew meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Spans = NDArray[np.float64]
"""Shape (k, 2): from, to before, in seconds, in order; infinity: it goes on."""
_MILLISECONDS = 1000


def firing_spans(times: ArrayLike, holds: ArrayLike, durations: Sequence[tuple[float, float]]) -> list[Spans]:
    """Of each ``for_seconds`` and ``keep_firing_seconds``. ``times``, ``holds``: shape (n,), as ``episodes`` has them.

    A stretch of results fires by itself if it is as long as ``for``. Stretches with gaps between them that
    ``keep_firing_for`` outlasts make a chain, which fires from its first such stretch on to its end.
    """
    at = np.rint(np.asarray(times, dtype=np.float64) * _MILLISECONDS).astype(np.int64)
    results = np.asarray(holds, dtype=bool)
    edges = np.flatnonzero(np.diff(np.concatenate(([False], results, [False]))))
    begins, ends = edges[::2], edges[1::2]
    return [
        _spans(at, begins, ends, round(wait * _MILLISECONDS), round(keep * _MILLISECONDS))
        for wait, keep in durations
    ]


def _spans(
    at: NDArray[np.int64], begins: NDArray[np.intp], ends: NDArray[np.intp], wait: int, keep: int
) -> Spans:
    if not len(begins):
        return np.empty((0, 2))
    first = np.searchsorted(at, at[begins] + wait)
    fires = first < ends
    over = np.searchsorted(at, at[np.minimum(ends, len(at) - 1)] + keep)
    following = np.append(begins[1:], len(at))
    # the last may outlast the history, which ends no chain that anything follows
    outlasts = over >= following
    chain = np.concatenate(([0], np.cumsum(~outlasts[:-1])))
    firing = np.flatnonzero(fires)
    _, earliest = np.unique(chain[firing], return_index=True)
    starts = firing[earliest]
    last = np.searchsorted(chain, chain[starts], side="right") - 1
    stops = np.where(over[last] < len(at), at[np.minimum(over[last], len(at) - 1)] / _MILLISECONDS, np.inf)
    # of a stretch that goes up to the end there is no end
    stops[ends[last] == len(at)] = np.inf
    return np.column_stack((at[first[starts]] / _MILLISECONDS, stops))


def merged_spans(parts: Sequence[Spans]) -> Spans:
    """All together without overlaps, in order; spans that touch are one."""
    spans = np.concatenate(parts) if parts else np.empty((0, 2))
    if len(spans) < 2:  # noqa: PLR2004 - nothing to merge
        return spans
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    reach = np.maximum.accumulate(spans[:, 1])
    begins = np.flatnonzero(np.append(True, spans[1:, 0] > reach[:-1]))
    ends = np.append(begins[1:], len(spans)) - 1
    return np.column_stack((spans[begins, 0], reach[ends]))
