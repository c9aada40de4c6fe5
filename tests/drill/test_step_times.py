"""Times of iterations against figures worked out by hand, or measured by others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drill.serving.calibration import CALIBRATIONS, UncalibratedGpuError, calibration_of
from drill.serving.config import Copies, EngineConfig, EngineConfigError, Generation
from drill.serving.host_copies import PIECE_SECONDS
from drill.serving.models import MODELS, UnknownModelError, model_by_name
from drill.serving.request import PreemptionMode
from drill.serving.step_time import Batch, MeasuredTimes
from exporter.hardware import GPUS

SEVENTY = EngineConfig(MODELS["llama-70b"], GPUS["h100"], tensor_parallel=8)


def decode(sequences: int, context: int) -> Batch:
    return Batch(decodes=sequences, decode_context=sequences * context, samples=sequences)


def prefill(tokens: int, context: int = 0) -> Batch:
    pairs = tokens * (context + tokens / 2)
    return Batch(tokens, pairs, tokens * tokens, context + tokens, 1, samples=1)


def test_the_incidents_model_and_its_cache() -> None:
    model = MODELS["llama-70b"]
    assert model.weight_bytes == pytest.approx(70.55e9 * 2, rel=2e-3)
    assert model.kv.bytes_per_token == 327_680
    assert SEVENTY.block_bytes_gpu == 655_360
    assert 1.2e6 < SEVENTY.total_blocks * 16 < 1.45e6  # "about 1.3 M tokens" a node
    assert (
        EngineConfig(
            MODELS["llama-70b"], GPUS["h100"], Generation.V0, 8, swap_bytes_gpu=40 * 2**30
        ).host_blocks
        == 65536
    )


def test_a_decode_streams_the_weights_and_the_cache_once() -> None:
    roofline = SEVENTY.roofline()
    one = roofline.cost(decode(1, 1), 0.0)
    # all weights but the embeddings, an eighth of them on each GPU
    assert one.memory_bytes == pytest.approx((70.55e9 - 8192 * 128256) * 2 / 8, rel=3e-3)
    assert 9e-3 < one.seconds < 14e-3
    many, more = roofline.cost(decode(19, 36_000), 0.0), roofline.cost(decode(19, 72_000), 0.0)
    cache = 19 * 36_000 * 40_960
    assert more.memory_bytes - many.memory_bytes == pytest.approx(cache)
    assert more.seconds - many.seconds == pytest.approx(cache / (3.35e12 * 0.75))


@pytest.mark.parametrize(
    ("gpu", "tokens", "microseconds"),
    [  # qkv, o, gate_up and down of one layer of Llama 8B, LLMServingSim's profiler/perf/*/dense.csv
        ("rtx-4090", 16, 482),
        ("rtx-4090", 128, 602),
        ("rtx-4090", 256, 724),
        ("rtx-4090", 2048, 5407),
        ("rtx-pro-6000", 16, 305),
        ("rtx-pro-6000", 128, 349),
        ("rtx-pro-6000", 512, 671),
        ("rtx-pro-6000", 2048, 2258),
    ],
)
def test_matrix_products_take_what_they_took_where_they_were_measured(
    gpu: str, tokens: int, microseconds: float
) -> None:
    roofline = EngineConfig(MODELS["llama-8b"], GPUS[gpu]).roofline()
    streamed, flops = roofline.linear_work(tokens, 0)
    assert roofline.linear_seconds(streamed, flops) / 32 == pytest.approx(microseconds * 1e-6, rel=0.16)


@pytest.mark.parametrize(
    ("gpu", "tokens", "microseconds"),
    # the same four of one layer of a 70B with the shapes of Llama 2, an eighth of it: Vidur's profiles
    [("h100", 8, 87), ("h100", 256, 121), ("h100", 2048, 619), ("a100", 8, 156), ("a100", 2048, 1982)],
)
def test_and_an_eighth_of_a_large_model_too(gpu: str, tokens: int, microseconds: float) -> None:
    roofline = EngineConfig(MODELS["llama-70b"], GPUS[gpu], tensor_parallel=8).roofline()
    streamed, flops = roofline.linear_work(tokens, 0)
    assert roofline.linear_seconds(streamed, flops) / 80 == pytest.approx(microseconds * 1e-6, rel=0.16)


def test_an_all_reduce_takes_what_it_took_where_it_was_measured() -> None:
    # 64 MiB among 8 H100: 322 us with NCCL (Vidur), whose fixed part is 14 us more than vLLM's own kernel's
    cost = SEVENTY.roofline().cost(prefill(4096), 0.0)
    assert cost.collective_seconds / 160 == pytest.approx(322e-6 - 14e-6, rel=0.05)
    assert cost.collective_bytes == pytest.approx(160 * 2 * 7 / 8 * 4096 * 8192 * 2)
    assert not cost.collective_pcie


def test_a_prefill_of_64k_blocks_all_else_for_seconds() -> None:
    cost = SEVENTY.roofline().cost(prefill(64_000), 0.0)
    # 2 FLOPs a weight and token, and attention, which is quadratic
    linear = 2 * 64_000 * (70.55e9 - 2 * 8192 * 128256) / 8 / (989.4e12 * 0.75)
    attention = 4 * 80 * 64 * 128 * 64_000 * 32_000 / 8 / (989.4e12 * 0.60)
    collective = 160 * 1.75 * 64_000 * 8192 * 2 / 398e9
    assert cost.seconds == pytest.approx(linear + attention + collective, rel=0.06)
    assert 2.0 < cost.seconds < 5.0


def test_without_nvlink_collectives_share_the_link_with_host_copies() -> None:
    roofline = replace(SEVENTY, nvlink=False).roofline()
    alone = roofline.cost(decode(20, 1000), 0.0)
    assert alone.collective_pcie
    shared = roofline.cost(decode(20, 1000), 1.0)
    assert shared.collective_seconds == pytest.approx(2 * alone.collective_seconds)
    brief = roofline.cost(decode(20, 1000), 1e-3)
    assert brief.seconds - alone.seconds == pytest.approx(1e-3)
    apart = SEVENTY.roofline()
    assert apart.cost(decode(20, 1000), 1.0) == apart.cost(decode(20, 1000), 0.0)


def test_v0_copies_in_small_pieces_are_bound_by_calls_and_large_pages_by_the_link() -> None:
    swap = {"generation": Generation.V0, "tensor_parallel": 8, "preemption": PreemptionMode.SWAP}
    pieces = EngineConfig(MODELS["llama-70b"], GPUS["h100"], **swap)  # type: ignore[arg-type]
    pages = replace(pieces, copies=Copies.PAGES)
    # a sequence of 48,000 tokens is 3,000 blocks, 160 pieces of 4 KiB each
    seconds = pieces.copy_model.seconds(3000, 0)
    assert seconds == pytest.approx(3000 * 160 * PIECE_SECONDS)
    payload = 3000 * 655_360
    assert payload / seconds == pytest.approx(4096 / PIECE_SECONDS)
    assert payload / seconds < 0.03 * 63.015e9
    assert payload * 1.09 / pages.copy_model.seconds(0, 3000) == pytest.approx(63.015e9, rel=0.01)
    sharing = replace(pages, link_sharers=2)
    assert sharing.copy_model.seconds(0, 3000) == pytest.approx(2 * pages.copy_model.seconds(0, 3000))


def test_copies_hold_up_the_forward_pass() -> None:
    config = EngineConfig(MODELS["llama-70b"], GPUS["h100"], Generation.V0, 8, preemption=PreemptionMode.SWAP)
    roofline = config.roofline()
    plain = roofline.cost(decode(20, 1000), 0.0)
    batch = replace(decode(20, 1000), swap_out_blocks=100, swap_in_blocks=50)
    swapping = roofline.cost(batch, 0.0)
    assert swapping.seconds - plain.seconds == pytest.approx(150 * 160 * PIECE_SECONDS)
    assert (swapping.to_host_bytes, swapping.to_device_bytes) == (100 * 655_360, 50 * 655_360)


def test_experts_are_read_as_far_as_tokens_need_them() -> None:
    roofline = EngineConfig(MODELS["qwen3-30b-a3b"], GPUS["rtx-pro-6000"]).roofline()
    few, _ = roofline.linear_work(1, 1)
    many, _ = roofline.linear_work(2000, 1)
    layer = 3 * 2048 * 768 * 2 * 48
    assert many - few == pytest.approx((128 - 8) * layer, rel=1e-3)


def test_each_further_iteration_takes_longer_by_the_tokens_it_adds() -> None:
    roofline = SEVENTY.roofline()
    for batch in (decode(20, 5000), replace(prefill(512, 1000), decodes=7, decode_context=7 * 3000)):
        later = replace(
            batch,
            decode_context=batch.decode_context + batch.decodes,
            prefill_pairs=batch.prefill_pairs + batch.prefill_pairs_rise,
        )
        rise = roofline.cost(later, 0.0).seconds - roofline.cost(batch, 0.0).seconds
        assert roofline.rise(batch) == pytest.approx(rise, rel=1e-6)


def test_measured_times_are_linear_in_the_work() -> None:
    times = MeasuredTimes(0.01, 0.001, 0.002, 1e-5, 0.1)
    cost = times.cost(Batch(prefill_tokens=10, decodes=3, decode_context=100, swap_out_blocks=2), 0.0)
    assert cost.seconds == pytest.approx(0.01 + 0.01 + 0.006 + 0.001 + 0.2)
    assert times.rise(decode(3, 100)) == pytest.approx(3e-5)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"tensor_parallel": 1},
            "llama-70b has 141.1 GB of weights for each of 1 NVIDIA H100 80GB HBM3.*take more",
        ),
        ({"tensor_parallel": 7}, "tensor_parallel 7 doesn't divide the 64 heads"),
        ({"gpu_blocks": 10**6}, "1000000 blocks and the weights of llama-70b take .* GB of each.*take fewer"),
        ({"block_tokens": 0}, "block_tokens is 0: it must be at least 1"),
        ({"preemption": PreemptionMode.SWAP}, "V1 never swaps"),
        ({"generation": Generation.V0, "offload_bytes": 1e9}, "are V1's"),
    ],
)
def test_a_set_up_that_cant_be_is_refused(changes: dict[str, object], said: str) -> None:
    with pytest.raises(EngineConfigError, match=said):
        replace(SEVENTY, **changes)  # type: ignore[arg-type]


def test_unknown_models_and_uncalibrated_gpus_are_told_with_those_that_are_known() -> None:
    with pytest.raises(UnknownModelError, match=r"no model 'llama-7b'.*llama-8b, llama-70b"):
        model_by_name("llama-7b")
    with pytest.raises(UncalibratedGpuError, match=r"Voodoo has no calibration.*H100"):
        calibration_of(replace(GPUS["h100"], name="Voodoo"), v0=False)
    assert set(CALIBRATIONS) == {gpu.name for gpu in GPUS.values()}
