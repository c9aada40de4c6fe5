"""LiteLLM's own metrics, written after its source: no capture was at hand."""

from __future__ import annotations

import pytest

from exporter.dialects.gateway_dialect import Asked
from exporter.dialects.gateways import detect_gateway
from exporter.dialects.litellm import MOST_KEYS, LitellmDialect
from exporter.exposition import Reader
from exporter.gateway_sample import GatewaySample, KeyUse
from tests.support.gateways import ended, written


def sample_of(body: bytes | str) -> GatewaySample:
    dialect = LitellmDialect()
    text = body.encode() if isinstance(body, str) else body
    return dialect.sample(Reader(dialect.interpret).read(text), Asked("g"), at=0.0, read_seconds=0.0)


def test_reads_a_newer_release() -> None:
    sample = sample_of(written("litellm-1.110"))
    assert ended(sample) == {"ok": 160, "client_error": 2, "server_error": 3, "rejected": 40, "timeout": 5}
    assert sample.requests_total == sample.ended == 210
    # eight HTTP requests are in the proxy, and the read of the page is one of them
    assert sample.inflight == 7
    assert sample.upstream_inflight is None
    assert sample.upstream_requests_total == 220
    assert sample.backends == 2
    assert sample.keys == (KeyUse("batch", 3e6, 12.0), KeyUse("1c807cf78e", 5e4, 0.0))
    assert sample.keys_prompt_tokens_total == 3.05e6
    assert sample.notes == ()


def test_an_older_release_tells_success_only_by_what_failed() -> None:
    sample = sample_of(written("litellm-1.40"))
    assert ended(sample) == {"ok": 12, "rejected": 7, "server_error": 1}
    assert sample.requests_total == 20
    assert (sample.inflight, sample.backends, sample.keys, sample.keys_prompt_tokens_total) == (
        None,
        None,
        (),
        None,
    )


def test_counters_are_read_with_and_without_total() -> None:
    page = written("litellm-1.110").replace(b"_total{", b"{")
    assert sample_of(page) == sample_of(written("litellm-1.110"))


def test_when_a_series_began_is_no_count() -> None:
    page = 'litellm_input_tokens_metric_created{api_key_alias="a"} 1.7e9\n'
    assert sample_of(page).keys_prompt_tokens_total is None


def test_failures_that_are_counted_a_moment_earlier_make_no_negative_success() -> None:
    page = (
        "litellm_proxy_total_requests_metric_total 2\n"
        'litellm_proxy_failed_requests_metric_total{exception_status="500"} 3\n'
    )
    sample = sample_of(page)
    assert ended(sample) == {"server_error": 3}
    assert sample.notes == ("more_failed_than_requests",)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ("200", "ok"),
        ("307", "ok"),
        ("400", "client_error"),
        ("408", "timeout"),
        ("429", "rejected"),
        ("499", "client_left"),
        ("500", "server_error"),
        ("504", "timeout"),
        ("None", "server_error"),
    ],
)
def test_a_status_is_one_outcome(status: str, outcome: str) -> None:
    page = (
        'litellm_proxy_total_requests_metric_total{status_code="200"} 1\n'
        f'litellm_proxy_total_requests_metric_total{{status_code="{status}",route="x"}} 4\n'
    )
    counts = ended(sample_of(page))
    assert counts.pop(outcome) - (outcome == "ok") == 4
    assert sum(counts.values()) == (outcome != "ok")


def test_many_keys_are_bounded_and_all_of_them_are_in_the_total() -> None:
    lines = [f'litellm_input_tokens_metric_total{{hashed_api_key="k{n:04d}"}} {n}' for n in range(1000)]
    sample = sample_of("\n".join(lines) + "\n")
    assert (len(sample.keys), sample.has_more_keys) == (MOST_KEYS, True)
    assert sample.keys[0] == KeyUse("k0999", 999.0)
    assert sample.keys_prompt_tokens_total == sum(range(1000))
    nobody = 'litellm_input_tokens_metric_total{hashed_api_key="None"} 7\n'
    assert not sample_of("\n".join(lines[:MOST_KEYS]) + "\n" + nobody).has_more_keys


def test_is_told_from_other_pages_by_its_names() -> None:
    found = detect_gateway({"python_info", "litellm_in_flight_requests"})
    assert found is not None
    assert found.kind == "litellm"
    assert detect_gateway({"vllm:num_requests_running"}) is None
