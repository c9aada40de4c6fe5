"""milliseconds: latencies in seconds beside numbers of milliseconds."""

from __future__ import annotations

import pytest

from tests.alerts.lint.linting import finds_in


def quantile(name: str) -> str:
    return f"histogram_quantile(0.95, sum by (le) (rate({name}_bucket[5m])))"


@pytest.mark.parametrize(
    "expr",
    [
        f"{quantile('vllm:time_to_first_token_seconds')} > 2000",
        f"{quantile('sglang:time_to_first_token_seconds')} > 1000",
        f"max({quantile('vllm:e2e_request_latency_seconds')}) >= 5000",
        "rate(vllm:e2e_request_latency_seconds_sum[5m]) / rate(vllm:e2e_request_latency_seconds_count[5m]) > 1500",
    ],
)
def test_milliseconds_are_told(expr: str) -> None:
    (found,) = finds_in("milliseconds", expr)
    assert "is in seconds" in found.what


@pytest.mark.parametrize(
    "expr",
    [
        f"{quantile('vllm:time_to_first_token_seconds')} > 10",
        f"1000 * {quantile('vllm:time_to_first_token_seconds')} > 2000",
        f"{quantile('vllm:inter_token_latency_seconds')} > 1000",
        f"{quantile('tgi_request_duration')} > 2000",
        "thrashold_last_token_age_seconds > 600",
        "time() - process_start_time_seconds > 3600",
        f"{quantile('vllm:request_prompt_tokens')} > 50000",
    ],
)
def test_seconds_tokens_and_what_no_bucket_reaches_are_not(expr: str) -> None:
    assert not finds_in("milliseconds", expr)
