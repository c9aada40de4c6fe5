"""What pages say of a fault is so: in Prometheus itself it is silent, or wrong, and what stands instead is right."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from alerts.lint.catalogue import CHECKS
from tests.alerts.lint.linting import finds_in
from tests.support.prometheus import tool

SERIES = {
    'sglang:num_retracted_requests_total{pod="a"}': "_x20 1x40",
    'http_requests_total{status="503",pod="a"}': "0+1x60",
    'http_requests_total{status="200",pod="a"}': "0+99x60",
    'up{job="vllm",cluster="east"}': "1x60",
    'up{job="vllm",cluster="west"}': "1x10 _x50",
    'vllm:num_requests_waiting{cluster="east",namespace="serve"}': "60x60",
    'vllm:num_requests_waiting{cluster="west",namespace="serve"}': "0x60",
    'vllm:kv_cache_usage_perc{cluster="east",namespace="serve",pod="a",engine="0"}': "0.25x60",
    'vllm:kv_cache_usage_perc{cluster="east",namespace="serve",pod="a",engine="1"}': "0.25x60",
    'vllm:kv_cache_usage_perc{cluster="west",namespace="serve",pod="b",engine="0"}': "0.95x60",
    'vllm:inter_token_latency_seconds_bucket{le="0.1",pod="a"}': "0x60",
    'vllm:inter_token_latency_seconds_bucket{le="80.0",pod="a"}': "0x60",
    'vllm:inter_token_latency_seconds_bucket{le="+Inf",pod="a"}': "0+9x60",
    'DCGM_FI_PROF_PCIE_TX_BYTES{gpu="0"}': "10 5 10 5 10 5 10 5 10 5 10 5 10 5 10 5 10 5 10 5 10 5 10 5 10 5 10 5 10 5",
    'DCGM_FI_DEV_XID_ERRORS{gpu="0"}': "0x5 31x55",
    'vllm:e2e_request_latency_seconds_sum{pod="a"}': "0+1x50 150+100x10",
    'vllm:e2e_request_latency_seconds_count{pod="a"}': "0+1x50 51+1x10",
    'request_duration_seconds_bucket{le="1.0"}': "0+9x60",
    'request_duration_seconds_bucket{le="+Inf"}': "0+10x60",
}
"""A minute apart. One engine of two clusters is in trouble, and the other one isn't."""

WAITING = "sum by (cluster, namespace) (vllm:num_requests_waiting) > 50"
FULL = "max by (cluster, namespace) (vllm:kv_cache_usage_perc) > 0.9"
ITL = "rate(vllm:inter_token_latency_seconds_bucket[5m])"
ERRORS = 'rate(http_requests_total{status="503"}[5m])'
SEEN = "group by (cluster) (last_over_time(up[{}]))"
E2E = "vllm:e2e_request_latency_seconds"
RETRACTED = "sglang:num_retracted_requests_total"


class Claim(NamedTuple):
    """At a minute, how many series an expression gives, whether or not it should."""

    check: str
    faulty: str
    gives: int
    instead: str
    rightly: int
    minute: int


CLAIMS = (
    Claim(
        "increase-of-newborn",
        f"increase({RETRACTED}[15m]) > 0",
        0,
        f"increase({RETRACTED}[15m]) > 0 or ({RETRACTED} unless {RETRACTED} offset 15m)",
        1,
        25,
    ),
    Claim(
        "unmatched-ratio",
        f"{ERRORS} / rate(http_requests_total[5m]) > 0.99",
        1,
        f"sum({ERRORS}) / sum(rate(http_requests_total[5m])) > 0.99",
        0,
        30,
    ),
    Claim(
        "absent-across-clusters",
        'absent(up{job="vllm"} == 1) or sum by (cluster) (up) > 5',
        0,
        f"{SEEN.format('1h')} unless on (cluster) {SEEN.format('5m')}",
        1,
        30,
    ),
    Claim(
        "join-without-cluster",
        f"{WAITING} and on (namespace) {FULL}",
        1,
        f"{WAITING} and on (cluster, namespace) {FULL}",
        0,
        30,
    ),
    Claim(
        "quantile-without-le",
        f"histogram_quantile(0.99, sum by (pod) ({ITL})) > 1",
        0,
        f"histogram_quantile(0.99, sum by (le, pod) ({ITL})) > 1",
        1,
        30,
    ),
    Claim(
        "threshold-above-buckets",
        f"histogram_quantile(0.99, sum by (le) ({ITL})) > 80.5",
        0,
        f"histogram_quantile(0.99, sum by (le) ({ITL})) > 60",
        1,
        30,
    ),
    Claim("ratio-scale", "vllm:kv_cache_usage_perc > 85", 0, "vllm:kv_cache_usage_perc > 0.85", 1, 30),
    Claim(
        "summed-ratio",
        "sum by (pod) (vllm:kv_cache_usage_perc) > 0.4",
        2,
        "max by (pod) (vllm:kv_cache_usage_perc) > 0.4",
        1,
        30,
    ),
    Claim(
        "gauge-under-rate",
        "increase(DCGM_FI_PROF_PCIE_TX_BYTES[10m]) > 40",
        1,
        "max_over_time(DCGM_FI_PROF_PCIE_TX_BYTES[10m]) > 40",
        0,
        25,
    ),
    Claim(
        "xid-above-zero", "DCGM_FI_DEV_XID_ERRORS > 0", 1, "changes(DCGM_FI_DEV_XID_ERRORS[15m]) > 0", 0, 50
    ),
    Claim(
        "lifetime-average",
        f"{E2E}_sum / {E2E}_count > 30",
        0,
        f"sum(rate({E2E}_sum[5m])) / sum(rate({E2E}_count[5m])) > 30",
        1,
        59,
    ),
    Claim(
        "le-equality",
        'sum(rate(request_duration_seconds_bucket{le="1"}[5m])) > 0',
        0,
        'sum(rate(request_duration_seconds_bucket{le=~"1([.]0)?"}[5m])) > 0',
        1,
        30,
    ),
    Claim("dead-metric", "rate(vllm:num_preemptions[5m]) > -1", 0, f"count({ERRORS}) > 0", 1, 30),
)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.check)
def test_the_linter_finds_what_is_claimed_and_not_what_stands_instead(claim: Claim) -> None:
    assert claim.check in CHECKS
    assert finds_in(claim.check, claim.faulty)
    assert not finds_in(claim.check, claim.instead)


def test_prometheus_shows_it(tmp_path: Path) -> None:
    """``count`` says how many series there are, and is empty where there are none."""
    tests = []
    for claim in CLAIMS:
        for expr, count in ((claim.faulty, claim.gives), (claim.instead, claim.rightly)):
            samples = [{"labels": "{}", "value": count}] if count else []
            tests.append({"expr": f"count({expr})", "eval_time": f"{claim.minute}m", "exp_samples": samples})
    series = [{"series": name, "values": values} for name, values in SERIES.items()]
    group = {"interval": "1m", "input_series": series, "promql_expr_test": tests}
    file = tmp_path / "claims.yml"
    file.write_text(json.dumps({"tests": [group]}))
    run = subprocess.run(
        [tool("promtool"), "test", "rules", file], capture_output=True, text=True, check=False, timeout=60
    )
    assert run.returncode == 0, run.stdout + run.stderr
