"""The key metrics of an incident before, at and after its peak, as a postmortem lists them.

Gauges: the median while all was well, the worst while it went on, the median at the end. Counters: what they rose by.
A quantile is told with the bucket that it lies in, and above the top bucket there is no figure but that bucket's floor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.frame import Values
from analysis.incident import measures
from analysis.incident.buckets import QUANTILES, Bucket, bounds, bucket, saturated_label
from analysis.incident.measures import Measure
from analysis.incident.phase import Incident, PhaseName
from analysis.incident.spans import Mask
from analysis.incident.subject import Fold, Subject, folded, rises
from analysis.incident.unit import UNKNOWN, Unit, seconds
from exporter.derive.aborts import CLIENT_ABORTS
from exporter.derive.blocks import KV_BLOCK_TOKENS, KV_BYTES_PER_TOKEN
from exporter.derive.gateway import REQUESTS
from exporter.derive.latency import SATURATED
from exporter.derive.preemption import PREEMPTIONS as PREEMPTED
from exporter.derive.swap import SWAP_BLOCKS_RATE, SWAP_ESTIMATE
from exporter.gateway_sample import Outcome
from exporter.signal import Confidence, Signal

CALM_SECONDS = 180.0
"""What a baseline, and what came after, is the median of."""
REQUESTS_HIT = "client requests hit"
_HIT = frozenset(Outcome) - {Outcome.OK, Outcome.CLIENT_ERROR}
"""Outcomes of requests that got no answer, or none to the end."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure, in base units; None: not known. ``bucket``: of a quantile, where its bounds are known."""

    value: float | None
    bucket: Bucket | None = None

    @property
    def is_floor(self) -> bool:
        """Whether the truth is above it: it lies in the top bucket."""
        return self.bucket is not None and math.isinf(self.bucket.high)


@dataclass(frozen=True, slots=True)
class Row:
    """A metric over an incident. ``note``: what has to be known of the figures, in words."""

    title: str
    signal: Signal
    unit: Unit
    baseline: Cell
    peak: Cell
    after: Cell
    confidence: Confidence
    note: str = ""

    def words(self, cell: Cell) -> str:
        """A figure as the table has it, with its bucket."""
        if cell.value is None:
            return UNKNOWN
        if cell.is_floor:
            return f"> {self.unit.words(cell.value)}"
        return self.unit.words(cell.value) + (f" ({cell.bucket.words})" if cell.bucket else "")

    @property
    def factor(self) -> tuple[float, float] | None:
        """How many times the baseline the peak is: at least, at most (infinite above a top bucket); None: not known."""
        base, peak = self.baseline, self.peak
        if base.value is None or peak.value is None or base.value <= 0 or peak.value <= base.value:
            return None
        if base.bucket is None or peak.bucket is None:
            times = peak.value / base.value
            return times, times
        least = peak.bucket.low / base.bucket.high if math.isfinite(base.bucket.high) else 0.0
        return least, peak.bucket.high / base.bucket.low if base.bucket.low else math.inf

    @property
    def factor_words(self) -> str:
        """``2.9x``; of quantiles what their buckets allow: ``50x to 133x``."""
        found = self.factor
        if found is None:
            return UNKNOWN
        least, most = (Unit.TIMES.words(each) if math.isfinite(each) else "" for each in found)
        if least == most:
            return least
        if found[0] <= 1:
            return UNKNOWN
        return f"{least} to {most}" if most else f"> {least}"


@dataclass(frozen=True, slots=True)
class _Times:
    """Masks of shape (n,): while all was well, while it went on, and afterwards."""

    baseline: Mask
    peak: Mask
    after: Mask


def key_metrics(subject: Subject, incident: Incident) -> tuple[Row, ...]:
    """The table. What no source tells has no row; what was not known in a phase has a cell without a value."""
    times = _times(subject, incident)
    makers: Sequence[Callable[[Subject, _Times], Row | None]] = (
        *(
            _gauge(each)
            for each in (measures.PACE_P99, measures.PACE_P50, measures.FIRST_P99, measures.INTERVAL)
        ),
        *(_gauge(each) for each in (measures.SESSIONS, measures.WAITING, measures.SWAPPED_SEQUENCES)),
        _hit,
        _left,
        _gauge(measures.USAGE),
        _gauge(measures.KV_DEMAND),
        _preempted,
        _swapped_blocks,
        *(_gauge(each) for each in (measures.PCIE_BYTES, measures.PCIE_FULL, measures.TOKENS)),
        *(_gauge(each) for each in (measures.ORPHANED, measures.RETRIES)),
    )
    return tuple(row for make in makers if (row := make(subject, times)) is not None)


def _times(subject: Subject, incident: Incident) -> _Times:
    at, step = subject.frame.times, subject.frame.step_seconds
    begin = incident.begin.at
    end = incident.end.at if incident.end is not None else math.inf
    calm = incident.phase(PhaseName.BASELINE)
    since = max(calm.begin.at, begin - CALM_SECONDS) if calm else begin
    last = subject.frame.end - step
    recovery = incident.phase(PhaseName.RECOVERY)
    over = recovery.begin.at if recovery is not None else end
    after = max(over if math.isfinite(over) else last + step, last - CALM_SECONDS)
    return _Times((at >= since) & (at < begin), (at >= begin) & (at <= min(end, last)), at > after)


def _gauge(measure: Measure) -> Callable[[Subject, _Times], Row | None]:
    return lambda subject, times: _of_measure(measure, subject, times)


def _of_measure(measure: Measure, subject: Subject, times: _Times) -> Row | None:
    values = measure.read(subject)
    if np.isnan(values).all():
        return None
    signal = next((each for each in measure.signals if subject.series(each)), measure.signal)
    known = bounds(subject, signal)
    floors = subject.folded(SATURATED, Fold.MAX, of=saturated_label(signal)) if signal in QUANTILES else None

    def cell(mask: Mask, pick: Callable[[Values], float]) -> Cell:
        there = values[mask]
        if np.isnan(there).all():
            return Cell(None)
        value = pick(there[~np.isnan(there)])
        if known is None and floors is None:
            return Cell(value)
        saturated = False
        if floors is not None:
            # a floor is a figure of the top bucket whoever else is below it
            saturated = bool(
                np.any((floors[mask] > 0) & np.isclose(there, value, rtol=1e-6, equal_nan=False))
            )
        return Cell(value, bucket(value, known, saturated=saturated) if known or saturated else None)

    worst = (lambda each: float(each.min())) if measure.worse < 0 else (lambda each: float(each.max()))
    note = ""
    if known is not None and not known[1]:
        note = "buckets as the engine ships them: the history has none of its own"
    if signal.window_seconds:
        note = f"over {seconds(signal.window_seconds)}" + (f"; {note}" if note else "")
    return Row(
        measure.title,
        signal,
        measure.unit,
        cell(times.baseline, lambda each: float(np.median(each))),
        cell(times.peak, worst),
        cell(times.after, lambda each: float(np.median(each))),
        signal.confidence,
        note,
    )


def _hit(subject: Subject, times: _Times) -> Row | None:
    counted = [rises(values) for key, values in subject.series(REQUESTS) if key.label("outcome") in _HIT]
    return _counted(
        REQUESTS_HIT,
        REQUESTS,
        counted,
        times,
        "ended without a whole answer, as gateways count them",
    )


def _left(subject: Subject, times: _Times) -> Row | None:
    counted = [rises(values) for _, values in subject.series(CLIENT_ABORTS)]
    return _counted("clients that left", CLIENT_ABORTS, counted, times, "as engines tell it")


def _preempted(subject: Subject, times: _Times) -> Row | None:
    return _counted(
        "preemptions", PREEMPTED, [rises(values) for _, values in subject.series(PREEMPTED)], times, "in all"
    )


def _counted(title: str, signal: Signal, rose: Sequence[Values], times: _Times, note: str) -> Row | None:
    if not rose:
        return None
    total = folded(rose, Fold.SUM, len(rose[0]))

    def cell(mask: Mask) -> Cell:
        return Cell(float(np.nansum(total[mask]))) if not np.isnan(total[mask]).all() else Cell(None)

    return Row(
        title,
        signal,
        Unit.COUNT,
        cell(times.baseline),
        cell(times.peak),
        cell(times.after),
        signal.confidence,
        note,
    )


def _swapped_blocks(subject: Subject, times: _Times) -> Row | None:
    """Both directions together; V0 counts none, and an estimate of what went out is doubled: it comes back."""
    counted = subject.series(SWAP_BLOCKS_RATE)
    if counted:
        return _most(
            "KV blocks moved", SWAP_BLOCKS_RATE, [values for _, values in counted], times, "both directions"
        )
    rates = []
    for key, values in subject.series(SWAP_ESTIMATE):
        of_rank = {"engine": key.label("engine"), "rank": key.label("rank")}
        slots = subject.folded(KV_BLOCK_TOKENS, Fold.MAX, **of_rank)
        size = subject.folded(KV_BYTES_PER_TOKEN, Fold.MAX, scope="model", **of_rank)
        known = slots * size
        if np.isnan(known).all():
            return None
        rates.append(2 * rises(values) / float(np.nanmedian(known)) / subject.frame.step_seconds)
    if not rates:
        return None
    return _most(
        "KV blocks moved",
        SWAP_ESTIMATE,
        rates,
        times,
        "the most in a step; both directions, from preemptions",
    )


def _most(title: str, signal: Signal, rates: Sequence[Values], times: _Times, note: str) -> Row:
    total = folded(rates, Fold.SUM, len(rates[0]))

    def cell(mask: Mask, pick: Callable[[Values], float]) -> Cell:
        there = total[mask]
        return Cell(pick(there[~np.isnan(there)])) if not np.isnan(there).all() else Cell(None)

    return Row(
        title,
        signal,
        Unit.PER_SECOND,
        cell(times.baseline, lambda each: float(np.median(each))),
        cell(times.peak, lambda each: float(each.max())),
        cell(times.after, lambda each: float(np.median(each))),
        signal.confidence,
        note,
    )
