"""Engine states that people reported, by the issue they reported them in (vllm-project/vllm unless named).

What a detector makes of them is tested where it is derived; here the sample must hold the very numbers.
"""

import math

import pytest

from exporter.dialects.registry import detect
from tests.exporter.dialects.vllm_text import cache_config, engine, lines, rank, v0, v1

GIB = 1 << 30


def v0_state(running: float, swapped: float, waiting: float, gpu: float, cpu: float = 0.0) -> str:
    return v0(
        num_requests_running=running,
        num_requests_swapped=swapped,
        num_requests_waiting=waiting,
        gpu_cache_usage_perc=gpu,
        cpu_cache_usage_perc=cpu,
    )


def v1_state(running: float, waiting: float, usage: float, **reasons: float) -> str:
    state = v1(num_requests_running=running, num_requests_waiting=waiting, kv_cache_usage_perc=usage)
    return state + "".join(
        lines(f'engine="0",model_name="m",reason="{reason}"', num_requests_waiting_by_reason=count)
        for reason, count in reasons.items()
    )


@pytest.mark.parametrize(
    ("running", "swapped", "waiting", "gpu", "cpu"),
    [
        pytest.param(34, 100, 9832, 0.992, 0.704, id="5578 swapped queue grows"),
        pytest.param(37, 137, 9832, 0.766, 0.779, id="5578 5 s later usage fell and swapped grew"),
        pytest.param(1, 0, 3, 0.031, 0.0, id="11517 pending although KV is free"),
        pytest.param(2, 0, 20, 0.987, 0.0, id="1492 frozen"),
        pytest.param(6, 12, 0, 1.0, 1.0, id="546 588 787 1188 CPU pool full before the crash"),
        pytest.param(7, 101, 60, 0.989, 0.700, id="V0 log line of a swap storm"),
    ],
)
def test_v0_states(running: float, swapped: float, waiting: float, gpu: float, cpu: float) -> None:
    found = rank(v0_state(running, swapped, waiting, gpu, cpu))
    assert (found.generation, found.rank) == ("v0", "0")
    assert (found.running, found.swapped, found.waiting) == (running, swapped, waiting)
    assert (found.kv_usage_ratio, found.swap_tier_usage_ratio) == (gpu, cpu)


@pytest.mark.parametrize(
    ("running", "waiting", "usage", "reasons"),
    [
        pytest.param(0, 8, 0.93, {}, id="vllm-ascend 16315 running swings between 0 and 1"),
        pytest.param(2, 30, 0.35, {"capacity": 30.0}, id="31731 35852 behind one large request"),
        pytest.param(0, 4, 0.0, {}, id="39734 35541 larger than the pool"),
        pytest.param(0, 12, 0.97, {"deferred": 12.0}, id="45388 45387 45414 parked loads hold the blocks"),
        pytest.param(0, 256, 0.08, {"deferred": 256.0}, id="53130 deferred counts against the cap"),
        pytest.param(1, 14, 0.765, {}, id="intel llm-scaler 391"),
        pytest.param(0, 6, 0.0, {"capacity": 6.0}, id="vllm-metal 479"),
        pytest.param(106, 15, 0.904, {}, id="22545 29928 frozen after all clients aborted"),
        pytest.param(0, 0, 1.0, {}, id="27073 full with nothing running: a leak"),
        pytest.param(0, 0, 0.35, {}, id="29906 50425 a prefill node keeps aborted blocks"),
        pytest.param(0, 0, 0.04, {}, id="46283 46289 usage floor at idle"),
        pytest.param(0, 3, 0.61, {"capacity": 3.0}, id="vllm-ascend 16662 leak until nothing is admitted"),
        pytest.param(9, 0, 0.42, {}, id="10087 10806 54947 litellm 37140 running without clients"),
        pytest.param(48, 512, 0.99, {"capacity": 512.0}, id="13395 2901 18826 49445 unbounded queue"),
    ],
)
def test_v1_states(running: float, waiting: float, usage: float, reasons: dict[str, float]) -> None:
    found = rank(v1_state(running, waiting, usage, **reasons))
    assert (found.generation, found.rank) == ("v1", "0")
    assert (found.running, found.waiting, found.kv_usage_ratio) == (running, waiting, usage)
    assert found.waiting_by_reason == tuple(reasons.items())
    assert (found.swapped, found.swap_tier_usage_ratio) == (None, None)


def test_546_after_the_crash_there_is_nothing_at_all() -> None:
    assert engine("").ranks == ()


def test_2853_a_swap_pool_that_is_never_used_is_still_a_pool() -> None:
    found = rank(
        v0_state(8, 0, 3, 0.9) + cache_config(block_size=16, num_cpu_blocks=8192, swap_space_bytes=40 * GIB)
    )
    assert (found.swap_mode, found.swap_tier_bytes, found.swap_tier_blocks) == ("swap", 40 * GIB, 8192)
    assert (found.swapped, found.swap_tier_usage_ratio) == (0, 0)


@pytest.mark.parametrize("preemptions", [480, 481, 482])
def test_25538_preemptions_rise_with_every_step(preemptions: int) -> None:
    found = rank(v1(num_preemptions_total=preemptions, request_success_total=3))
    assert found.preemptions_total == preemptions


def test_16315_one_step_later_one_runs() -> None:
    assert rank(v1_state(1, 7, 1.0)).running == 1


def test_metal_479_as_exposed() -> None:
    found = rank(
        'vllm:num_requests_running{engine="0",model_name="q"} 0.0\n'
        'vllm:num_requests_waiting{engine="0",model_name="q"} 6.0\n'
        'vllm:num_requests_waiting_by_reason{engine="0",model_name="q",reason="capacity"} 6.0\n'
        'vllm:kv_cache_usage_perc{engine="0",model_name="q"} 0.0\n'
    )
    assert (found.running, found.waiting, found.kv_usage_ratio) == (0, 6, 0)
    assert (found.waiting_by_reason, found.model_name) == ((("capacity", 6),), "q")


def test_391_prefix_hits_of_a_blocked_queue() -> None:
    found = rank(v1_state(1, 14, 0.765) + v1(prefix_cache_queries_total=1000, prefix_cache_hits_total=920))
    assert found.prefix_hits_total / found.prefix_queries_total == 0.92


def test_22545_prefix_hits_of_a_frozen_engine() -> None:
    found = rank(
        v1_state(106, 15, 0.904)
        + v1(generation_tokens_total=88_000, prefix_cache_queries_total=2000, prefix_cache_hits_total=610)
    )
    assert found.prefix_hits_total / found.prefix_queries_total == 0.305
    assert found.generation_tokens_total == 88_000


def test_18115_a_flag_flips_the_engine_back_to_v0() -> None:
    before = rank(v1_state(3, 0, 0.2) + v1(gpu_cache_usage_perc=0.2))
    after = rank(v0_state(3, 0, 0, 0.2))
    assert (before.generation, after.generation) == ("v1", "v0")
    assert (before.rank, before.model_name) == (after.rank, after.model_name)
    assert before.kv_usage_ratio == after.kv_usage_ratio == 0.2


def test_27984_swap_space_means_nothing_in_v1() -> None:
    found = rank(
        v1_state(1, 0, 0.2)
        + cache_config(engine=0, num_cpu_blocks="None", num_gpu_blocks=9271, swap_space="4.0", block_size=16)
    )
    assert (found.swap_mode, found.swap_tier_bytes, found.swap_tier_blocks) == (None, None, None)
    assert dict(engine(cache_config(swap_space="4.0")).config) == {"swap_space": "4.0"}


@pytest.mark.parametrize(("top", "text"), [(10.0, "10"), (2560.0, "2560.0")])
def test_18826_first_tokens_beyond_the_top_bucket_are_saturated(top: float, text: str) -> None:
    stem = 'vllm:time_to_first_token_seconds_bucket{engine="0",model_name="m"'
    found = rank(f'{stem},le="1"}} 2\n{stem},le="{text}"}} 5\n{stem},le="+Inf"}} 500\n').time_to_first_token
    assert found.quantile(0.99) == (top, True)


def test_29906_an_expiry_counter_of_the_connector_is_left_alone() -> None:
    sample = engine(v1_state(0, 0, 0.35) + v1(nixl_num_kv_expired_reqs_total=17))
    assert sample == engine(v1_state(0, 0, 0.35))


def aborted(prompt_tokens: float) -> str:
    return v1(
        prompt_tokens_total=prompt_tokens,
        request_prompt_tokens_count=40,
        e2e_request_latency_seconds_count=40,
    ) + "".join(
        lines(f'engine="0",model_name="m",finished_reason="{reason}"', request_success_total=count)
        for reason, count in {"stop": 30, "length": 10, "abort": 0}.items()
    )


def test_31503_55634_five_aborts_move_nothing_but_prompt_tokens() -> None:
    before, after = rank(aborted(9000)), rank(aborted(12010))
    assert after.prompt_tokens_total - before.prompt_tokens_total == 3010
    assert before.finished == after.finished == 40
    assert dict(after.finished_total)["abort"] == 0
    assert after.request_prompt_tokens.count == before.request_prompt_tokens.count == 40
    assert after.end_to_end_latency.count == before.end_to_end_latency.count == 40


def test_8115_first_tokens_without_an_end() -> None:
    found = rank(
        v0(time_to_first_token_seconds_count=8060, e2e_request_latency_seconds_count=3918)
        + lines('model_name="m",finished_reason="stop"', request_success_total=3918)
    )
    assert found.time_to_first_token.count - found.end_to_end_latency.count == 4142
    assert found.time_to_first_token.count - found.finished == 4142


def test_7188_8612_a_body_without_a_byte() -> None:
    sample = engine(b"")
    assert (sample.ranks, sample.http_ok_total, sample.started_at, sample.notes) == ((), None, None, ())


def test_7782_only_the_process_speaks() -> None:
    body = (
        'python_gc_objects_collected_total{generation="0"} 11000.0\n'
        "process_virtual_memory_bytes 1.0322907136e+011\n"
        "process_start_time_seconds 1.72433456786e+009\n"
    )
    sample = engine(body)
    assert sample.ranks == ()
    assert sample.started_at == 1724334567.86
    assert detect([line.split("{")[0].split(" ")[0] for line in body.splitlines()]) is None


def test_functionary_263_families_without_samples_are_unknown_not_0() -> None:
    sample = engine(
        "# HELP vllm:num_requests_running Number of requests currently running on GPU.\n"
        "# TYPE vllm:num_requests_running gauge\n"
        "# TYPE vllm:num_preemptions_total counter\n" + v0(num_requests_waiting=2)
    )
    (found,) = sample.ranks
    assert (found.running, found.preemptions_total, found.waiting) == (None, None, 2)
    assert (found.finished, found.time_to_first_token, found.kv_usage_ratio) == (None, None, None)


def test_6337_a_histogram_of_zeros_has_a_mean_of_0() -> None:
    found = rank(v0(e2e_request_latency_seconds_count=12, e2e_request_latency_seconds_sum=0))
    assert found.end_to_end_latency.mean == 0
    assert found.end_to_end_latency.bounds == (math.inf,)
