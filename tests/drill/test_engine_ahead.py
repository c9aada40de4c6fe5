"""An engine that looks ahead and is interrupted does what one does that is asked at each moment."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from drill.serving.config import EngineConfig
from drill.serving.engine import Engine
from drill.serving.request import Record, Request
from drill.serving.step_result import StepResult
from tests.drill.engines import SECOND, config, request
from tests.drill.test_engine_invariants import TIMES, configs, workloads

Told = tuple[float | None, ...]
_LAST = 20.0


def told(results: list[StepResult]) -> dict[int, Told]:
    found: dict[int, Told] = {}
    for record in (each for result in results for each in result.finished):
        found[record.request.request_id] = (
            *_times(record),
            len(record.preemptions),
            record.recomputed_tokens,
        )
    return found


def _times(record: Record) -> tuple[float | None, ...]:
    times = (record.scheduled_seconds, record.first_token_seconds, record.last_token_seconds)
    return tuple(None if time is None else round(time, 6) for time in times)


def drive(
    chosen: EngineConfig, requests: list[Request], moments: list[float], *, ahead: float
) -> list[StepResult]:
    """Submits each request at its time, having looked so far ahead; ``moments`` are looked at besides."""
    engine = Engine(chosen, TIMES)
    results: list[StepResult] = []
    for at in sorted({*moments, *(each.arrival_seconds for each in requests)}):
        while engine.look(at + ahead) <= at or ahead == 0.0:
            result = engine.step(at)
            if result is None:
                break
            results.append(result)
        while (result := engine.step(at)) is not None:
            results.append(result)
        for each in requests:
            if each.arrival_seconds == at:
                engine.submit(each)
    while (result := engine.step(_LAST)) is not None:  # what never fits goes on for ever
        results.append(result)
    return results


NEVER_FITS = [
    Request(0, 0.0, 31, 19, abort_seconds=2.0),
    *(Request(number, at, 1, 1) for number, at in ((1, 0.0), (2, 0.375), (3, 0.6875))),
]
"""The first preempts itself and waits for its client to leave, and nobody passes it: the engine idles until then."""


@settings(max_examples=60, deadline=None)
@given(configs(), workloads(), st.lists(st.floats(0, 8), max_size=20), st.sampled_from([0.3, 5.0, 1000.0]))
@example(config(12, reserve_whole_prompt=True, max_sequences=2), NEVER_FITS, [], 5.0)
def test_looking_ahead_changes_nothing(
    chosen: EngineConfig, requests: list[Request], moments: list[float], ahead: float
) -> None:
    near = drive(chosen, requests, moments, ahead=0.0)
    far = drive(chosen, requests, moments, ahead=ahead)
    assert told(far) == told(near)
    for name in ("generated_tokens", "prefill_tokens", "iterations", "swap_in_blocks", "swap_out_blocks"):
        assert sum(getattr(each, name) for each in far) == sum(getattr(each, name) for each in near)


def test_an_engine_that_was_looked_at_takes_who_comes_in_between_with_its_next_iteration() -> None:
    engine = Engine(config(100), SECOND)
    engine.submit(request(1, 4, 50))
    assert engine.look(1000.0) == 1.0
    assert engine.step(1.0) is not None
    assert engine.look(1000.0) == 50.0
    result = engine.step(10.5)
    assert result is not None
    assert (result.iterations, engine.now, engine.in_flight_until) == (9, 10.0, None)
    assert engine.step(10.5) is None
    engine.submit(request(2, 4, 1, at=10.5))
    results = [engine.step(12.0), engine.step(12.0)]
    assert [record.first_token_seconds for each in results if each for record in each.first_tokens] == [12.0]


def test_an_engine_that_stood_still_ends_its_iteration_that_much_later() -> None:
    engine = Engine(config(100), SECOND)
    engine.submit(request(1, 4, 3))
    assert engine.step(0.5) is None
    engine.stand_still(0.5, 60.5)
    assert engine.in_flight_until == 61.0
    results = []
    while (result := engine.step()) is not None:
        results.append(result)
    assert [result.started_seconds for result in results] == [60.0, 61.0]
    assert engine.now == 63.0


def test_an_idle_engine_that_stood_still_begins_afterwards() -> None:
    engine = Engine(config(100), SECOND)
    engine.stand_still(5.0, 20.0)
    engine.submit(request(1, 4, 1, at=8.0))
    result = engine.step(30.0)
    assert result is not None
    assert (result.started_seconds, engine.now) == (20.0, 21.0)
