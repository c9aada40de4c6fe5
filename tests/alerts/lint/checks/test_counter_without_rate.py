"""counter-without-rate: counters as they stand."""

from __future__ import annotations

import pytest

from tests.alerts.lint.linting import board, finds, finds_in, rules

TOTAL = "vllm:num_preemptions_total"


@pytest.mark.parametrize(
    "expr",
    [
        f"{TOTAL} > 1000",
        f"sum by (pod) ({TOTAL}) > 1000",
        "vllm:e2e_request_latency_seconds_count > 10",
        "thrashold_preemptions_total > 0",
        f"vllm:num_requests_waiting > 5 and {TOTAL} > 5",
    ],
)
def test_a_compared_counter_is_told(expr: str) -> None:
    assert len(finds_in("counter-without-rate", expr)) == 1


@pytest.mark.parametrize(
    "expr",
    [
        f"rate({TOTAL}[5m]) > 1",
        f"{TOTAL} - {TOTAL} offset 5m > 10",
        f"{TOTAL} - ({TOTAL} offset 15m or {TOTAL} * 0) > 0",
        f"absent({TOTAL}) > 0",
        f"count({TOTAL}) > 3",
        f"vllm:num_requests_waiting > 5 unless on (pod) {TOTAL}",
        f"max_over_time({TOTAL}[5m]) > 10",
        f"{TOTAL} / vllm:request_success_total > 3",
        "ceph_pg_total > 10",
        "hadoop_hdfs_bytes_total < 1e9",
        "vllm:num_requests_running > 10",
        f"timestamp({TOTAL}) > 10",
    ],
)
def test_a_difference_a_presence_a_gauge_are_not(expr: str) -> None:
    assert not finds_in("counter-without-rate", expr)


@pytest.mark.parametrize(
    ("kind", "count"), [("timeseries", 1), ("graph", 1), ("heatmap", 1), ("stat", 0), ("table", 0)]
)
def test_a_panel_over_time_shows_no_total(kind: str, count: int) -> None:
    assert len(finds("counter-without-rate", board(TOTAL, kind=kind))) == count


@pytest.mark.parametrize(("kind", "count"), [("bargauge", 1), ("heatmap", 1), ("stat", 0)])
def test_buckets_of_all_time_are_no_distribution(kind: str, count: int) -> None:
    text = board("sum by (le) (vllm:time_to_first_token_seconds_bucket)", kind=kind)
    assert len(finds("counter-without-rate", text)) == count
    text = board("sum by (le) (increase(vllm:time_to_first_token_seconds_bucket[5m]))", kind=kind)
    assert not finds("counter-without-rate", text)


def test_a_recorded_counter_is_the_readers_to_rate() -> None:
    assert not finds("counter-without-rate", rules({"record": "a:b", "expr": f"sum({TOTAL}) > 5"}))
