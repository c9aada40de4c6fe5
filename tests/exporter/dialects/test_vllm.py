import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.dialects.names import Kind
from exporter.dialects.registry import DIALECTS, detect
from exporter.dialects.vllm_names import ADMISSION_REJECTIONS, CACHE_CONFIG, NAMES
from exporter.sample import Histogram, RankSample
from tests.exporter.dialects.vllm_text import cache_config, engine, inside, lines, rank, v0, v1
from tests.support.captures import fixture


def http(handler: str, status: str, value: float, method: str = "POST") -> str:
    return f'http_requests_total{{handler="{handler}",method="{method}",status="{status}"}} {value}\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        (http("/v1/models", "2xx", 4, "GET"), 0),
        (http("/v1/completions", "2xx", 3) + http("/v1/chat/completions", "200", 5), 8),
        (http("/v1/responses", "2xx", 1) + http("/v1/messages", "2xx", 2) + http("/generate", "2xx", 4), 7),
        (http("/v1/completions", "2xx", 3) + http("/v1/completions", "4xx", 9), 3),
        (http("/v1/completions", "5xx", 9), 0),
        (http("/v1/completions", "2xx", 9, "OPTIONS"), 0),
        (http("/v1/completions", "2xx", 3) + http("/tokenize", "2xx", 9), 3),
        (http("/health", "2xx", 9, "GET") + http("/v1/messages/count_tokens", "2xx", 9), 0),
    ],
)
def test_completion_answers(text: str, expected: float | None) -> None:
    assert engine(v1(num_requests_running=1) + text).http_ok_total == expected


@pytest.mark.parametrize("prefix", ["vllm:", "vllm_", "ray_vllm:", "ray_vllm_"])
@pytest.mark.parametrize("total", ["", "_total", "_total_total"])
def test_prefixes_and_totals(prefix: str, total: str) -> None:
    found = rank(f'{prefix}num_preemptions{total}{{engine="3",model_name="m"}} 7\n')
    assert (found.rank, found.preemptions_total) == ("3", 7)


@pytest.mark.parametrize(
    "name", ["vllm:iteration_tokens_total", "vllm:iteration_tokens", "vllm:prompt_tokens_created"]
)
def test_what_looks_like_a_counter_and_is_none(name: str) -> None:
    assert engine(f'{name}{{engine="0",model_name="m"}} 1.79e9\n').ranks == ()


def test_every_spelling_of_the_table_fills_its_field() -> None:
    fields = {field.name for field in dataclasses.fields(RankSample)}
    for name in NAMES:
        labels = f'model_name="m",le="8",{name.by or "x"}="5"' + (
            f',{name.only[0]}="{name.only[1]}"' if name.only else ""
        )
        found = rank(f"vllm:{name.stem}{name.part}{{{labels}}} 1\n")
        assert name.field in fields
        value = getattr(found, name.field)
        if name.kind is Kind.HISTOGRAM:
            expected = {
                "_bucket": Histogram((8,), (1,)),
                "_count": Histogram((math.inf,), (1,)),
                "_sum": None,
            }[name.part]
        elif name.kind is Kind.INFO:
            expected = 5
        else:
            expected = (("5", 1),) if name.by else 1
        assert value == expected, name


def test_a_missing_name_costs_its_own_field_only() -> None:
    text = fixture("vllm-0.32.0/112.prom")
    everything = rank(text)
    renamed = rank(text.replace(b"vllm:num_preemptions_total", b"vllm:evictions_total"))
    assert renamed.preemptions_total is None
    assert dataclasses.replace(renamed, preemptions_total=everything.preemptions_total) == everything


def test_custom_buckets_are_taken_from_the_text() -> None:
    stem = "vllm:time_to_first_token_seconds"
    labels = 'engine="0",model_name="m"'
    text = "".join(
        f'{stem}_bucket{{{labels},le="{le}"}} {n}\n' for le, n in [("0.7", 1), ("33", 5), ("+Inf", 6)]
    )
    found = rank(text + f"{stem}_sum{{{labels}}} 99.5\n{stem}_count{{{labels}}} 6\n").time_to_first_token
    assert found == Histogram((0.7, 33, math.inf), (1, 5, 6), 99.5)


@pytest.mark.parametrize("bound", ["", "many", "NaN", None])
def test_a_bucket_without_a_readable_bound_is_left_out(bound: str | None) -> None:
    stem = 'vllm:request_prompt_tokens_bucket{engine="0",model_name="m"'
    label = "" if bound is None else f',le="{bound}"'
    found = rank(f'{stem}{label}}} 3\n{stem},le="+Inf"}} 4\n').request_prompt_tokens
    assert found == Histogram((math.inf,), (4,))


def test_without_buckets_the_count_still_has_a_mean() -> None:
    found = rank(
        v1(e2e_request_latency_seconds_count=4, e2e_request_latency_seconds_sum=10)
    ).end_to_end_latency
    assert found == Histogram((math.inf,), (4,), 10)
    assert found.mean == 2.5


def test_an_external_load_balancers_server_is_its_rank_with_its_own_blocks() -> None:
    found = rank(
        lines('engine="3",model_name="m"', num_requests_running=5, inter_token_latency_seconds_count=0)
        + cache_config(engine=3, block_size=16, num_gpu_blocks=9271)
    )
    assert (found.rank, found.blocks) == ("3", 9270)


def test_rank_10_comes_after_rank_9() -> None:
    text = "".join(lines(f'engine="{i}",model_name="m"', num_requests_running=i) for i in (10, 9, 0))
    assert [found.rank for found in engine(text).ranks] == ["0", "9", "10"]


@pytest.mark.parametrize(
    ("text", "usable"),
    [
        # V1 from 0.10.2 keeps its null block out of the gauge; either mark of that release will do
        (v1(num_requests_running=0) + cache_config(num_gpu_blocks=100, kv_cache_memory_bytes="None"), 99),
        (v1(inter_token_latency_seconds_count=0) + cache_config(num_gpu_blocks=100), 99),
        # V1 before
        (v1(kv_cache_usage_perc=0) + cache_config(num_gpu_blocks=100), 100),
        (v0(gpu_prefix_cache_queries_total=0) + cache_config(num_gpu_blocks=100), 100),
        # V0 of 0.10.2 and 0.11.0 has the new latency name and no null block
        (v0(inter_token_latency_seconds_count=0) + cache_config(num_gpu_blocks=100), 100),
        # an attention-free model has the null block alone
        (v1(inter_token_latency_seconds_count=0) + cache_config(num_gpu_blocks=1), None),
    ],
)
def test_the_null_block(text: str, usable: float | None) -> None:
    assert rank(text).blocks == usable


def test_v1_without_an_engine_label_is_told_by_its_names() -> None:
    assert rank(v0(gpu_prefix_cache_queries_total=5)).generation == "v1"
    assert rank(v0(num_requests_running=5)).generation == "v0"


NATIVE = {"kv_offloading_size": 8.0, "kv_offloading_backend": "native"}


@pytest.mark.parametrize(
    ("text", "mode", "tier_bytes", "tier_blocks"),
    [
        (v1(num_requests_running=0) + cache_config(swap_space="4", num_cpu_blocks="None"), None, None, None),
        (v1(num_requests_running=0) + cache_config(**NATIVE), "offload", 8 << 30, None),
        (
            v1(num_requests_running=0) + cache_config(**NATIVE | {"kv_offloading_backend": "lmcache"}),
            "offload",
            None,
            None,
        ),
        (
            v1(num_requests_running=0) + cache_config(**NATIVE | {"kv_offloading_size": "None"}),
            None,
            None,
            None,
        ),
        (
            'vllm:kv_offload_config_info{engine="0",model_name="m",cpu_kv_cache_size_bytes="8388608"} 1\n'
            + cache_config(**NATIVE),
            "offload",
            8388608,
            None,
        ),
        (
            'vllm:simple_kv_offload_info{engine="0",model_name="m",backend="cpu",capacity_blocks="4096"} 1\n',
            "offload",
            None,
            4096,
        ),
        (v1(num_requests_running=0) + cache_config(simple_cpu_offload_num_blocks=77), "offload", None, 77),
        (v0(num_requests_running=0) + cache_config(num_cpu_blocks=0, swap_space_bytes=9), None, 0, 0),
        (
            v0(num_requests_running=0) + cache_config(num_cpu_blocks="None", swap_space_bytes=9),
            None,
            None,
            None,
        ),
        (v0(num_requests_running=0) + cache_config(num_cpu_blocks=2048, swap_space_bytes=9), "swap", 9, 2048),
    ],
)
def test_the_tier_below_the_gpu(
    text: str, mode: str | None, tier_bytes: float | None, tier_blocks: float | None
) -> None:
    found = rank(text)
    assert (found.swap_mode, found.swap_tier_bytes, found.swap_tier_blocks) == (mode, tier_bytes, tier_blocks)


def transfer(direction: str, value: float) -> str:
    return lines(f'engine="0",model_name="m",transfer_type="{direction}"', kv_offload_total_bytes_total=value)


OLD = transfer("CPU_to_GPU", 100) + transfer("GPU_to_CPU", 700)
NEW = v1(kv_offload_load_bytes_total=100, kv_offload_store_bytes_total=700)


@pytest.mark.parametrize("text", [OLD, NEW, OLD + NEW, NEW + OLD, OLD + v1(kv_offload_store_bytes_total=700)])
def test_offloaded_bytes_are_never_counted_twice(text: str) -> None:
    found = rank(text)
    assert (found.swap_in_bytes_total, found.swap_out_bytes_total, found.swap_mode) == (100, 700, "offload")


def test_blocks_of_the_simple_offload_connector() -> None:
    outcome = 'engine="0",model_name="m",outcome='
    found = rank(
        v1(simple_kv_offload_load_blocks_total=12, simple_kv_offload_used_blocks=3)
        + lines(outcome + '"stored"', simple_kv_offload_save_outcomes_total=30)
        + lines(outcome + '"dropped_cpu_full"', simple_kv_offload_save_outcomes_total=9)
    )
    assert (found.swap_in_blocks_total, found.swap_out_blocks_total) == (12, 30)
    assert found.swap_tier_usage_ratio is None  # used_blocks are pinned ones, not the tier's occupancy


def test_token_occupancy_should_it_land() -> None:
    found = rank(v1(kv_cache_usage_perc=0.667, kv_cache_token_usage_perc=0.365))
    assert (found.kv_usage_ratio, found.kv_token_usage_ratio) == (0.667, 0.365)


def test_admission_rejections_are_the_front_ends() -> None:
    text = (
        v1(num_requests_running=0)
        + 'vllm:admission_rejections_total{model_name="m",reason="max_num_queued_reqs"} 4\n'
    )
    sample = engine(text)
    assert sample.admission_rejections_total == (("max_num_queued_reqs", 4),)
    assert len(sample.ranks) == 1


def test_only_vllms_names_are_recognised() -> None:
    assert detect(["python_gc_objects_collected_total", "vllm:num_requests_running"]) is DIALECTS[0]
    assert detect(["ray_vllm_num_preemptions_total"]) is DIALECTS[0]
    assert detect(["vllm:iteration_tokens_total_bucket"]) is DIALECTS[0]
    for names in (
        [],
        ["python_gc_objects_collected_total", "process_start_time_seconds", "http_requests_total"],
        ["lmdeploy:num_requests_running", "sglang:num_running_reqs", "llamacpp:requests_processing"],
        ["vllm_omni:kv_tail_waste_tokens", "vllm:something_else"],
        ["my_vllm:num_requests_running"],
    ):
        assert not DIALECTS[0].recognises(names)
    assert detect(["http_requests_total", "vllm:num_requests_running"]).kind == "vllm"


@given(
    st.lists(
        st.tuples(
            st.sampled_from([name.stem + name.part for name in (*NAMES, CACHE_CONFIG, ADMISSION_REJECTIONS)]),
            st.dictionaries(
                st.sampled_from(
                    ["engine", "model_name", "le", "reason", "pid", "ReplicaId", "num_gpu_blocks"]
                ),
                st.sampled_from(["", "0", "1", "None", "NaN", "+Inf", "-3", "1e400", "x"]),
            ),
            st.sampled_from(["0", "1", "NaN", "-1", "+Inf", "1e308"]),
        )
    )
)
def test_no_series_makes_it_raise(series: list[tuple[str, dict[str, str], str]]) -> None:
    text = "".join(f"vllm:{name}{{{inside(labels)}}} {number}\n" for name, labels, number in series)
    for found in engine(text).ranks:
        assert found.kv_usage_ratio is None or 0 <= found.kv_usage_ratio <= 1
        assert found.blocks is None or found.blocks > 0
        assert found.running is None or found.running >= 0
