"""The GPUs under a drill's engine: what its work moves over PCIe and NVLink, how busy their SMs are, what is in memory.

    gpus, meter = Gpus(config, epoch=...), WorkMeter(config)
    while (result := engine.step(second)) is not None:
        meter.see(result)
    gpus.tick(meter.since_last(engine, second), second)
    gpus.samples()                 # what a sampler at 1 Hz has, or
    gpus.show(control)             # into the block of the fake NVML, for a real sampler

All GPUs of an engine do the same, but for what other tenants move. Bytes on the bus are payload times
``exporter.pcie.HEADER_FACTOR``, as counters see them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from drill.fake_nvml import DRIVER_590, PROFILES, Control, Profile
from drill.gpu_work import Work
from drill.serving.config import ACTIVATION_BYTES_RATIO, EngineConfig, EngineConfigError
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
from exporter.pcie import HEADER_FACTOR

_MIB = 1 << 20
_SM_METRIC, _MEMORY_METRIC = 2, 10
"""GPM: share of SMs that are busy, share of the memory's bandwidth."""
_FIRST_BUS = 0x19
_NVLINK_SECONDS = 5.0
"""How often a sampler reads NVLink."""


@dataclass(slots=True)
class Tenant:
    """Somebody else on the same GPU, who copies so much, packet headers included."""

    in_bytes_per_second: float = 0.0
    out_bytes_per_second: float = 0.0


@dataclass(slots=True)
class _Totals:
    """Of one GPU, as its counters run since the reader began: bytes on the bus."""

    in_bytes: float = 0.0
    out_bytes: float = 0.0
    nvlink_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Rates:
    """Of one GPU over the last tick, packet headers and everybody included; ratios are 0 to 1."""

    in_bytes_per_second: float = 0.0
    out_bytes_per_second: float = 0.0
    nvlink_bytes_per_second: float = 0.0
    busy_ratio: float = 0.0
    sm_active_ratio: float = 0.0
    memory_bandwidth_ratio: float = 0.0


def profile_of(config: EngineConfig) -> Profile:
    """The kind of GPU as NVML shows it. Raises EngineConfigError for one whose NVML numbers nobody wrote down."""
    for profile in PROFILES:
        if profile.name == config.gpu.name and profile.mig is None:
            return profile
    known = ", ".join(sorted({profile.name for profile in PROFILES}))
    raise EngineConfigError(f"no NVML profile of a {config.gpu.name} (known: {known})")


def _bus_id(index: int) -> str:
    return f"00000000:{_FIRST_BUS + index:02X}:00.0"


@dataclass
class Gpus:
    """Those of one engine. ``node`` tells its machine apart: UUIDs bear it. ``epoch``: the drill's 0.

    Raises EngineConfigError.
    """

    config: EngineConfig
    epoch: float = 0.0
    node: int = 0
    tenants: list[Tenant] = field(init=False)
    """One for each GPU; set their figures to have them copy."""

    def __post_init__(self) -> None:
        count = self.config.tensor_parallel
        self.profile = profile_of(self.config)
        self.tenants = [Tenant() for _ in range(count)]
        self.rates = [Rates()] * count
        self._totals = [_Totals() for _ in range(count)]
        self._now = 0.0
        self._nvlink_at = 0.0
        self._nvlink_read = [0.0] * count
        self._identities = [self._identity(index) for index in range(count)]

    def tick(self, work: Work, now: float) -> None:
        """Time has come to ``now`` on the drill's clock; ``work`` is what the engine did since the last tick.

        A link carries no more than it can: what is asked beyond that is lost, for the engine's own copies
        know the share that they have (``link_sharers``).
        """
        seconds = now - self._now
        if seconds <= 0:
            return
        self._now = now
        line = self.config.gpu.pcie_bytes_per_second
        for index, tenant in enumerate(self.tenants):
            into = work.in_bytes * HEADER_FACTOR / seconds
            out = work.out_bytes * HEADER_FACTOR / seconds
            rates = Rates(
                min(line, into + tenant.in_bytes_per_second + self.profile.idle_receive),
                min(line, out + tenant.out_bytes_per_second + self.profile.idle_transmit),
                work.nvlink_bytes / seconds if self.config.has_nvlink else 0.0,
                min(1.0, work.busy_seconds / seconds),
                min(1.0, work.sm_seconds / seconds),
                min(1.0, work.memory_seconds / seconds),
            )
            self.rates[index] = rates
            totals = self._totals[index]
            totals.in_bytes += rates.in_bytes_per_second * seconds
            totals.out_bytes += rates.out_bytes_per_second * seconds
            totals.nvlink_bytes += rates.nvlink_bytes_per_second * seconds
        if now - self._nvlink_at >= _NVLINK_SECONDS:
            self._nvlink_at = now
            self._nvlink_read = [totals.nvlink_bytes for totals in self._totals]

    def samples(self, first: int | None = None) -> tuple[GpuSample, ...]:
        """What a sampler has that read everything at the last tick, by GPM: it began with the drill.

        ``first``: of so many GPUs only.
        """
        at = self.epoch + self._now
        link = self._link()
        memory = GpuMemory(float(self._total_bytes), float(self._used_bytes), self._reserved_bytes)
        return tuple(
            GpuSample(
                at,
                self._identities[index],
                reader_started_at=self.epoch,
                memory=memory,
                utilisation=GpuUtilisation(
                    rates.busy_ratio, rates.sm_active_ratio, rates.memory_bandwidth_ratio
                ),
                pcie=PcieTraffic("gpm", totals.out_bytes, totals.in_bytes, None, None, 0.0, 0.0),
                link=link,
                nvlink=self._nvlink(index),
                health=GpuHealth(
                    temperature_celsius=float(self.profile.temperature),
                    power_watts=self.profile.power_mw / 1000,
                ),
            )
            for index, (rates, totals) in enumerate(
                zip(self.rates[:first], self._totals[:first], strict=True)
            )
        )

    def install(self, control: Control, first: int = 0) -> None:
        """Make the GPUs of the block from ``first`` on these: their UUIDs, links and memory."""
        for index, identity in enumerate(self._identities, start=first):
            device = control.device(index)
            device.uuid = identity.uuid.encode()
            device.bus_id = _bus_id(index).encode()
            device.memory_used = self._used_bytes
            if not self.config.has_nvlink:
                device.nvlink_active = 0
        self.show(control, first)

    def show(self, control: Control, first: int = 0) -> None:
        """Let the rates of the last tick be in force in the block from now on: it is a tick behind."""
        for index, rates in enumerate(self.rates, start=first):
            control.traffic(index, transmit=rates.out_bytes_per_second, receive=rates.in_bytes_per_second)
            control.nvlink_traffic(
                index, transmit=rates.nvlink_bytes_per_second, receive=rates.nvlink_bytes_per_second
            )
            control.metric(index, _SM_METRIC, 100 * rates.sm_active_ratio)
            control.metric(index, _MEMORY_METRIC, 100 * rates.memory_bandwidth_ratio)
            device = control.device(index)
            device.gpu_util = round(100 * rates.busy_ratio)
            device.width_current = self.config.gpu.pcie_width

    def _identity(self, index: int) -> GpuIdentity:
        return GpuIdentity(
            f"GPU-00000000-0000-0000-{self.node:04d}-{index:012d}",
            index,
            self.profile.name,
            _bus_id(index),
            DRIVER_590.version,
        )

    @property
    def _total_bytes(self) -> int:
        return self.profile.memory_mib * _MIB

    @property
    def _reserved_bytes(self) -> float:
        return float(self.profile.reserved_mib * _MIB)

    @property
    def _used_bytes(self) -> int:
        """Weights, all KV blocks and the rest: an engine takes its memory at its start and keeps it."""
        config = self.config
        weights = config.model.weight_bytes / (config.tensor_parallel * config.expert_parallel)
        rest = ACTIVATION_BYTES_RATIO * config.gpu.memory_bytes
        return int(weights + config.total_blocks * config.block_bytes_gpu + rest)

    def _link(self) -> PcieLink:
        gpu = self.config.gpu
        return PcieLink(gpu.pcie_generation, gpu.pcie_width, self.profile.generation, self.profile.width)

    def _nvlink(self, index: int) -> NvLink | None:
        links = self.profile.nvlinks
        if not links:
            return None
        active = links if self.config.has_nvlink else 0
        moved = self._nvlink_read[index]
        return NvLink(moved, moved, active, links - active, read_at=self.epoch + self._nvlink_at)
