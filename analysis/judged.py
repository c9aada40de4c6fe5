"""What of a series is judged: a counter by its rate, nothing in gaps, and nothing around an engine's restart.

A counter's rate is its rise over half a minute, summed from instant to instant: a fall, an appearance and a gap give
none, so that nobody's ``increase()`` over a restart is an event.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.frame import CLUSTER, Frame, Key
from analysis.noise import Noise, Varies
from exporter.catalogue import SIGNALS
from exporter.derive.headroom import EXHAUSTION
from exporter.derive.inventory import ENGINE_GPU_INFO
from exporter.derive.preemption import RATE_SECONDS, TOKENS_PER_PREEMPTION
from exporter.derive.ranks import RESTARTS

Values = NDArray[np.float64]
_COUNTER, _TOKENS, _PER_SECOND = "_total", "_tokens_total", "_per_second"
_DURATION = "_seconds"
_SIGNALS = {signal.full_name: signal for signal in SIGNALS}
_NOT_JUDGED = ("_info", "_timestamp_seconds", "_created", "_bucket")
_FORECASTS = frozenset({EXHAUSTION.full_name})
"""They come and go, and say themselves how bad it is."""
_LEAST_OF_BYTES = 4e6
_LEAST_OF_DURATIONS = 0.02
_EVEN = (
    ("_ratio", 0.08),
    ("_bytes", _LEAST_OF_BYTES),
    ("_bytes_per_second", _LEAST_OF_BYTES),
    ("_celsius", 8.0),
    ("_watts", 40.0),
)
"""Of units that vary evenly the least change."""
_LEAST_OF_A_COUNT = 4.0
_LEAST_OF_A_STATE = 0.4
_MORE_IS_BETTER = frozenset({TOKENS_PER_PREEMPTION.full_name})
"""That these rise is a return; that a duration falls as well."""
_LATE_SECONDS = 150.0
"""A series that is first known so long after the others may have begun amid an incident: its fall is a return then."""
_BEFORE_RESTART_SECONDS = 60.0
_AFTER_RESTART_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class Judged:
    """Values in the shape of the series, NaN where none is judged, and how they vary.

    ``falls`` and ``rises``: whether that it does so may be an event.
    """

    values: Values
    is_rate: bool
    noise: Noise
    falls: bool = True
    rises: bool = True


def judged(key: Key, values: Values, step_seconds: float) -> Judged | None:
    """Of one series; None where it is text, a time or a forecast."""
    if key.name.endswith(_NOT_JUDGED) or key.name in _FORECASTS:
        return None
    first = int(np.argmax(~np.isnan(values))) if len(values) else 0
    late = first * step_seconds > _LATE_SECONDS
    if key.name.endswith(_COUNTER):
        return Judged(
            rate(values, step_seconds), is_rate=True, noise=_of_a_rate(key, step_seconds), falls=not late
        )
    return Judged(
        values,
        is_rate=False,
        noise=_noise(key.name, values),
        falls=not (key.name.endswith(_DURATION) or late),
        rises=key.name not in _MORE_IS_BETTER,
    )


def rate(values: Values, step_seconds: float) -> Values:
    """Per second, over the half minute that ends at each instant; NaN where less than a sixth of it is known."""
    rises = np.full(len(values), np.nan)
    rises[1:] = np.diff(values)
    rises[rises < 0] = np.nan
    known = ~np.isnan(rises)
    window = max(1, round(RATE_SECONDS / step_seconds))
    sums = _trailing(np.where(known, rises, 0.0), window)
    counts = _trailing(known.astype(np.float64), window)
    enough = (6 * counts >= window) & known
    return np.where(enough, sums / np.maximum(counts, 1.0) / step_seconds, np.nan)


Owner = tuple[str, str]
"""A cluster, empty where none is told, and an engine's name or a GPU's ``uuid`` in it."""


def owner_of(key: Key) -> Owner:
    """Whose a series is; the second is empty where it is of neither an engine nor a GPU."""
    return key.label(CLUSTER), key.label("engine") or key.label("uuid")


def restarts(frame: Frame) -> dict[Owner, NDArray[np.bool_]]:
    """Which instants are around a restart, of each engine and of its GPUs; shape (n,) each.

    An engine has restarted where the sidecar says so, or where one of its own counters fell.
    """
    at: dict[Owner, NDArray[np.bool_]] = {}
    for key, values in frame.columns():
        if key.label("engine") and key.name.endswith(_COUNTER):
            known = np.flatnonzero(~np.isnan(values))
            steps = np.diff(values[known])
            moved = known[1:][steps != 0 if key.name == RESTARTS.full_name else steps < 0]
            if len(moved):
                at.setdefault(owner_of(key), np.zeros(len(frame), dtype=bool))[moved] = True
    around = {
        engine: _around(
            marks,
            int(_BEFORE_RESTART_SECONDS / frame.step_seconds),
            int(_AFTER_RESTART_SECONDS / frame.step_seconds),
        )
        for engine, marks in at.items()
    }
    for key in frame.select(ENGINE_GPU_INFO).keys:
        if owner_of(key) in around:
            around[key.label(CLUSTER), key.label("uuid")] = around[owner_of(key)]
    return around


def _of_a_rate(key: Key, step_seconds: float) -> Noise:
    """Of a counter's: of bytes evenly, of all else by what was counted while it was taken."""
    signal = _SIGNALS.get(key.name)
    if key.name.endswith("_bytes_total"):
        return Noise(Varies.EVENLY, _LEAST_OF_BYTES)
    seconds = max(RATE_SECONDS, step_seconds)
    shows = seconds if signal is not None and signal.by_request else 0.0
    # tokens come with their request: how many of them are one isn't known
    one = 0.0 if key.name.endswith(_TOKENS) else 1 / seconds
    return Noise(Varies.BY_ROOT, _LEAST_OF_A_COUNT / seconds, one, event_seconds=shows)


def _noise(name: str, values: Values) -> Noise:
    """Of a gauge; of one that isn't ours what its name and its values tell."""
    known = values[~np.isnan(values)]
    signal = _SIGNALS.get(name)
    if signal.is_state if signal is not None else ((known == 0) | (known == 1)).all():
        sure = signal is not None and signal.rests_at_zero
        return Noise(Varies.EVENLY, _LEAST_OF_A_STATE, is_sure=sure)
    if signal is not None and signal.rests_at_zero:
        return Noise(Varies.EVENLY, _LEAST_OF_A_STATE, is_sure=True)
    least = signal.least_change if signal is not None else 0.0
    shows = signal.window_seconds if signal is not None and signal.by_request else 0.0
    if name.endswith(_DURATION):
        return Noise(Varies.BY_FACTOR, least or _LEAST_OF_DURATIONS, event_seconds=shows)
    for suffix, of_unit in _EVEN:
        if name.endswith(suffix):
            return Noise(Varies.EVENLY, least or of_unit, event_seconds=shows)
    one = 0.0 if name.endswith(_PER_SECOND) else 1.0
    return Noise(Varies.BY_ROOT, least or _LEAST_OF_A_COUNT, one, event_seconds=shows)


def _trailing(values: Values, window: int) -> Values:
    sums = np.concatenate(([0.0], np.cumsum(values)))
    ends = np.arange(1, len(values) + 1)
    return np.asarray(sums[ends] - sums[np.maximum(ends - window, 0)])


def _around(marks: NDArray[np.bool_], before: int, after: int) -> NDArray[np.bool_]:
    """All instants from ``before`` before a mark to ``after`` after it."""
    result = np.zeros(len(marks), dtype=bool)
    for place in np.flatnonzero(marks).tolist():
        result[max(0, place - before) : place + after + 1] = True
    return result
