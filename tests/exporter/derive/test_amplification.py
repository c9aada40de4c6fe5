"""Attempts over successes, against clients that ask again until they are served or give up."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.derive.amplification import AMPLIFICATION_PHENOMENON, AMPLIFICATION_SECONDS
from exporter.gateway_sample import GatewaySample
from tests.support.derive import last, run
from tests.support.gateways import gateway, outcomes

NAME = "retry_amplification_ratio"


def told(first: dict[str, float], then: dict[str, float], **fields: float) -> float | None:
    """What is said a window after ``first``, when it has become ``then``."""
    samples = [
        gateway(
            float(at),
            outcomes_total=outcomes(**(first if at == 0 else then)),
            **{name: (0.0 if at == 0 else value) for name, value in fields.items()},
        )
        for at in range(int(AMPLIFICATION_SECONDS) + 1)
    ]
    return last(AMPLIFICATION_PHENOMENON, samples).get(NAME)


def test_is_1_where_each_request_is_asked_once() -> None:
    assert told({"ok": 5}, {"ok": 25}) == 1.0


def test_every_attempt_counts_whoever_refused_it_and_however_it_ended() -> None:
    then = {"ok": 10, "rejected": 10, "timeout": 4, "client_left": 3, "overflow": 2, "server_error": 1}
    assert told({}, then) == pytest.approx(3.0)


def test_the_gateways_own_retries_are_attempts_too() -> None:
    assert told({}, {"ok": 10}, retries_total=5.0) == pytest.approx(1.5)


def test_where_the_gateway_counts_no_retries_what_it_sent_tells_of_them() -> None:
    assert told({}, {"ok": 10, "rejected": 2}, upstream_requests_total=15.0) == pytest.approx(1.5)
    assert told({}, {"ok": 10, "rejected": 8}, upstream_requests_total=15.0) == pytest.approx(1.8)


def test_a_request_that_the_client_got_wrong_is_no_attempt_at_a_success() -> None:
    assert told({}, {"ok": 10, "client_error": 90}) == 1.0


def test_without_a_success_it_is_the_number_of_attempts() -> None:
    assert told({"ok": 9}, {"ok": 9, "timeout": 40}) == 40.0


def test_while_nothing_ends_it_is_absent() -> None:
    assert told({"ok": 9}, {"ok": 9}) is None


def test_a_window_that_is_not_over_gives_nothing() -> None:
    samples = [gateway(float(at), outcomes_total=outcomes(ok=float(at))) for at in range(50)]
    assert all(NAME not in each for each in run(AMPLIFICATION_PHENOMENON, samples))


def test_counters_set_back_cost_one_rise() -> None:
    counts = [*range(100, 130), *range(40)]
    samples = [
        gateway(float(at), requests_total=float(n), outcomes_total=outcomes(ok=float(n), rejected=float(n)))
        for at, n in enumerate(counts)
    ]
    assert last(AMPLIFICATION_PHENOMENON, samples)[NAME] == pytest.approx(2.0)


@given(st.integers(0, 2**32), st.floats(0.05, 0.95))
def test_clients_that_ask_again_until_they_are_served_are_told_by_their_attempts(
    seed: int, share: float
) -> None:
    """Each second some ask; of their attempts a ``share`` succeeds, the others come again a second later."""
    chance = random.Random(seed)  # noqa: S311 - repeatable on purpose, guards nothing
    attempts = successes = 0
    again = 0
    samples: list[GatewaySample] = []
    for at in range(int(AMPLIFICATION_SECONDS) + 1):
        now = 0 if at == 0 else 5 + again
        served = sum(chance.random() < share for _ in range(now))
        again = now - served
        attempts, successes = attempts + now, successes + served
        counts = outcomes(ok=float(successes), rejected=float(attempts - successes))
        samples.append(gateway(float(at), outcomes_total=counts))
    assert last(AMPLIFICATION_PHENOMENON, samples)[NAME] == pytest.approx(attempts / max(1, successes))
