from __future__ import annotations

import pytest

from exporter.derive.phenomenon import EngineFacts
from exporter.dialects.registry import detect
from tests.support.pages import advanced, ran, rank, read, run, written

LABELS = 'engine_type="trtllm",model_name="m"'


def serve(**values: float) -> str:
    """Series of trtllm-serve."""
    return "".join(f"trtllm_{name}{{{LABELS}}} {value}\n" for name, value in values.items())


def triton(family: str, **values: float) -> str:
    """Series of Triton's back end, told by a label."""
    label = {"request_metrics": "request_type", "kv_cache_block_metrics": "kv_cache_block_type"}[family]
    return "".join(
        f'nv_trt_llm_{family}{{{label}="{which}",model="tensorrt_llm",version="1"}} {value}\n'
        for which, value in values.items()
    )


def test_a_whole_page_of_trtllm_serve() -> None:
    sample = read(written("trtllm"))
    (found,) = sample.ranks
    assert (sample.kind, sample.generation, sample.notes) == ("trtllm", "serve", ())
    assert sample.admission_rejections_total == (("http_429", 60), ("http_503", 12))
    assert (found.running, found.waiting, found.paused, found.swapped) == (26, 8, 3, None)
    assert (found.kv_usage_ratio, found.blocks, found.block_tokens) == (0.96, 2000, 32)
    assert (found.prefix_hits_total, found.prefix_queries_total) == (30_000, 105_000)
    assert (found.swap_in_bytes_total, found.swap_out_bytes_total) == (31e9, 41e9)
    assert (found.swap_mode, found.swap_tier_usage_ratio) == ("offload", 0.75)
    assert found.finished_total == (("length", 1400), ("stop", 2600))
    assert (found.preemptions_total, found.inter_token_latency) == (None, None)
    assert found.request_time_per_output_token.mean == pytest.approx(0.022)
    assert found.time_to_first_token.mean == pytest.approx(1.1)
    assert found.prefill_time.mean == pytest.approx(0.4)
    assert found.told_at_end == {"generation_tokens_total", "prompt_tokens_total", "time_to_first_token"}
    assert (found.heartbeat, found.gauges_stand_when_idle) == (None, True)


def test_paused_sequences_are_a_state_of_their_own() -> None:
    states = {
        value.labels[3]: value.value
        for value in ran("trtllm")[-1].snapshot.values
        if value.signal.name == "sequences"
    }
    assert states == {"running": 26, "waiting": 8, "paused": 3}


def told_while_it_stands(page: bytes) -> dict[str, set[float]]:
    """What is said of an engine that has worked for a minute and whose page then stands for three."""
    bodies = [advanced(page, min(second, 60)) for second in range(0, 240, 5)]
    told: dict[str, set[float]] = {}
    for cycle in run(bodies, EngineFacts()):
        for value in cycle.snapshot.values:
            told.setdefault(value.signal.name, set()).add(value.value)
    return told


def test_a_server_that_has_nothing_to_do_shows_its_last_step_and_nothing_is_made_of_that() -> None:
    """trtllm-serve takes its gauges from the engine when a request ends, and none of them goes back to 0."""
    told = told_while_it_stands(written("trtllm"))
    assert not told.keys() & {"engine_frozen", "engine_deadlocked", "kv_leak"}
    assert told["requests_total"]


def test_behind_triton_one_that_has_nothing_to_do_shows_what_it_scheduled_last_and_nothing_active() -> None:
    idle = written("trtllm-triton").replace(
        b'request_type="active",version="1"} 15', b'request_type="active",version="1"} 0'
    )
    assert (rank(written("trtllm-triton")).running, rank(idle).running) == (12, 0)
    assert told_while_it_stands(idle)["engine_frozen"] == {0.0}


def test_what_is_taken_in_and_not_scheduled_waits() -> None:
    """The executor takes in what the batch may hold at most; what then finds no room in the cache is active too."""
    told = {
        "num_requests_running": 40,
        "num_requests_waiting": 5,
        "num_scheduled_requests": 26,
        "num_paused_requests": 3,
    }
    found = rank(serve(**told))
    assert (found.running, found.waiting, found.paused) == (26, 5 + 11, 3)
    # of a pipeline's micro-batches only the newest is told
    pipeline = f'trtllm_parallel_config_info{{{LABELS},pipeline_parallel_size="4"}} 1\n'
    found = rank(serve(**told) + pipeline)
    assert (found.running, found.waiting) == (40, 5)
    assert rank(serve(num_requests_running=40, num_requests_waiting=5)).running == 40


def test_without_iteration_statistics_half_the_page_is_missing() -> None:
    sample = read(serve(e2e_request_latency_seconds_count=4, e2e_request_latency_seconds_sum=8))
    assert sample.notes == ("names_half_there",)
    assert sample.ranks[0].end_to_end_latency.mean == 2


def test_used_blocks_tell_the_usage_where_no_gauge_does() -> None:
    body = serve(num_requests_running=1, kv_cache_used_blocks=30, kv_cache_max_blocks=40)
    assert rank(body).kv_usage_ratio == 0.75


def test_dynamo_s_worker_counts_the_aborts() -> None:
    assert read(serve(num_requests_running=1, num_aborted_requests_total=9)).aborted_total == 9


def test_a_whole_page_of_triton() -> None:
    sample = read(written("trtllm-triton"))
    (found,) = sample.ranks
    assert (sample.generation, sample.notes, found.model_name) == ("triton", (), "tensorrt_llm")
    assert (found.running, found.waiting, found.paused) == (12, 3, 2)
    assert (found.kv_usage_ratio, found.blocks, found.block_tokens) == (0.9375, 6240, 64)
    assert found.heartbeat == 88_123


def test_numbers_that_contradict_each_other_as_in_triton_s_own_document() -> None:
    body = triton("request_metrics", context=1, scheduled=1, max=512, active=0) + triton(
        "kv_cache_block_metrics", fraction=0.4875, tokens_per=64, used=1, free=6239, max=6239
    )
    sample = read(body)
    assert sample.notes == ("kv_blocks_contradict",)
    (found,) = sample.ranks
    assert (found.kv_usage_ratio, found.blocks, found.block_tokens, found.running) == (None, 6239, 64, 0)


def test_aibrix_2004_an_old_build_without_a_prefix() -> None:
    sample = read(written("trtllm-unprefixed"))
    (found,) = sample.ranks
    assert (sample.kind, sample.notes, found.model_name) == ("trtllm", ("names_half_there",), "")
    assert found.end_to_end_latency.total == 3.4878239994868636
    assert found.finished_total == (("length", 1),)
    assert found.running is None


def test_one_name_without_a_prefix_is_anybody_s() -> None:
    assert detect(["e2e_request_latency_seconds_count", "request_success_total"]) is None
