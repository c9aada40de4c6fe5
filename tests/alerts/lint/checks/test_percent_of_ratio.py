"""percent-of-ratio: templates that show a ratio."""

from __future__ import annotations

import pytest

from tests.alerts.lint.linting import RUNBOOK, alert, finds, rules

KV = "vllm:kv_cache_usage_perc > 0.9"


def count(expr: str, text: str) -> int:
    made = alert(expr, annotations={"summary": text, "runbook_url": RUNBOOK})
    return len(finds("percent-of-ratio", rules(made)))


@pytest.mark.parametrize(
    "text",
    [
        '{{ $value | printf "%.0f" }}%',
        '{{ printf "%.2f%%" $value }}',
        "{{ $value }}%",
        "{{ $value | humanize }} %",
        '{{- $value | printf "%.1f" -}}%',
    ],
)
def test_a_ratio_with_a_percent_sign_is_told(text: str) -> None:
    assert count(KV, text) == 1
    assert count("vllm:kv_cache_usage_perc * 100 > 90", text) == 0
    assert count("vllm:num_requests_waiting > 10", text) == 0


@pytest.mark.parametrize(
    "text",
    ["{{ $value | humanizePercentage }}", "{{ mul $value 100 }}%", '{{ $value | printf "%.2f" }}', "90%"],
)
def test_what_is_multiplied_or_no_per_cent_is_not(text: str) -> None:
    assert count(KV, text) == 0


def test_the_value_is_that_of_what_an_alert_compares_first() -> None:
    text = "{{ $value }}%"
    assert count(f"{KV} and on (pod) vllm:num_requests_waiting > 5", text) == 1
    assert count(f"vllm:num_requests_waiting > 5 and on (pod) {KV}", text) == 0
    assert count("0.9 < vllm:kv_cache_usage_perc", text) == 1
    assert count("sum(rate(x_total{c='1'}[5m])) / sum(rate(x_total[5m])) > 0.1", text) == 1
