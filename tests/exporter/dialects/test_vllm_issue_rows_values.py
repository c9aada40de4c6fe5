"""Wrong values that people reported, by the issue (vllm-project/vllm unless named)."""

import pytest

from tests.exporter.dialects.vllm_text import cache_config, engine, lines, rank, v0, v1


def test_v0_prefix_caching_off_is_not_a_ratio() -> None:
    sample = engine(v0(gpu_prefix_cache_hit_rate=-1.0, num_requests_running=1))
    assert (sample.ranks[0].prefix_hit_ratio, sample.notes) == (None, ())
    assert rank(v0(gpu_prefix_cache_hit_rate=0.322)).prefix_hit_ratio == 0.322


def test_v0_processes_add_their_gauges_up() -> None:
    sample = engine(v0(gpu_cache_usage_perc=1.35))
    assert (sample.ranks[0].kv_usage_ratio, sample.notes) == (1, ("usage_above_1",))


def test_production_stack_617_an_idle_engine_before_0_10_2() -> None:
    found = rank(v1(kv_cache_usage_perc=9.75010481363281e-06) + cache_config(num_gpu_blocks=102563))
    assert found.kv_usage_ratio * found.blocks == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "-0.02"])
def test_a_gauge_that_is_no_number_is_unknown_and_noted(value: str) -> None:
    sample = engine(
        f'vllm:kv_cache_usage_perc{{engine="0",model_name="m"}} {value}\n' + v1(num_requests_running=3)
    )
    assert (sample.ranks[0].kv_usage_ratio, sample.ranks[0].running) == (None, 3)
    assert sample.notes == (("below_0",) if value.startswith("-") else ("not_a_number",))


def test_6642_negative_counters_are_left_out() -> None:
    sample = engine(v0(generation_tokens_total=-1.1, prompt_tokens_total=2.7, num_requests_running=6))
    (found,) = sample.ranks
    assert (found.generation_tokens_total, found.prompt_tokens_total, found.running) == (None, 2.7, 6)
    assert sample.notes == ("below_0",)


def test_24015_answers_of_one_token_take_0_seconds_a_token() -> None:
    stem = 'vllm:request_time_per_output_token_seconds_bucket{engine="0",model_name="m"'
    found = rank(f'{stem},le="0.01"}} 9\n{stem},le="+Inf"}} 9\n').request_time_per_output_token
    assert found.quantile(0.5) == (0.005, False)
    assert found.counts == (9, 9)


@pytest.mark.parametrize(
    ("queries", "hits"),
    [
        pytest.param(1000, 322, id="25780 25787 preempted requests looked up again: 32.2 % for 0.2 %"),
        pytest.param(500_000, 0, id="43736 48860 a blocked request is looked up every step"),
        pytest.param(4096, 0, id="vllm-ascend 16639 0 hits though caching works"),
    ],
)
def test_prefix_counters_are_read_as_they_are(queries: float, hits: float) -> None:
    found = rank(v1(prefix_cache_queries_total=queries, prefix_cache_hits_total=hits, prompt_tokens_total=9))
    assert (found.prefix_queries_total, found.prefix_hits_total) == (queries, hits)


@pytest.mark.parametrize("tokens", [1000, 600, 200, 400])
def test_30522_external_lookups_are_read_as_they_are(tokens: float) -> None:
    found = rank(v1(external_prefix_cache_queries_total=tokens, prefix_cache_queries_total=2000))
    assert (found.external_queries_total, found.prefix_queries_total) == (tokens, 2000)


def test_56361_prompt_tokens_of_n_answers_are_not_prefill_work() -> None:
    sources = {"local_compute": 59, "local_cache_hit": 413, "external_kv_transfer": 0}
    found = rank(
        v1(prompt_tokens_total=472)
        + "".join(
            lines(f'engine="0",model_name="m",source="{source}"', prompt_tokens_by_source_total=count)
            for source, count in sources.items()
        )
    )
    assert (found.prompt_tokens_total, found.prompt_tokens_computed_total) == (472, 59)
    assert rank(v1(prompt_tokens_total=472)).prompt_tokens_computed_total is None


HYBRID = {"num_gpu_blocks": 1000, "block_size": 16, "engine": 0, "kv_cache_memory_bytes": "None"}


@pytest.mark.parametrize(
    ("labels", "block_tokens", "groups", "notes"),
    [
        pytest.param({}, 16, (16,), (), id="before 0.24 the label is all there is"),
        pytest.param(
            {"mamba_block_size": 16}, None, (), ("block_size_unknown",), id="42966 stale 16 of a Mamba hybrid"
        ),
        pytest.param(
            {"mamba_page_size_padded": 8192}, None, (), ("block_size_unknown",), id="42966 by its page size"
        ),
        pytest.param(
            {"mamba_block_size": 16, "effective_attention_block_size": 1056}, 1056, (), (), id="0.31 tells it"
        ),
        pytest.param(
            {"block_size": 4, "kv_cache_size_tokens": 2533, "kv_cache_max_concurrency": 0.01},
            None,
            (),
            ("block_size_unknown",),
            id="51163 smallest of the groups 256, 64, 8 and 4",
        ),
        pytest.param(
            {"kv_cache_size_tokens": 16000, "kv_cache_max_concurrency": 2.0}, 16, (16,), (), id="one group"
        ),
        pytest.param(
            # 2 blocks hold the longest request of 100 tokens: 1000 blocks are 500 such requests
            {"block_size": 64, "kv_cache_size_tokens": 50_000, "kv_cache_max_concurrency": 500.0},
            64,
            (64,),
            (),
            id="one group whose longest request leaves its last block part empty",
        ),
        pytest.param(
            {
                "kv_cache_size_tokens": 8000,
                "kv_cache_max_concurrency": 1.0,
                "effective_attention_block_size": 16,
            },
            16,
            (),
            (),
            id="two groups, attention's known",
        ),
        pytest.param({"block_size": "None"}, None, (), (), id="not told"),
    ],
)
def test_block_sizes(
    labels: dict[str, float | str],
    block_tokens: float | None,
    groups: tuple[float, ...],
    notes: tuple[str, ...],
) -> None:
    sample = engine(v1(num_requests_running=1) + cache_config(**HYBRID | labels))
    (found,) = sample.ranks
    assert (found.block_tokens, found.block_group_tokens, sample.notes) == (block_tokens, groups, notes)
    assert found.blocks == 999


def test_kv_capacity_is_the_engines_own_less_the_null_block() -> None:
    found = rank(v1(num_requests_running=1) + cache_config(**HYBRID | {"kv_cache_size_tokens": 8000}))
    assert found.kv_capacity_tokens == pytest.approx(8000 * 999 / 1000)


def test_16560_cache_config_of_0_8_as_exposed() -> None:
    sample = engine(
        v0(gpu_prefix_cache_queries_total=0, gpu_cache_usage_perc=0.25)
        + 'vllm:cache_config_info{block_size="16",cache_dtype="auto",calculate_kv_scales="False",'
        'cpu_offload_gb="0",enable_prefix_caching="True",gpu_memory_utilization="0.85",'
        'is_attention_free="False",num_cpu_blocks="None",num_gpu_blocks="None",'
        'num_gpu_blocks_override="None",prefix_caching_hash_algo="builtin",sliding_window="None",'
        'swap_space_bytes="4294967296"} 1.0\n'
    )
    (found,) = sample.ranks
    assert (found.generation, found.blocks, found.block_tokens) == ("v1", None, 16)
    assert (found.swap_mode, found.swap_tier_bytes, found.kv_usage_ratio) == (None, None, 0.25)
    assert dict(sample.config)["swap_space_bytes"] == "4294967296"
    assert sample.notes == ()


def test_28924_cache_config_of_0_11_as_exposed() -> None:
    found = rank(
        v1(kv_cache_usage_perc=0.5)
        + 'vllm:cache_config_info{block_size="16",cache_dtype="auto",calculate_kv_scales="False",'
        'cpu_kvcache_space_bytes="None",cpu_offload_gb="0.0",enable_prefix_caching="True",engine="0",'
        'gpu_memory_utilization="0.65",is_attention_free="False",kv_cache_memory_bytes="None",'
        'kv_sharing_fast_prefill="False",mamba_cache_dtype="auto",mamba_page_size_padded="None",'
        'mamba_ssm_cache_dtype="auto",num_cpu_blocks="None",num_gpu_blocks="9271",'
        'num_gpu_blocks_override="None",prefix_caching_hash_algo="sha256",sliding_window="None",'
        'swap_space="0.0",swap_space_bytes="0.0"} 1.0\n'
    )
    assert (found.blocks, found.pool_blocks, found.block_tokens) == (9270, 9271, 16)
    assert (found.kv_pool_bytes, found.swap_mode, found.swap_tier_bytes) == (None, None, None)
