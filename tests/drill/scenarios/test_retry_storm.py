"""A retry storm: it outlasts its burst, answers fall below what they were, and the gateway and the engine tell why."""

from __future__ import annotations

import pytest

from drill.scenarios.retry_storm import RETRY_STORM
from tests.drill.scenarios.seen import Seen, seen

_MINUTE = 60


@pytest.fixture(scope="module")
def played() -> Seen:
    return seen(RETRY_STORM, 660)


def _answered(played: Seen, start: int, until: int) -> float:
    totals = [moment.second.clients.answered for moment in played.moments]
    return (totals[until - 1] - totals[start - 1]) / (until - start)


def test_answers_fall_below_what_they_were_long_after_the_burst_and_recover_after_the_retries(
    played: Seen,
) -> None:
    before = _answered(played, _MINUTE, played.onset)
    assert _answered(played, played.end - 120, played.end) < 0.8 * before
    assert _answered(played, played.end, played.end + _MINUTE) < 0.5 * before
    assert _answered(played, len(played.moments) - _MINUTE, len(played.moments)) > 0.8 * before


def test_nobody_leaves_before_the_onset(played: Seen) -> None:
    assert played.moments[played.onset - 1].second.clients.timed_out == 0
    assert set(played.signal("retry_amplification_ratio", until=played.onset)) == {1.0}
    assert set(played.signal("client_aborts_total", until=played.onset)) == {0.0}


def test_amplification_is_attempts_over_answers_of_the_trailing_minute(played: Seen) -> None:
    totals = [moment.second.clients for moment in played.moments]
    highest = 0.0
    for second, told in played.pairs("retry_amplification_ratio"):
        if second > _MINUTE:
            now, then = totals[second], totals[second - _MINUTE]
            ended = now.attempts - now.in_flight - (then.attempts - then.in_flight)
            assert told == pytest.approx(max(1.0, ended / max(1, now.answered - then.answered)))
            highest = max(highest, told)
    assert highest > 3


def test_clients_that_left_are_counted_but_for_one_at_most(played: Seen) -> None:
    left = [moment.second.clients.timed_out for moment in played.moments]
    assert left[-1] > 100
    told = played.signal("client_aborts_total")
    assert told == sorted(told)
    # a page that is answered late holds numbers of up to 15 s ago; what ends as its client leaves is none, and an
    # answer that just came may pass for one
    assert 0.99 * left[-15] <= told[-1] <= left[-1] + 1


def test_it_is_no_thrashing_and_there_are_no_orphans(played: Seen) -> None:
    assert 1.0 not in played.signal("thrashing")
    # who has just left is still in the iteration under way
    assert max(played.signal("orphan_sequences")) <= 5.0
