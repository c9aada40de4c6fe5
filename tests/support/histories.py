"""Histories for analyses: frames from columns, and what becomes of one that is cut, torn or seen in part."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from analysis.frame import Frame, Key, Values
from exporter.signal import Signal

Labelled = tuple[Signal, Mapping[str, str]]


def labelled(signal: Signal, **labels: str) -> Key:
    """A series of a signal, as it is scraped."""
    return Key.of(signal.full_name, labels)


def frame(columns: Mapping[Key, float | Values], seconds: int = 600, start: float = 1.8e9) -> Frame:
    """A value a second; a number alone is that number throughout."""
    values = np.column_stack(
        [np.broadcast_to(np.asarray(each, dtype=float), seconds) for each in columns.values()]
    )
    return Frame(start + np.arange(float(seconds)), 1.0, tuple(columns), values)


def torn(whole: Frame, since: float, until: float) -> Frame:
    """With nothing recorded from one instant to before another."""
    values = whole.values.copy()
    values[(whole.times >= since) & (whole.times < until)] = np.nan
    return Frame(whole.times, whole.step_seconds, whole.keys, values)


def only(whole: Frame, wanted: Callable[[Key], bool]) -> Frame:
    """The series that are wanted."""
    return whole.take([place for place, key in enumerate(whole.keys) if wanted(key)])


def twice(whole: Frame) -> Frame:
    """The same once more, right after it: counters begin anew."""
    again = np.vstack((whole.values, whole.values))
    times = np.concatenate((whole.times, whole.times + len(whole) * whole.step_seconds))
    return Frame(times, whole.step_seconds, whole.keys, again)
