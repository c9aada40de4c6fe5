"""A recorded run of a real engine beside the model under the same arrivals: how far they are apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from drill.serving.engine import Engine
from drill.serving.request import Record, Request
from drill.serving.step_result import StepResult
from drill.serving.step_time import StepTimer


@dataclass(frozen=True, slots=True)
class Observed:
    """What became of one request in the real engine. Seconds since the first arrival.

    None: its client left, or it is there only for what it leaves behind.
    """

    request: Request
    first_token_seconds: float | None
    last_token_seconds: float | None

    @property
    def time_per_output_token_seconds(self) -> float | None:
        """Mean gap between its tokens; None with fewer than two."""
        gaps = self.request.output_tokens - 1
        if self.first_token_seconds is None or self.last_token_seconds is None or gaps < 1:
            return None
        return (self.last_token_seconds - self.first_token_seconds) / gaps


@dataclass(frozen=True, slots=True)
class Reading:
    """The real engine's gauges at one instant, seconds since the first arrival; usage None: not recorded."""

    at: float
    running: float
    waiting: float
    usage_ratio: float | None


@dataclass(frozen=True, slots=True)
class Run:
    """One recorded run: requests by arrival, and readings by time. ``preemptions`` None: not recorded."""

    name: str
    observed: tuple[Observed, ...]
    readings: tuple[Reading, ...]
    preemptions: int | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """A figure of the real engine beside the model's; None: not recorded."""

    real: float
    model: float

    @property
    def error(self) -> float:
        """Relative, signed."""
        return self.model / self.real - 1.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """Means and tails over requests, and the distance of curves.

    ``*_rms`` is the root mean square of the differences at the readings over the largest real value; of usage,
    over 1, a full cache.
    """

    name: str
    end_to_end: Pair
    time_per_output_token: Pair
    time_to_first_token: Pair
    end_to_end_p99: Pair
    time_per_output_token_p99: Pair
    running_rms: float
    waiting_rms: float
    usage_rms: float | None
    preemptions: int
    real_preemptions: int | None


@dataclass(slots=True)
class _Both:
    """A figure of each request, of the real engine and of the model."""

    real: list[float] = field(default_factory=list)
    model: list[float] = field(default_factory=list)

    def add(self, real: float, model: float) -> None:
        self.real.append(real)
        self.model.append(model)

    def mean(self) -> Pair:
        return Pair(fmean(self.real), fmean(self.model))

    def p99(self) -> Pair:
        return Pair(_quantile(self.real, 0.99), _quantile(self.model, 0.99))


@dataclass(frozen=True, slots=True)
class _Gauges:
    """The model's gauges at a reading, over all replicas."""

    running: float
    waiting: float
    usage_ratio: float


def compare(
    run: Run,
    make: Callable[[], Engine],
    replicas: int = 1,
    timer_at: Callable[[float], StepTimer] | None = None,
) -> Comparison:
    """Give the run's arrivals to the model, to the replica that has least to do, and compare.

    As vLLM's own balancer of data-parallel ranks does, one that waits weighs as much as four that run.
    ``timer_at`` tells how long iterations take from a second on, asked before each; None: always as made.
    """
    engines = [make() for _ in range(replicas)]
    records: dict[int, Record] = {}
    arrivals = [each.request for each in run.observed]
    curve = []
    place = 0
    for reading in run.readings:
        while place < len(arrivals) and arrivals[place].arrival_seconds <= reading.at:
            _advance(engines, arrivals[place].arrival_seconds, records, timer_at)
            min(engines, key=_load).submit(arrivals[place])
            place += 1
        _advance(engines, reading.at, records, timer_at)
        gauges = [engine.gauges() for engine in engines]
        curve.append(
            _Gauges(
                sum(each.running for each in gauges),
                sum(each.waiting for each in gauges),
                fmean(each.usage_ratio for each in gauges),
            )
        )
    for request in arrivals[place:]:
        min(engines, key=_load).submit(request)
    _advance(engines, math.inf, records, timer_at)
    return _compared(run, records, curve, sum(engine.totals.preemptions for engine in engines))


def _advance(
    engines: Sequence[Engine],
    until: float,
    records: dict[int, Record],
    timer_at: Callable[[float], StepTimer] | None,
) -> None:
    for engine in engines:
        result = _step(engine, until, timer_at)
        while result is not None:
            records.update({record.request.request_id: record for record in result.finished})
            result = _step(engine, until, timer_at)


def _step(engine: Engine, until: float, timer_at: Callable[[float], StepTimer] | None) -> StepResult | None:
    if timer_at is not None:
        engine.timer = timer_at(engine.now)
    return engine.step(until)


def _load(engine: Engine) -> int:
    waiting, running = engine.queued()
    return 4 * waiting + running


def _compared(run: Run, records: dict[int, Record], curve: list[_Gauges], preemptions: int) -> Comparison:
    times, first, gaps = _Both(), _Both(), _Both()
    for each in run.observed:
        if each.first_token_seconds is None or each.last_token_seconds is None:
            continue
        record = records[each.request.request_id]
        if record.last_token_seconds is None or record.first_token_seconds is None:
            raise ValueError(f"{run.name}: request {each.request.request_id} got no token of the model")
        arrival = each.request.arrival_seconds
        times.add(each.last_token_seconds - arrival, record.last_token_seconds - arrival)
        first.add(each.first_token_seconds - arrival, record.first_token_seconds - arrival)
        real, model = each.time_per_output_token_seconds, record.time_per_output_token_seconds
        if real is not None and model is not None:
            gaps.add(real, model)
    usages = [each.usage_ratio for each in run.readings if each.usage_ratio is not None]
    return Comparison(
        run.name,
        times.mean(),
        gaps.mean(),
        first.mean(),
        times.p99(),
        gaps.p99(),
        _rms([each.running for each in run.readings], [each.running for each in curve]),
        _rms([each.waiting for each in run.readings], [each.waiting for each in curve]),
        _rms(usages, [each.usage_ratio for each in curve], full=1.0)
        if len(usages) == len(run.readings)
        else None,
        preemptions,
        run.preemptions,
    )


def _rms(real: list[float], model: list[float], full: float | None = None) -> float:
    apart = math.sqrt(fmean((one - other) ** 2 for one, other in zip(real, model, strict=True)))
    return apart / (full if full is not None else max(real) or 1.0)


def _quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]
