"""In which bucket of its engine's histogram a quantile lies: all that is measured of it is that bucket.

A value inside is interpolated, and one above the top bucket isn't known at all. A sidecar's signals don't tell bounds:
they are read from the engine's own series where history has them, else they are those that the engine ships with.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

from analysis.incident.subject import Subject
from analysis.incident.unit import seconds
from exporter.derive.latency import QUEUE_P99, TPOT_P50, TPOT_P99, TTFT_P50, TTFT_P99
from exporter.derive.ranks import ENGINE_INFO
from exporter.signal import Signal

_BUCKET = "_bucket"
_GAPS = ("inter_token_latency_seconds", "time_per_output_token_seconds")
_FIRST = ("time_to_first_token_seconds",)
_QUEUE = ("request_queue_time_seconds",)
_SHIPPED: Mapping[str, Mapping[tuple[str, ...], tuple[float, ...]]] = {
    "vllm": {
        _GAPS: (
            *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5),
            *(5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
        ),
        _FIRST: (
            *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
            *(20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
        ),
        _QUEUE: (
            *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
            *(120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
        ),
    }
}
"""Bounds by engine kind, as vLLM ships them: to 0.8.3 the first of the two rows, whose last bound is the top."""
_FAMILIES: Mapping[Signal, tuple[str, ...]] = {
    TPOT_P50: _GAPS,
    TPOT_P99: _GAPS,
    TTFT_P50: _FIRST,
    TTFT_P99: _FIRST,
    QUEUE_P99: _QUEUE,
}
QUANTILES = tuple(_FAMILIES)


@dataclass(frozen=True, slots=True)
class Bucket:
    """Above ``low`` up to ``high``, seconds; ``high`` is infinite above the top bound.

    ``told``: the engine's own series say so; else these are the bounds that its kind ships with.
    """

    low: float
    high: float
    told: bool

    @property
    def words(self) -> str:
        """``10 to 20 s``, or ``> 80 s``."""
        if math.isinf(self.high):
            return f"> {seconds(self.low)}"
        low, high = seconds(self.low), seconds(self.high)
        if low.rpartition(" ")[2] == high.rpartition(" ")[2]:
            low = low.rpartition(" ")[0]
        return f"{low} to {high}"


def bounds(subject: Subject, signal: Signal) -> tuple[tuple[float, ...], bool] | None:
    """Finite bounds of the histogram that a quantile is of, and whether the engine told them; None: not known."""
    families = _FAMILIES.get(signal)
    if families is None:
        return None
    told = {
        float(key.label("le"))
        for key in subject.frame.keys
        if key.name.endswith(_BUCKET)
        and key.label("le")
        and key.name.removesuffix(_BUCKET).rpartition(":")[2] in families
    }
    finite = tuple(sorted(each for each in told if math.isfinite(each)))
    if finite:
        return finite, True
    kinds = {key.label("engine_kind") for key, _ in subject.series(ENGINE_INFO)}
    shipped = _SHIPPED.get(kinds.pop()) if len(kinds) == 1 else None
    return (shipped[families], False) if shipped else None


def bucket(value: float, known: tuple[tuple[float, ...], bool] | None, *, saturated: bool) -> Bucket | None:
    """Where a value lies; None where the bounds aren't known. Saturated: it is the top bound itself, and a floor."""
    if saturated:
        return Bucket(value, math.inf, told=True)
    if known is None:
        return None
    edges, told = known
    # a float32 of a recording may be a hair above the bound that it is
    place = bisect_left(edges, value * (1 - 1e-6))
    return Bucket(edges[place - 1] if place else 0.0, edges[place] if place < len(edges) else math.inf, told)


def saturated_label(signal: Signal) -> str:
    """What ``SATURATED`` calls a quantile."""
    return signal.name.removesuffix("_seconds")
