"""A GPU that is down for a while and comes back: what its counters did meanwhile is not taken for traffic."""

from __future__ import annotations

import pytest

from exporter.gpu_sample import GpuHealth, PcieLink
from exporter.sampler.backend import ByteCounters, ByteRates, ReadError, Remedy
from exporter.sampler.gpu_reader import GpuReader, Terms
from exporter.sampler.pace import Pace
from exporter.sampler.pcie_meter import PcieMeter
from tests.exporter.sampler.test_gpu_reader import Gpu, Hand

ILL = ReadError("gpu_ill", Remedy.DEVICE_DOWN, "reset required")


class CountingGpu(Gpu):
    """On one lane of the first generation, whose counters take 17 s to wrap."""

    def __init__(self, hand: Hand) -> None:
        super().__init__()
        self.hand = hand
        self.moved = 0

    def link(self) -> PcieLink:
        return PcieLink(1, 1, 1, 1)

    def byte_counters(self) -> ByteCounters:
        return ByteCounters(self.hand.now, self.moved, 0, 32)

    def byte_rates(self) -> ByteRates:
        raise ReadError("not_supported", Remedy.DROP, "")

    def health(self) -> GpuHealth:
        return self.answer("health", GpuHealth(temperature_celsius=40.0))


@pytest.mark.parametrize("group", ["memory", "health", "nvlink"])
def test_a_reset_while_a_gpu_was_down_is_no_wrap_whichever_group_said_that_it_was(group: str) -> None:
    hand = Hand()
    gpu = CountingGpu(hand)
    meter = PcieMeter(gpu, window=False, clock=hand)
    reader = GpuReader(gpu, meter, Terms(Pace(), hand, lambda _: None), hand.now)

    def run(seconds: int) -> None:
        end = hand.now + seconds
        while reader.due_at < end:
            hand.now = max(hand.now, reader.due_at)
            reader.turn()

    gpu.moved = 4_000_000_000
    run(3)
    assert reader.sample.pcie is not None
    assert reader.sample.pcie.out_bytes_total == 0
    gpu.failing = {group: ILL}
    run(12)
    assert not reader.sample.up
    gpu.moved, gpu.failing = 100_000_000, {}
    hand.now = reader.due_at
    run(20)
    assert reader.sample.pcie is not None
    assert reader.sample.pcie.out_bytes_total == 0, "395 MB before: a reset looked like a wrap"
    assert reader.sample.pcie.ambiguous_intervals_total == 1
    gpu.moved += 7
    run(2)
    assert reader.sample.pcie.out_bytes_total == 7
