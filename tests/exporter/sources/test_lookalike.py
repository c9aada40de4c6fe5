"""A page of an engine that isn't read yet is called by the engine's name: the address is right."""

from __future__ import annotations

import pytest

from exporter.sources.failure import Reason
from tests.exporter.sources.reading import PAGE, failed, observed
from tests.support.captures import fixture
from tests.support.http_servers import page


@pytest.mark.parametrize(
    ("series", "engine"),
    [
        ("llamacpp:requests_processing", "llama.cpp"),
        ("sglang:num_queue_reqs", "SGLang"),
        ("sglang_num_queue_reqs", "SGLang"),
        ("trtllm_kv_cache_utilization", "TensorRT-LLM"),
        ('nv_trt_llm_request_metrics{request_type="waiting"}', "TensorRT-LLM behind Triton"),
        ("tgi_queue_size", "Text Generation Inference"),
        ("lmdeploy:num_requests_running", "LMDeploy"),
        ("dynamo_frontend_queued_requests", "Dynamo"),
    ],
)
def test_an_engine_that_is_not_read_yet_is_called_by_its_name(series: str, engine: str) -> None:
    body = f"python_info 1\nhttp_requests_total 5\n{series} 2\n".encode()
    reason, line = failed(observed(page(body)))
    assert reason == Reason.NOT_AN_ENGINE
    assert line.endswith(f": looks like the page of {engine}; this release reads vLLM"), line


def test_a_real_page_of_an_engine_that_is_not_read_yet() -> None:
    _, line = failed(observed(page(fixture("llamacpp-2026.10.11549/001.prom"))))
    assert line.endswith(": looks like the page of llama.cpp; this release reads vLLM"), line


def test_an_engine_that_is_read_but_says_nothing_we_know_is_not_sent_elsewhere() -> None:
    _, line = failed(observed(page(b"vllm:what_it_says_in_a_year 1\n")))
    assert "looks like the page of vLLM, but no series on it is one that is known; please report" in line


def test_the_engine_behind_a_front_end_that_passes_its_series_on_is_read() -> None:
    assert observed(page(b"dynamo_frontend_queued_requests 1\n" + PAGE)).status.answering
