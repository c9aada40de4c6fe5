from __future__ import annotations

from dataclasses import replace

import pytest

from drill.breaker import Breaker, BreakerConfig
from drill.gateway import Gateway
from drill.gateway_config import Admission, GatewayConfig, Routing
from drill.gateway_counts import Reject, UpstreamEnd
from drill.serving.content import Segment

PROMPT = (Segment(1, 64),)


def gateway(engines: int = 3, **settings: object) -> Gateway:
    built = Gateway(GatewayConfig(**settings), engines)  # type: ignore[arg-type]
    for index in range(engines):
        built.see(index, serves=True, block_tokens=16, usable_blocks=100, held_blocks=0)
    return built


def offers(built: Gateway, count: int, now: float = 0.0, first: int = 0) -> list[int | Reject]:
    return [built.offer(first + number, PROMPT, now) for number in range(count)]


def test_the_bucket_lets_a_burst_through_and_then_its_rate() -> None:
    built = gateway(rate_per_second=2.0, burst=3.0)
    assert [isinstance(each, int) for each in offers(built, 5)] == [True] * 3 + [False] * 2
    assert built.offer(10, PROMPT, 0.4) is Reject.RATE_LIMITED  # 0.8 of a request so far
    assert isinstance(built.offer(11, PROMPT, 0.5), int)
    assert built.offer(12, PROMPT, 0.5) is Reject.RATE_LIMITED
    assert built.gauges(100.0).bucket_tokens == 3.0
    totals = built.totals()
    assert dict(totals.rejected)[Reject.RATE_LIMITED] == totals.downstream_rq_4xx == 4
    assert totals.downstream_rq_total == 8


def test_a_clamped_bucket_keeps_what_fits_and_refills_at_the_new_rate() -> None:
    built = gateway(rate_per_second=1500.0)
    built.change(replace(built.config, rate_per_second=400.0), 10.0)
    assert built.gauges(10.0).bucket_tokens == 400.0
    assert sum(isinstance(each, int) for each in offers(built, 1000, 10.0)) == 400
    assert sum(isinstance(each, int) for each in offers(built, 1000, 11.0, first=1000)) == 400


def test_no_bucket_limits_nothing() -> None:
    built = gateway()
    assert all(isinstance(each, int) for each in offers(built, 1000))
    assert built.gauges(0.0).bucket_tokens is None


def test_round_robin_passes_over_engines_that_are_out_of_rotation() -> None:
    built = gateway(routing=Routing.ROUND_ROBIN)
    assert offers(built, 4) == [0, 1, 2, 0]
    built.see(1, serves=False, block_tokens=16, usable_blocks=100, held_blocks=0)
    assert offers(built, 4, first=10) == [2, 0, 2, 0]


def test_the_engine_with_least_in_flight_is_taken() -> None:
    built = gateway(routing=Routing.LEAST_IN_FLIGHT)
    assert offers(built, 6) == [0, 1, 2, 0, 1, 2]
    built.end(1, UpstreamEnd.COMPLETED, 1.0)
    built.end(4, UpstreamEnd.COMPLETED, 1.0)
    assert offers(built, 3, first=10) == [1, 1, 2]
    assert built.gauges(1.0).upstream_rq_active == (2, 2, 3)


def test_prompts_that_begin_alike_go_to_one_engine_until_it_has_far_more_than_the_others() -> None:
    built = gateway(8, routing=Routing.PREFIX, prefix_tokens=64, prefix_slack=0.25)
    homes = {built.offer(number, (Segment(number, 64), Segment(5, 100)), 0.0) for number in range(400)}
    assert homes == set(range(8))
    alone = gateway(8, routing=Routing.PREFIX, prefix_tokens=64, prefix_slack=7.9)
    assert len({alone.offer(number, (Segment(3, 64), Segment(number, 99)), 0.0) for number in range(50)}) == 1
    bounded = gateway(8, routing=Routing.PREFIX, prefix_tokens=64, prefix_slack=0.25)
    for number in range(800):
        bounded.offer(number, (Segment(3, 64), Segment(number, 99)), 0.0)
    assert max(bounded.gauges(0.0).upstream_rq_active) <= 1.25 * 100 + 1


def test_an_engine_that_leaves_moves_only_its_own_prefixes() -> None:
    def home(built: Gateway) -> list[int | Reject]:
        return [built.offer(number, (Segment(number, 2000),), 0.0) for number in range(40)]

    whole, short = (gateway(4, routing=Routing.PREFIX, prefix_slack=100.0) for _ in range(2))
    short.see(2, serves=False, block_tokens=16, usable_blocks=100, held_blocks=0)
    for before, after in zip(home(whole), home(short), strict=True):
        assert after != 2
        assert before in (2, after)


def test_limits_in_flight_hold_for_the_fleet_and_for_each_engine() -> None:
    built = gateway(2, max_requests=5, max_engine_requests=2)
    assert offers(built, 5) == [0, 1, 0, 1, Reject.OVERFLOW]
    built.change(replace(built.config, max_engine_requests=None), 0.0)
    assert offers(built, 2, first=10) == [0, Reject.OVERFLOW]
    assert built.totals().downstream_rq_5xx == 2


def test_admission_lets_in_whom_the_free_blocks_will_hold() -> None:
    # 64 + 96 tokens: 10 blocks; of 100 blocks 10 stay free
    built = gateway(1, admission=Admission(expected_output_tokens=96, reserve_ratio=0.1))
    assert offers(built, 10) == [0] * 9 + [Reject.NO_ROOM]
    built.end(0, UpstreamEnd.COMPLETED, 1.0)
    assert offers(built, 2, first=20) == [Reject.NO_ROOM] * 2  # nobody has told yet that its blocks are free
    built.see(0, serves=True, block_tokens=16, usable_blocks=100, held_blocks=0)
    assert offers(built, 2, first=30) == [0, Reject.NO_ROOM]  # eight are on their way still


def test_admission_sees_blocks_that_orphans_hold() -> None:
    built = gateway(1, admission=Admission(expected_output_tokens=96, reserve_ratio=0.0))
    built.see(0, serves=True, block_tokens=16, usable_blocks=100, held_blocks=85)
    assert offers(built, 2) == [0, Reject.NO_ROOM]


def test_a_breaker_opens_after_failures_in_a_row_and_closes_when_one_that_tries_comes_back() -> None:
    built = gateway(1, breaker=BreakerConfig(failures=3, open_seconds=30.0))
    offers(built, 6)
    for number in (0, 1):
        built.end(number, UpstreamEnd.RESET, 1.0)
    built.end(2, UpstreamEnd.COMPLETED, 1.0)
    for number in (3, 4):
        built.end(number, UpstreamEnd.TIMED_OUT, 2.0)
    assert built.gauges(2.0).breaker_open == (False,)
    built.end(5, UpstreamEnd.NO_CONNECTION, 3.0)
    assert built.gauges(3.0).breaker_open == (True,)
    assert built.totals().upstreams[0].ejections == 1
    assert built.offer(10, PROMPT, 32.9) is Reject.NO_ENGINE
    assert [built.offer(11, PROMPT, 33.0), built.offer(12, PROMPT, 33.0)] == [0, Reject.NO_ENGINE]
    built.end(11, UpstreamEnd.RESET, 34.0)
    assert built.offer(13, PROMPT, 63.9) is Reject.NO_ENGINE
    assert built.offer(14, PROMPT, 64.0) == 0
    built.end(14, UpstreamEnd.COMPLETED, 65.0)
    assert built.gauges(65.0).breaker_open == (False,)
    assert all(each == 0 for each in offers(built, 5, 65.0, first=20))


def test_what_was_sent_before_a_breaker_opened_says_nothing_more() -> None:
    breaker = Breaker(BreakerConfig(failures=1, open_seconds=10.0))
    assert not breaker.sent()
    breaker.failed(0.0, trial=False)
    breaker.succeeded(trial=False)
    assert breaker.is_open
    assert breaker.sent()
    breaker.failed(5.0, trial=False)
    breaker.abandoned(trial=True)
    assert breaker.opened == 1
    assert breaker.lets_through(10.0)


def test_an_engine_refused_by_its_breaker_leaves_the_others() -> None:
    built = gateway(2, breaker=BreakerConfig(failures=1))
    assert offers(built, 2) == [0, 1]
    built.end(0, UpstreamEnd.NO_CONNECTION, 0.0)
    assert offers(built, 3, first=10) == [1, 1, 1]


@pytest.mark.parametrize(
    ("how", "downstream", "upstream"),
    [
        (UpstreamEnd.COMPLETED, "downstream_rq_2xx", {"rq_2xx"}),
        (UpstreamEnd.REFUSED, "downstream_rq_4xx", {"rq_4xx"}),
        (UpstreamEnd.RESET, "downstream_rq_5xx", {"rq_5xx", "rq_rx_reset"}),
        (UpstreamEnd.NO_CONNECTION, "downstream_rq_5xx", {"rq_5xx", "cx_connect_fail"}),
        (UpstreamEnd.TIMED_OUT, "downstream_rq_5xx", {"rq_5xx", "rq_timeout", "rq_tx_reset"}),
        (UpstreamEnd.CLIENT_LEFT, "downstream_rq_rx_reset", {"rq_tx_reset"}),
    ],
)
def test_each_end_is_counted_where_envoy_counts_it(
    how: UpstreamEnd, downstream: str, upstream: set[str]
) -> None:
    built = gateway(1)
    built.offer(0, PROMPT, 0.0)
    built.end(0, how, 1.0)
    totals = built.totals()
    names = ("downstream_rq_2xx", "downstream_rq_4xx", "downstream_rq_5xx", "downstream_rq_rx_reset")
    assert {name for name in names if getattr(totals, name)} == {downstream}
    counted = totals.upstreams[0]
    risen = {name for name in counted.__dataclass_fields__ if getattr(counted, name)}
    assert risen == {"rq_total"} | upstream
    assert built.gauges(1.0).downstream_rq_active == 0


@pytest.mark.parametrize("wrong", [{"rate_per_second": 0.0}, {"timeout_seconds": -1.0}, {"max_requests": 0}])
def test_settings_that_cannot_be_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        GatewayConfig(**wrong)  # type: ignore[arg-type]


def test_a_breaker_without_failures_or_time_is_refused() -> None:
    with pytest.raises(ValueError, match="breaker"):
        BreakerConfig(failures=0)
