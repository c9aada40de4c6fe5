"""The gateway's signals, over pages captured of a real one and over samples made up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.derive.gateway import GAUGES, TOTALS
from exporter.gateway_sample import Breaker
from exporter.sample import Histogram
from tests.support.derive import INFINITE, last, run
from tests.support.gateways import envoy_page, envoy_sample, gateway, outcomes


def test_totals_begin_at_nothing_and_add_what_ends() -> None:
    names = (
        "01-ok3",
        "02-bucket",
        "03-err",
        "04-reset",
        "05-upstream429-400",
        "06-timeout",
        "07-open",
        "09-left",
    )
    said = run(
        TOTALS, [envoy_sample(envoy_page(f"whole/{name}"), float(at)) for at, name in enumerate(names)]
    )
    assert all(value == 0 for value in said[0].values())
    assert said[-1] == {
        "gateway_requests_total{ok}": 13,
        "gateway_requests_total{client_error}": 1,
        "gateway_requests_total{server_error}": 1,
        "gateway_requests_total{rejected}": 4,
        "gateway_requests_total{timeout}": 1,
        "gateway_requests_total{upstream_reset}": 1,
        "gateway_requests_total{overflow}": 3,
        "gateway_requests_total{client_left}": 1,
        "gateway_retries_total": 2,
        "gateway_upstream_requests_total": 21,
    }


def test_counters_set_back_drop_one_rise_and_never_fall() -> None:
    pages = ("services/01-one-busy", "services/03-reset")
    said = run(TOTALS, [envoy_sample(envoy_page(name), float(at)) for at, name in enumerate(pages)])
    assert said[-1]["gateway_requests_total{ok}"] == 0
    samples = [
        gateway(float(at), requests_total=count, outcomes_total=outcomes(ok=count))
        for at, count in enumerate((10.0, 14.0, 2.0, 5.0))
    ]
    assert [each["gateway_requests_total{ok}"] for each in run(TOTALS, samples)] == [0, 4, 4, 7]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-1, 1)), min_size=2, max_size=40))
def test_a_difference_that_wavers_is_counted_once(steps: list[tuple[int, int]]) -> None:
    """Counters of several threads are not read at one instant: what is told from several may be off by one."""
    total, samples, seen = 50, [], []
    for at, (rise, off) in enumerate(steps):
        total += rise
        seen.append(total + off)
        samples.append(
            gateway(float(at), requests_total=float(total), outcomes_total=outcomes(ok=float(total + off)))
        )
    said = [each["gateway_requests_total{ok}"] for each in run(TOTALS, samples)]
    assert said == sorted(said)
    assert said[-1] == max(seen) - seen[0]


def test_what_the_gateway_does_not_tell_is_absent() -> None:
    assert run(TOTALS, [gateway(0.0), gateway(1.0)])[-1] == {}
    assert last(GAUGES, [gateway(0.0)]) == {"gateway_info{envoy}": 1}


def test_gauges_of_a_real_envoy_at_its_limit() -> None:
    said = last(GAUGES, [envoy_sample(envoy_page("whole/07-open"))])
    assert said.pop("gateway_breaker_open{default,requests}") == 1
    assert said.pop("gateway_info{envoy}") == 1
    assert said.pop("gateway_inflight") == said.pop("gateway_upstream_inflight") == 4
    assert said.pop("gateway_pending") == 0
    assert len(said) == 9
    assert set(said.values()) == {0}


BOUNDS = (0.0005, 0.001, 0.005, 0.01, 1.0, 30.0, INFINITE)


def times(*counts: float) -> Histogram:
    return Histogram(BOUNDS, counts)


def p99(everyone: Histogram, upstream: Histogram, turned_away: float, timeouts: float = 0.0) -> float | None:
    nothing = times(*[0.0] * len(BOUNDS))
    samples = [
        gateway(
            float(at),
            request_time=everyone if at else nothing,
            upstream_time=upstream if at else nothing,
            turned_away_total=turned_away if at else 0.0,
            outcomes_total=outcomes(timeout=timeouts if at else 0.0),
        )
        for at in range(61)
    ]
    return last(GAUGES, samples).get("gateway_reject_p99_seconds")


def test_rejections_are_what_no_engine_answered_and_the_quickest_of_that() -> None:
    # 100 rejections within 5 ms, two timeouts at 30 s, and 50 answers of an engine that take a second
    everyone = times(0, 60, 100, 100, 150, 152, 152)
    upstream = times(0, 0, 0, 0, 50, 50, 50)
    assert p99(everyone, upstream, 100, timeouts=2) == pytest.approx(0.001 + 0.004 * 39 / 40)
    assert p99(everyone, upstream, 0) is None


def test_an_engines_answer_that_stands_a_bucket_higher_at_the_listener_makes_no_negative_count() -> None:
    # both answers of the engine take 9 ms there and 11 ms here
    assert p99(times(10, 10, 10, 10, 12, 12, 12), times(0, 0, 0, 2, 2, 2, 2), 10) == pytest.approx(
        0.0005 * 0.99
    )


def test_rejections_of_the_last_moment_that_the_histogram_lacks_make_no_other_quantile() -> None:
    assert p99(times(0, 0, 10, 10, 10, 10, 10), times(0, 0, 0, 0, 0, 0, 0), 25) == pytest.approx(
        0.001 + 0.004 * 0.99
    )
    assert p99(times(0, 0, 0, 0, 0, 0, 0), times(0, 0, 0, 0, 0, 0, 0), 5) is None


def test_timeouts_are_not_taken_for_rejections_that_the_histogram_lacks_yet() -> None:
    # 25 were turned away and 6 timed out, of which 10 and 6 are merged
    everyone = times(0, 0, 10, 10, 10, 16, 16)
    assert p99(everyone, times(0, 0, 0, 0, 0, 0, 0), 25, timeouts=6) == pytest.approx(0.001 + 0.004 * 0.99)
    assert p99(times(0, 0, 0, 0, 0, 6, 6), times(0, 0, 0, 0, 0, 0, 0), 25, timeouts=6) is None


def test_without_histograms_there_is_no_reject_latency() -> None:
    samples = [gateway(float(at), turned_away_total=float(at)) for at in range(70)]
    assert "gateway_reject_p99_seconds" not in last(GAUGES, samples)


def test_a_breaker_that_flickers_is_told_by_its_share_of_a_minute() -> None:
    breaker = Breaker("default", "requests", is_open=True)
    samples = [gateway(float(at), breakers=(breaker._replace(is_open=at % 4 != 0),)) for at in range(61)]
    assert last(GAUGES, samples)["gateway_breaker_open_ratio{default,requests}"] == pytest.approx(0.75)


def test_a_breaker_that_is_new_has_a_share_of_none_of_what_was_before_it() -> None:
    breaker = Breaker("default", "requests", is_open=True)
    samples = [gateway(float(at), breakers=(breaker,) if at > 45 else ()) for at in range(61)]
    assert last(GAUGES, samples)["gateway_breaker_open_ratio{default,requests}"] == pytest.approx(0.25)
