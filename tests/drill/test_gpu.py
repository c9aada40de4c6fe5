"""The GPUs under a drill's engine: what is handed over is what the real sampler reads, and what truly moved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from drill.fake_nvml import DRIVER_590
from drill.gpu import Gpus
from drill.gpu_work import WorkMeter
from drill.serving.config import Copies, EngineConfig, EngineConfigError, Generation
from drill.serving.engine import Engine
from drill.serving.models import MODELS
from drill.serving.request import PreemptionMode, Request
from drill.serving.step_result import StepResult
from exporter.gpu_sample import GpuSample
from exporter.hardware import GPUS
from exporter.pcie import HEADER_FACTOR
from exporter.sampler.gpu_reader import GpuReader, Terms
from exporter.sampler.pace import Pace
from exporter.sampler.pcie_meter import PcieMeter
from tests.exporter.sampler.machine import running
from tests.support.fake_library import Without

SECONDS = 60
SWAPPING = EngineConfig(
    MODELS["llama-70b"],
    GPUS["h100"],
    generation=Generation.V0,
    tensor_parallel=8,
    gpu_blocks=6000,
    watermark_ratio=0.0,
    max_batched_tokens=131072,
    chunked_prefill=False,
    prefix_caching=False,
    preemption=PreemptionMode.SWAP,
    swap_bytes_gpu=40e9,
    copies=Copies.PAGES,
)
OFFLOAD = EngineConfig(
    MODELS["llama-8b"], GPUS["h100"], tensor_parallel=2, gpu_blocks=4000, offload_bytes=64e9, nvlink=False
)


def loaded(config: EngineConfig) -> Engine:
    engine = Engine(config)
    for number in range(60):
        engine.submit(Request(number, number * 0.4, 2000 + 300 * (number % 7), 1500 + 100 * (number % 5)))
    return engine


def ticks(engine: Engine, gpus: Gpus, seconds: int = SECONDS) -> Iterator[list[StepResult]]:
    """Second by second: what the engine came to in it."""
    meter = WorkMeter(engine.config)
    for second in range(1, seconds + 1):
        results = []
        while (result := engine.step(second)) is not None:
            meter.see(result)
            results.append(result)
        gpus.tick(meter.since_last(engine, second), second)
        yield results


def read_all(readers: list[GpuReader], now: float) -> None:
    for reader in readers:
        while reader.due_at <= now:
            reader.turn()


@pytest.mark.parametrize("config", [SWAPPING, OFFLOAD], ids=["V0 swaps", "V1 offloads, no NVLink"])
def test_the_real_sampler_reads_what_is_handed_over(
    config: EngineConfig, fake_library: Without, tmp_path: Path
) -> None:
    engine, gpus = loaded(config), Gpus(config)
    gpus.tenants[1].out_bytes_per_second = 3e9
    count = config.tensor_parallel
    library = fake_library(*DRIVER_590.hidden)
    with running(tmp_path, library, [gpus.profile] * count, DRIVER_590) as machine:
        gpus.install(machine.control)
        machine.opened()
        terms = Terms(Pace(), machine.clock, lambda error: pytest.fail(str(error)))
        readers = [
            GpuReader(gpu, PcieMeter(gpu, window=False, clock=machine.clock), terms, machine.clock())
            for gpu in map(machine.gpu, range(count))
        ]
        began = machine.clock()
        read_all(readers, machine.clock())
        pairs: list[tuple[GpuSample, GpuSample]] = []
        for _ in ticks(engine, gpus):
            gpus.show(machine.control)
            machine.control.advance(1.0)
            read_all(readers, machine.clock())
            pairs += zip((reader.sample for reader in readers), gpus.samples(), strict=True)
    assert max(sample.pcie.out_bytes_total or 0.0 for _, sample in pairs if sample.pcie) > 20e9
    for read, handed in pairs:
        assert read.at - began == pytest.approx(handed.at, abs=1e-6)
        assert read.identity == handed.identity
        assert (read.link, read.memory, read.up) == (handed.link, handed.memory, True)
        assert read.pcie is not None
        assert handed.pcie is not None
        assert read.pcie.source == handed.pcie.source
        # NVML tells percents of time as whole numbers, NVLink in KiB, counters in bytes
        assert read.pcie.out_bytes_total == pytest.approx(handed.pcie.out_bytes_total, rel=1e-6, abs=4)
        assert read.pcie.in_bytes_total == pytest.approx(handed.pcie.in_bytes_total, rel=1e-6, abs=4)
        assert read.pcie.ambiguous_intervals_total == handed.pcie.ambiguous_intervals_total
        assert read.nvlink is not None
        assert handed.nvlink is not None
        assert read.nvlink.out_bytes_total == pytest.approx(handed.nvlink.out_bytes_total, rel=1e-6, abs=40e3)
        assert read.nvlink.links_active == handed.nvlink.links_active
        assert (read.nvlink.read_at or 0.0) - began == pytest.approx(handed.nvlink.read_at, abs=1e-6)
        assert read.utilisation is not None
        assert handed.utilisation is not None
        for name in ("busy_ratio", "sm_active_ratio", "memory_bandwidth_ratio"):
            assert getattr(read.utilisation, name) == pytest.approx(
                getattr(handed.utilisation, name), abs=0.0051
            )
        assert read.health is not None
        assert handed.health is not None
        assert read.health.temperature_celsius == handed.health.temperature_celsius
        assert read.health.power_watts == handed.health.power_watts


def test_bytes_on_the_bus_are_what_was_swapped_and_headers_and_what_flows_idle() -> None:
    engine, gpus = loaded(SWAPPING), Gpus(SWAPPING)
    results = [result for each in ticks(engine, gpus, 400) for result in each]
    assert engine.under_way is None
    swapped = sum(result.swap_out_bytes for result in results) / SWAPPING.tensor_parallel
    assert swapped > 1e9
    (sample, *_) = gpus.samples()
    assert sample.pcie is not None
    assert sample.pcie.out_bytes_total == pytest.approx(
        swapped * HEADER_FACTOR + 400 * gpus.profile.idle_transmit
    )


def test_what_the_tier_moves_is_seen_while_it_moves_and_adds_up_to_what_was_moved() -> None:
    slow = replace(OFFLOAD, gpu=replace(OFFLOAD.gpu, pcie_generation=1, pcie_width=1), nvlink=True)
    engine, gpus = loaded(slow), Gpus(slow)
    line = slow.gpu.pcie_bytes_per_second
    full = 0
    for _ in ticks(engine, gpus, 200):
        rate = gpus.rates[0].out_bytes_per_second
        assert rate <= line
        full += rate > 0.95 * line
    assert full > 5  # stores outlast the iterations that made them
    assert engine.tier is not None
    moved = engine.tier.moved(200.0)[1] * slow.block_bytes_gpu
    (sample, *_) = gpus.samples()
    assert sample.pcie is not None
    # a link that is full by its payload ratio, 0.92, carries 1.09 x 0.92 = 1.003 of what it can: that is cut off
    assert sample.pcie.out_bytes_total == pytest.approx(moved * HEADER_FACTOR, rel=5e-3)


def test_an_iteration_that_lasts_for_seconds_shows_while_it_lasts() -> None:
    engine, gpus = Engine(SWAPPING), Gpus(SWAPPING)
    engine.submit(Request(1, 0.0, 90_000, 2))
    busy = []
    for _ in ticks(engine, gpus, 12):
        (sample, *_) = gpus.samples()
        assert sample.utilisation is not None
        busy.append(sample.utilisation.busy_ratio)
    assert busy[0] > 0.95
    assert engine.totals.generated_tokens == 2
    assert busy[-1] == 0.0


def test_all_reduces_go_over_pcie_where_there_is_no_nvlink() -> None:
    with_nvlink = replace(OFFLOAD, nvlink=True, offload_bytes=0.0)
    without = replace(OFFLOAD, offload_bytes=0.0)
    seen = {}
    for config in (with_nvlink, without):
        gpus = Gpus(config)
        for _ in ticks(loaded(config), gpus, 20):
            pass
        (sample, *_) = gpus.samples()
        assert sample.pcie is not None
        assert sample.nvlink is not None
        seen[config.has_nvlink] = (
            sample.pcie.out_bytes_total or 0.0,
            sample.nvlink.out_bytes_total,
            sample.nvlink.links_active,
        )
    assert seen[True][0] == pytest.approx(20 * Gpus(with_nvlink).profile.idle_transmit)
    assert seen[True][1]
    assert seen[True][2] == 18
    assert seen[False][0] > 1e9
    assert seen[False][1:] == (0.0, 0)


def test_a_gpu_that_nobody_wrote_down_is_refused_by_name() -> None:
    config = EngineConfig(MODELS["llama-8b"], GPUS["rtx-pro-6000"])
    with pytest.raises(EngineConfigError, match="no NVML profile of a NVIDIA RTX PRO 6000"):
        Gpus(config)
