"""A page of an engine that can't be read is called by the engine's name: the address is right."""

from __future__ import annotations

import logging

import pytest

from exporter.dialects.registry import DIALECTS
from exporter.sources.engine import SEVERAL_ENGINES
from exporter.sources.failure import Reason
from tests.exporter.sources.reading import PAGE, failed, observed
from tests.support.captures import fixture
from tests.support.http_servers import page

READ = "this release reads vLLM, SGLang, TensorRT-LLM, llama.cpp, Text Generation Inference, Dynamo"


def test_an_engine_that_is_not_read_yet_is_called_by_its_name() -> None:
    body = b"python_info 1\nhttp_requests_total 5\nlmdeploy:num_requests_running 2\n"
    reason, line = failed(observed(page(body)))
    assert reason == Reason.NOT_AN_ENGINE
    assert line.endswith(f": looks like the page of LMDeploy; {READ}"), line


@pytest.mark.parametrize(
    ("series", "engine"),
    [
        ("vllm:what_it_says_in_a_year", "vLLM"),
        ("sglang:what_it_says_in_a_year", "SGLang"),
        ("sglang_what_it_says_in_a_year", "SGLang"),
        ("trtllm_what_it_says_in_a_year", "TensorRT-LLM"),
        ("nv_trt_llm_what_it_says_in_a_year", "TensorRT-LLM"),
        ("llamacpp:what_it_says_in_a_year", "llama.cpp"),
        ("tgi_what_it_says_in_a_year", "Text Generation Inference"),
        ("dynamo_what_it_says_in_a_year", "Dynamo"),
    ],
)
def test_an_engine_that_is_read_but_says_nothing_we_know_is_not_sent_elsewhere(
    series: str, engine: str
) -> None:
    _, line = failed(observed(page(f"{series} 1\n".encode())))
    assert f"looks like the page of {engine}, but no series on it is one that is known; please report" in line
    assert engine in {dialect.title for dialect in DIALECTS}


@pytest.mark.parametrize(
    ("series", "kind"),
    [
        ("vllm:num_requests_running", "vllm"),
        ("sglang:num_running_reqs", "sglang"),
        ("sglang_num_running_reqs", "sglang"),
        ("trtllm_num_requests_running", "trtllm"),
        ('nv_trt_llm_request_metrics{request_type="scheduled"}', "trtllm"),
        ("llamacpp:requests_processing", "llamacpp"),
        ("tgi_queue_size", "tgi"),
        ("dynamo_frontend_queued_requests", "dynamo"),
        ("dynamo_component_total_blocks", "dynamo"),
    ],
)
def test_the_dialect_is_found_by_the_page_alone(series: str, kind: str) -> None:
    body = f"python_info 1\nhttp_requests_total 5\n{series} 2\n".encode()
    sample = observed(page(body)).engine
    assert sample.kind == kind
    assert len(sample.ranks) == 1


def test_the_drained_json_of_trtllm_serve_names_the_path_of_its_text() -> None:
    _, line = failed(observed(page(b'[{"iter": 0, "iterLatencyMS": 23.1}]', content_type="application/json")))
    assert line.endswith("engines have it at /metrics, trtllm-serve at /prometheus/metrics"), line


def test_a_real_page_of_llamacpp() -> None:
    sample = observed(page(fixture("llamacpp-2026.10.11549/030.prom"))).engine
    assert (sample.kind, sample.ranks[0].running, sample.ranks[0].waiting) == ("llamacpp", 4, 28)


@pytest.mark.parametrize(
    "before", [b"dynamo_frontend_queued_requests 1\n", b"dynamo_component_uptime_seconds 9\n"]
)
def test_the_engine_behind_a_front_end_that_passes_its_series_on_is_read(before: bytes) -> None:
    sample = observed(page(before + PAGE)).engine
    assert (sample.kind, sample.notes) == ("vllm", ())


def test_two_engines_on_one_page_are_told_of_and_the_larger_is_read(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    body = b"vllm:num_requests_running 3\nsglang:num_running_reqs 4\nsglang:num_queue_reqs 5\n"
    sample = observed(page(body)).engine
    assert (sample.kind, sample.ranks[0].running) == ("sglang", 4)
    assert SEVERAL_ENGINES in sample.notes
    (record,) = [record for record in caplog.records if "series of" in record.message]
    assert (
        "holds series of vLLM as well, which are not read; give each engine a URL of its own"
        in record.message
    )
