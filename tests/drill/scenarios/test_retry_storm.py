"""A retry storm: it outlasts its burst, answers fall below what they were, and the gateway and the engine tell why."""

from __future__ import annotations

import pytest

from drill.serving.request import Outcome
from tests.drill.scenarios.played import ALONE, Played, played

_MINUTE = 60


@pytest.fixture(scope="module")
def run() -> Played:
    return played("retry-storm", 660, ALONE)


def _answered(run: Played, start: int, until: int) -> float:
    totals = [second.clients.answered for second in run.seconds]
    return (totals[until - 1] - totals[start - 1]) / (until - start)


def test_answers_fall_below_what_they_were_long_after_the_burst_and_recover_after_the_retries(
    run: Played,
) -> None:
    before = _answered(run, _MINUTE, run.onset)
    assert _answered(run, run.end - 120, run.end) < 0.8 * before
    assert _answered(run, run.end, run.end + _MINUTE) < 0.5 * before
    assert _answered(run, len(run.seconds) - _MINUTE, len(run.seconds)) > 0.8 * before


def test_nobody_leaves_before_the_onset(run: Played) -> None:
    assert run.seconds[run.onset - 1].clients.timed_out == 0
    assert set(run.signal("retry_amplification_ratio", until=run.onset)) == {1.0}
    assert set(run.signal("client_aborts_total", until=run.onset)) == {0.0}


def test_amplification_is_attempts_over_answers_of_the_trailing_minute(run: Played) -> None:
    totals = [second.clients for second in run.seconds]
    highest = 0.0
    for second, told in run.pairs("retry_amplification_ratio"):
        if second > _MINUTE:
            now, then = totals[second], totals[second - _MINUTE]
            ended = now.attempts - now.in_flight - (then.attempts - then.in_flight)
            assert told == pytest.approx(max(1.0, ended / max(1, now.answered - then.answered)))
            highest = max(highest, told)
    assert highest > 3


def test_clients_that_left_are_counted_but_those_whose_answer_was_done(run: Played) -> None:
    left = [second.clients.timed_out for second in run.seconds]
    ends = [
        record.outcome
        for second in run.seconds
        for engine in second.engines
        for result in engine.results
        for record in result.finished
    ]
    # who leaves in the iteration that ends its answer left nothing undone: no abort
    done_anyway = ends.count(Outcome.LENGTH) - run.seconds[-1].clients.answered
    assert left[-1] > 100
    assert done_anyway <= 1
    told = run.signal("client_aborts_total")
    assert told == sorted(told)
    # nobody left in the last 15 s, so that a page that is answered late shows all of them
    assert left[-15] == left[-1]
    assert told[-1] == ends.count(Outcome.ABORT) == left[-1] - done_anyway


def test_it_is_no_thrashing_and_there_are_no_orphans(run: Played) -> None:
    assert 1.0 not in run.signal("thrashing")
    # who has just left is still in the iteration under way
    assert max(run.signal("orphan_sequences")) <= 5.0
