"""A node to record: a busy engine, and GPUs none of whose numbers stands still for long.

Numbers are as fine as NVML tells them: shares of time in whole percent, profiled ones in more digits than
a float32 has, memory in pages of 2 MiB, NVLink traffic in KiB, power in
milliwatts, time in nanoseconds. All eight are held down
by their power caps, which is what a full node does.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from exporter.cycle import CycleSettings, initial, step
from exporter.dialects.vllm import VllmDialect
from exporter.exposition import Reader
from exporter.gpu_sample import (
    GpuHealth,
    GpuIdentity,
    GpuMemory,
    GpuSample,
    GpuUtilisation,
    NvLink,
    PcieLink,
    PcieTraffic,
)
from exporter.observation import Observation, SourceStatus
from exporter.snapshot import Snapshot
from tests.bench.replay import replay

_LINK = PcieLink(generation=5, width=16, max_generation=5, max_width=16)
_TOTAL_BYTES, _RESERVED_BYTES = 85_520_809_984.0, 502_267_904.0
_PAGE_BYTES = 2 << 20
_BURST_BYTES = 40_000_000_000
"""What may go over PCIe in a second."""
_REASONS = ("hw_slowdown", "sw_thermal", "hw_thermal", "hw_power_brake", "sync_boost")
_READ_SECONDS = 0.01
_EVENTS = 0.01
"""How often in a second an error counter moves."""


@dataclass(slots=True)
class RestlessGpu:
    """One H100 that tells all there is, second by second."""

    index: int
    chance: random.Random
    totals: dict[str, float] = field(default_factory=dict)
    used: float = 33_000.0 * _PAGE_BYTES
    busy: float = 0.9

    def sample(self, at: float) -> GpuSample:
        """Its next second."""
        chance = self.chance
        self.used = min(_TOTAL_BYTES, max(40e9, self.used + round(chance.gauss(0, 10)) * _PAGE_BYTES))
        self.busy = min(1.0, max(0.0, self.busy + chance.gauss(0, 0.02)))
        return GpuSample(
            at,
            GpuIdentity(
                f"GPU-{self.index:08d}-1111-2222-3333-444444444444",
                self.index,
                "NVIDIA H100 80GB HBM3",
                f"00000000:{self.index + 1:02X}:00.0",
                "575.57.08",
            ),
            reader_started_at=1.0,
            memory=GpuMemory(_TOTAL_BYTES, self.used, _RESERVED_BYTES),
            utilisation=GpuUtilisation(
                round(self.busy, 2),
                self.busy * chance.uniform(0.5, 0.7),
                self.busy * chance.uniform(0.3, 0.5),
            ),
            pcie=PcieTraffic(
                "gpm", self._risen("out", _BURST_BYTES), self._risen("in", _BURST_BYTES), None, None, 0.0, 0.0
            ),
            link=_LINK,
            nvlink=NvLink(
                1024.0 * self._risen("to", 7 * _BURST_BYTES // 1024),
                1024.0 * self._risen("from", 7 * _BURST_BYTES // 1024),
                18,
                0,
            ),
            health=self._health(),
        )

    def _health(self) -> GpuHealth:
        kinds = ("replay", "correctable", "non_fatal", "fatal", "l0_to_recovery")
        return GpuHealth(
            temperature_celsius=float(self.chance.randrange(60, 70)),
            power_watts=self.chance.randrange(400_000, 700_000) / 1000,
            pcie_errors_total=tuple((kind, self._counted(kind)) for kind in kinds),
            ecc_errors_total=(("corrected", self._counted("corrected")), ("uncorrected", 0.0)),
            remapped_rows=tuple(
                (kind, 0.0) for kind in ("correctable", "uncorrectable", "pending", "failed")
            ),
            throttle_seconds_total=(
                ("sw_power_cap", self._risen("sw_power_cap", 1_000_000_000) / 1e9),
                *((reason, 0.0) for reason in _REASONS),
            ),
            recovery_action=0,
            persistence_mode=True,
        )

    def _risen(self, name: str, most: int) -> float:
        self.totals[name] = self.totals.get(name, 0.0) + self.chance.randrange(most)
        return self.totals[name]

    def _counted(self, name: str) -> float:
        self.totals[name] = self.totals.get(name, 0.0) + (self.chance.random() < _EVENTS)
        return self.totals[name]


def gpus(count: int) -> list[RestlessGpu]:
    """So many of them, each with a course of its own, the same each time."""
    return [RestlessGpu(index, random.Random(index)) for index in range(count)]  # noqa: S311 -- guards nothing


def node_snapshots(seconds: int, gpu_count: int, start: float) -> Iterator[Snapshot]:
    """Of a node with a busy engine and so many GPUs: one snapshot a second from ``start`` on, made when asked for."""
    scrapes, dialect, all_gpus = replay("vllm-0.32.0"), VllmDialect(), gpus(gpu_count)
    reader = Reader(dialect.interpret)
    state = initial(CycleSettings(version="bench"))
    for second in range(seconds):
        at = start + second
        sample = dialect.sample(
            reader.read(scrapes.body(second)), engine="bench", at=at, read_seconds=_READ_SECONDS
        )
        status = SourceStatus("bench", "engine", answering=True, last_at=at, read_seconds=_READ_SECONDS)
        seen = tuple(gpu.sample(at) for gpu in all_gpus)
        of_gpus = SourceStatus("nvml", "nvml", answering=True, last_at=at, read_seconds=_READ_SECONDS)
        observations = (Observation(status, sample), Observation(of_gpus, gpus=seen))
        state, snapshot = step(state, at + 0.1, observations)
        for failure in snapshot.failures:
            raise failure.error
        yield snapshot
