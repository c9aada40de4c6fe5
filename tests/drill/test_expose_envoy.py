"""A gateway's numbers in Envoy's words, beside what a real Envoy answered."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from drill.expose.envoy import Cluster, Listener, page
from drill.gateway_times import TimesTold
from exporter.dialects.envoy import EnvoyDialect
from exporter.dialects.gateway_dialect import Asked
from exporter.exposition import Reader
from exporter.gateway_sample import Outcome

REAL = (Path(__file__).resolve().parents[1] / "fixtures" / "envoy" / "1.40.0.prom").read_text()
LISTENER = Listener(rq_total=18, rq_2xx=7, rq_4xx=2, rq_5xx=5, rq_rx_reset=1, rq_active=3, rate_limited=2)
CLUSTERS = (
    Cluster(
        "engine_0", rq_total=12, answers=((504, 1), (200, 7)), rq_timeout=1, rq_active=3, most_requests=4
    ),
    Cluster("engine_1", answers=((503, 4),), cx_connect_fail=4, ejections=1, ejected=1, most_requests=4),
)
"""The story of the recorded page."""


def test_the_recorded_story_is_told_line_for_line_in_the_recorded_order() -> None:
    real = REAL.splitlines()
    told = page(LISTENER, CLUSTERS).splitlines()
    missing = [line for line in told if line not in real]
    assert missing == []
    assert [line for line in real if line in set(told)] == told


def test_the_sidecar_reads_a_gateways_numbers_in_it() -> None:
    gateway = Listener(
        rq_total=100, rq_2xx=70, rq_4xx=9, rq_5xx=11, rq_rx_reset=4, rq_active=6, rate_limited=8
    )
    engines = Cluster(
        "engines",
        rq_total=90,
        answers=((200, 70), (400, 1), (503, 4), (504, 7)),
        rq_timeout=7,
        rq_tx_reset=11,
        rq_active=6,
        endpoints=3,
        ejected=1,
        most_requests=6,
    )
    dialect = EnvoyDialect()
    readings = Reader(dialect.interpret).read(page(gateway, [engines]).encode())
    sample = dialect.sample(readings, Asked("gateway"), at=0.0, read_seconds=0.0)
    assert (sample.requests_total, sample.upstream_requests_total, sample.backends) == (100, 90, 3)
    assert (sample.inflight, sample.upstream_inflight, sample.pending) == (6, 6, 0)
    assert {kind: count for kind, count in sample.outcomes_total if count} == {
        Outcome.OK: 70,
        Outcome.CLIENT_ERROR: 1,
        Outcome.REJECTED: 8,
        Outcome.TIMEOUT: 7,
        Outcome.SERVER_ERROR: 4,
        Outcome.CLIENT_LEFT: 4,
    }
    assert [breaker.kind for breaker in sample.breakers if breaker.is_open] == ["requests"]


def test_histograms_are_told_bucket_for_bucket_as_the_recorded_ones_are() -> None:
    request = TimesTold((2, 3, 6, 7, *[9] * 6, *[10] * 10), 2103.998)
    upstream = TimesTold((2, 4, 6, 6, *[7] * 16), 28.681)
    told = page(
        replace(LISTENER, times=request), [replace(CLUSTERS[0], times=upstream), CLUSTERS[1]]
    ).splitlines()
    histograms = [line for line in told if "_rq_time" in line and "_rq_timeout" not in line]
    real = [line for line in REAL.splitlines() if "envoy_server_live" in line or line in histograms]
    assert [line for line in told if "_sum{" not in line and line in real] == real
    # both sums, which a real one writes to 28 places
    assert len([line for line in histograms if line not in real]) == 2


def test_without_a_token_bucket_there_is_nothing_of_one() -> None:
    assert "rate_limit" not in page(Listener(has_bucket=False), ())


def test_an_upstream_that_is_full_says_so() -> None:
    told = page(Listener(), [Cluster("engine_0", rq_active=4, rq_pending_overflow=9, most_requests=4)])
    assert 'envoy_cluster_circuit_breakers_default_rq_open{envoy_cluster_name="engine_0"} 1\n' in told
    assert 'envoy_cluster_circuit_breakers_default_remaining_rq{envoy_cluster_name="engine_0"} 0\n' in told
    assert 'envoy_cluster_upstream_rq_pending_overflow{envoy_cluster_name="engine_0"} 9\n' in told
