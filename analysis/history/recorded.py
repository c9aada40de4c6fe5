"""History from a flight recorder's file."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np

from analysis.frame import Frame, Key, grid, on_grid
from analysis.history.history import History, HistoryError
from analysis.history.samples import check_size, no_instant, nothing_between
from exporter.recorder_file import RecordingError
from exporter.recorder_reader import Recording


def recorded(
    path: Path,
    start: float | None = None,
    end: float | None = None,
    *,
    step_seconds: float = 1.0,
    names: Collection[str] | None = None,
) -> History:
    """Read what a recorder kept from ``start`` to before ``end``, of the signals ``names`` as they are scraped.

    Raises HistoryError: no recording, a damaged one, nothing in that range, more than fits into memory.
    """
    try:
        with Recording(path) as recording:
            span = recording.span()
            if span is None:
                raise HistoryError(f"{path}: nothing is recorded yet")
            first = span[0] if start is None else max(start, span[0])
            last = span[1] + step_seconds if end is None else min(end, span[1] + step_seconds)
            series = list(recording.read(first, last, names))
    except RecordingError as error:
        raise HistoryError(str(error)) from error
    if not series:
        raise HistoryError(nothing_between(str(path), span, names))
    # what is folded bears the minute it began in, which may be before its first cycle
    first = max(first, min(each.times[0] for each in series))
    check_size(str(path), round((last - first) / step_seconds) + 1, len(series))
    instants = grid(first, last, step_seconds)
    if not len(instants):
        raise HistoryError(no_instant(str(path), step_seconds))
    values = np.empty((len(instants), len(series)), order="F")
    for place, each in enumerate(series):
        values[:, place] = on_grid(
            instants, np.asarray(each.times), np.asarray(each.values, dtype=np.float64), step_seconds
        )
    keys = tuple(Key.of(each.name, each.labels) for each in series)
    return History(Frame(instants, step_seconds, keys, values), str(path))
