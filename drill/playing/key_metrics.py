"""The key metrics of an incident before, at and after its peak, as a postmortem lists them.

Everything is what the sidecar's signals say, over the whole fleet: the worst engine's quantiles, sums of sequences,
the busiest GPU's PCIe (both directions together in bytes, the busier direction as a share of its link).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import NamedTuple

from drill.scenarios.scene import Scene
from exporter.snapshot import Snapshot

PHASES = ("baseline", "peak", "after")
_BASELINE_SECONDS = 180.0
_SETTLE_SECONDS = 120.0
"""Until quantiles of a minute and engines that begin empty say something."""


class KeyMetrics(NamedTuple):
    """At one instant, or of a phase; None where nothing tells."""

    tpot_p50_seconds: float | None = None
    tpot_p99_seconds: float | None = None
    sessions: float | None = None
    swapped_sequences: float | None = None
    pcie_bytes_per_second: float | None = None
    pcie_saturation_ratio: float | None = None


class Instant(NamedTuple):
    """One cycle. ``floors``: fields that lie above the engine's top bucket, so that its bound is their figure."""

    seconds: float
    metrics: KeyMetrics
    floors: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Phases:
    """Stretches of a run, in seconds from its beginning: (from, until)."""

    baseline: tuple[float, float]
    peak: tuple[float, float]
    after: tuple[float, float]


def phases_of(scene: Scene) -> Phases:
    """Three minutes before the first onset, what lies between that and the end, and the last three minutes.

    Where these began before the end, only what comes after it, if anything does.
    """
    end = float(scene.seconds)
    onset = min(end, min((each.onset_seconds for each in scene.episodes), default=end / 3))
    over = min(end, max((each.end_seconds for each in scene.episodes), default=2 * end / 3))
    begin = min(_SETTLE_SECONDS, onset / 2)
    return Phases(
        (max(begin, onset - _BASELINE_SECONDS), onset),
        (onset, over),
        (max(over if over < end else onset, end - _BASELINE_SECONDS), end),
    )


def at_instant(snapshot: Snapshot, seconds: float, sessions: float) -> Instant:
    """Of one cycle; ``sessions``: requests of clients in flight."""
    found: dict[str, list[tuple[tuple[str, ...], float]]] = {}
    floors = set()
    for signal, labels, value, is_peak in snapshot.values:
        name = signal.name
        if name in _WANTED and not is_peak:
            found.setdefault(name, []).append((labels, value))
        elif name == _SATURATED and value:
            floors.add(f"{labels[-1]}_seconds")
    return Instant(
        seconds,
        KeyMetrics(
            _largest(found.get("tpot_p50_seconds")),
            _largest(found.get("tpot_p99_seconds")),
            sessions,
            _sum(found.get("swapped_sequences")),
            _largest_of_sums(found.get("pcie_bytes_per_second")),
            _largest(found.get("pcie_saturation_ratio")),
        ),
        _WANTED & floors,
    )


_SATURATED = "quantile_saturated"
_WANTED = frozenset(KeyMetrics._fields)


def of_phases(history: Iterable[Instant], phases: Phases) -> dict[str, KeyMetrics]:
    """The median of each metric in calm phases, its maximum at the peak."""
    rows = [(each.seconds, each.metrics) for each in history]

    def within(span: tuple[float, float]) -> list[KeyMetrics]:
        return [metrics for at, metrics in rows if span[0] < at <= span[1]]

    return {
        "baseline": _medians(within(phases.baseline)),
        "peak": _maxima(within(phases.peak)),
        "after": _medians(within(phases.after)),
    }


def floors_of(history: Iterable[Instant], phases: Phases) -> dict[str, frozenset[str]]:
    """The fields of each phase that are floors: their figure would be larger, were the values at top buckets."""
    rows = list(history)
    said = of_phases(rows, phases)
    raised = of_phases([each._replace(metrics=_raised(each)) for each in rows], phases)
    return {
        phase: frozenset(
            name for name in _WANTED if getattr(said[phase], name) != getattr(raised[phase], name)
        )
        for phase in PHASES
    }


def _raised(instant: Instant) -> KeyMetrics:
    return instant.metrics._replace(**dict.fromkeys(instant.floors, math.inf))


def _columns(rows: list[KeyMetrics]) -> list[list[float]]:
    return [[value for value in column if value is not None] for column in zip(*rows, strict=True)]


def _medians(rows: list[KeyMetrics]) -> KeyMetrics:
    return KeyMetrics(*(median(column) if column else None for column in _columns(rows)))


def _maxima(rows: list[KeyMetrics]) -> KeyMetrics:
    return KeyMetrics(*(max(column) if column else None for column in _columns(rows)))


def _largest(values: list[tuple[tuple[str, ...], float]] | None) -> float | None:
    return max((value for _, value in values), default=None) if values else None


def _sum(values: list[tuple[tuple[str, ...], float]] | None) -> float | None:
    return sum(value for _, value in values) if values else None


def _largest_of_sums(values: list[tuple[tuple[str, ...], float]] | None) -> float | None:
    """Both directions of each GPU together: the first label is the GPU."""
    if not values:
        return None
    rows = sorted(values)
    return max(sum(value for _, value in group) for _, group in groupby(rows, key=lambda row: row[0][0]))
