from __future__ import annotations

import pytest

from drill.clients import AttemptOutcome, ClientConfig, Patience
from drill.serving.content import Segment
from drill.workload.arrivals import Turn
from tests.drill.fleet.stories import PATIENT, arrival, brief, ended, fleet

ANSWERED, TIMED_OUT, REFUSED = AttemptOutcome.ANSWERED, AttemptOutcome.TIMED_OUT, AttemptOutcome.REFUSED
STEADY = ClientConfig(
    timeout_seconds=30.0, retries=2, backoff_seconds=1.0, backoff_factor=3.0, jitter_ratio=0.0
)


def test_an_answer_takes_as_many_iterations_as_it_has_tokens() -> None:
    seconds = list(fleet([arrival(0.0), arrival(0.5)]).run(6))
    assert brief(seconds) == [(1, 1, 0.0, 3.0, ANSWERED), (2, 1, 0.5, 4.0, ANSWERED)]
    assert ended(seconds)[0].first_token_seconds == 1.0


def test_who_waited_30_s_leaves_and_comes_again_later_each_time_until_it_gives_up() -> None:
    seconds = list(fleet([arrival(0.0, output=1000)], clients=STEADY, blocks=1000).run(120))
    assert brief(seconds) == [
        (1, 1, 0.0, 30.0, TIMED_OUT),
        (1, 2, 31.0, 61.0, TIMED_OUT),
        (1, 3, 64.0, 94.0, TIMED_OUT),
    ]
    totals = seconds[-1].clients
    assert (totals.requests, totals.attempts, totals.timed_out, totals.given_up) == (1, 3, 3, 1)
    assert totals.in_flight == totals.waiting == 0


def test_a_retry_brings_the_whole_prompt_again() -> None:
    engine = fleet([arrival(0.0, prompt=40, output=1000)], clients=STEADY, prefix_caching=True, blocks=1000)
    seconds = list(engine.run(35))
    results = [result for second in seconds for result in second.engines[0].results]
    assert {each.prompt_tokens for each in ended(seconds)} == {40}
    assert sum(result.prefix_queried_tokens for result in results) == 80
    assert sum(result.prefix_hit_tokens for result in results) == 36  # all but the block with the last token


def test_backoff_is_stretched_and_shortened_by_no_more_than_its_jitter() -> None:
    clients = ClientConfig(timeout_seconds=1.0, retries=1, backoff_seconds=10.0, jitter_ratio=0.2)
    seconds = list(
        fleet([arrival(float(at), output=100) for at in range(20)], clients=clients, blocks=1000).run(60)
    )
    firsts = {each.request: each for each in ended(seconds) if each.number == 1}
    waits = [
        each.started_seconds - firsts[each.request].ended_seconds
        for each in ended(seconds)
        if each.number == 2
    ]
    assert len(waits) == 20
    assert all(8.0 <= wait <= 12.0 for wait in waits)
    assert max(waits) - min(waits) > 1.0


def test_backoff_has_a_limit() -> None:
    clients = ClientConfig(1.0, retries=3, backoff_seconds=5.0, backoff_limit_seconds=7.0, jitter_ratio=0.0)
    seconds = list(fleet([arrival(0.0, output=100)], clients=clients).run(40))
    assert [each.started_seconds for each in ended(seconds)] == [0.0, 6.0, 14.0, 22.0]


def test_a_client_may_wait_for_the_first_token_only() -> None:
    clients = ClientConfig(timeout_seconds=2.5, patience=Patience.FIRST_TOKEN, retries=0)
    seconds = list(fleet([arrival(0.0, output=20)], clients=clients).run(30))
    assert brief(seconds) == [(1, 1, 0.0, 20.0, ANSWERED)]


def test_silence_ends_patience_and_a_token_renews_it() -> None:
    # the second one needs all blocks: it gets its first token only when the first one is done
    clients = ClientConfig(timeout_seconds=5.5, patience=Patience.SILENCE, retries=0)
    seconds = list(
        fleet([arrival(0.0, output=20), arrival(0.2, prompt=36)], clients=clients, blocks=10).run(30)
    )
    assert brief(seconds) == [(2, 1, 0.2, 5.7, TIMED_OUT), (1, 1, 0.0, 20.0, ANSWERED)]


def test_a_session_sends_its_next_turn_after_the_answer_and_a_time_to_think() -> None:
    turns = (Turn(2.0, (Segment(7, 8),), 1), Turn(0.5, (Segment(8, 4),), 1, continues=False))
    seconds = list(fleet([arrival(0.0, prompt=8, output=4, turns=turns)], prefix_caching=True).run(20))
    assert [(each.started_seconds, each.prompt_tokens, each.ended_seconds) for each in ended(seconds)] == [
        (0.0, 8, 4.0),
        (6.0, 8 + 4 + 8, 7.0),
        (7.5, 4, 8.5),
    ]
    assert seconds[4].clients.thinking == 1
    hits = sum(result.prefix_hit_tokens for second in seconds for result in second.engines[0].results)
    assert hits == 8  # of prompt and answer, but the last token of an answer is never computed


def test_a_session_that_has_to_leave_sends_nothing_more() -> None:
    turns = tuple(Turn(1.0, (Segment(each, 4),), 1, continues=False) for each in range(10))
    seconds = list(fleet([arrival(0.0, output=1, turns=turns, leaves_seconds=5.0)]).run(20))
    assert [each.started_seconds for each in ended(seconds)] == [0.0, 2.0, 4.0]
    assert seconds[-1].clients.thinking == 0


@pytest.mark.parametrize(("persistent", "requests"), [(True, 2), (False, 1)])
def test_a_session_goes_on_after_it_gave_up_where_it_is_persistent(
    *, persistent: bool, requests: int
) -> None:
    clients = ClientConfig(timeout_seconds=2.5, retries=0, persistent=persistent)
    turns = (Turn(1.0, (Segment(7, 4),), 1),)
    seconds = list(fleet([arrival(0.0, output=50, turns=turns)], clients=clients).run(10))
    assert seconds[-1].clients.requests == requests


def test_what_the_engine_never_takes_is_refused_and_not_tried_again() -> None:
    seconds = list(fleet([arrival(1.0, prompt=90, output=30)], max_model_tokens=100, clients=STEADY).run(10))
    assert brief(seconds) == [(1, 1, 1.0, 1.0, REFUSED)]
    assert seconds[-1].gateway.downstream_rq_4xx == 1


def test_amplification_is_attempts_over_answers() -> None:
    # one seat: the second one times out behind the first and is answered when it comes again
    clients = ClientConfig(timeout_seconds=10.5, retries=3, backoff_seconds=1.0, jitter_ratio=0.0)
    arrivals = [arrival(0.0, output=10), arrival(0.1, output=10)]
    seconds = list(fleet(arrivals, clients=clients, max_sequences=1).run(40))
    assert [each[4] for each in brief(seconds)] == [ANSWERED, TIMED_OUT, ANSWERED]
    totals = seconds[-1].clients
    assert totals.amplification_ratio == 3 / 2
    assert seconds[3].clients.amplification_ratio is None
    assert seconds[-1].gateway.downstream_rq_total == totals.attempts


@pytest.mark.parametrize(
    "wrong", [{"timeout_seconds": 0.0}, {"retries": -1}, {"jitter_ratio": 1.5}, {"backoff_factor": 0.5}]
)
def test_habits_that_cannot_be_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ClientConfig(**wrong)  # type: ignore[arg-type]


def test_patient_clients_never_leave() -> None:
    assert PATIENT.timeout_seconds is None
    seconds = list(fleet([arrival(0.0, output=200)], blocks=100).run(210))
    assert brief(seconds) == [(1, 1, 0.0, 200.0, ANSWERED)]
