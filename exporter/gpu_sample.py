"""What is known of one GPU at one instant, whoever read it: NVML's sampler or dcgm-exporter.

Named tuples, not dataclasses: the sampler's process writes them to its pipe as they are and is to stay
below 20 MB, of which the dataclasses module alone would take one and a half. ``None`` means not known,
never zero. ``out`` is away from the GPU (NVML's TX), ``in`` towards it (RX), as everywhere in the house.
"""

from __future__ import annotations

from typing import NamedTuple

from exporter.pcie import link_bytes_per_second

MOST_XIDS = 1000
"""Numbers told of one GPU; drivers know some 150. What comes beyond is counted as ``OTHER_XID``."""
OTHER_XID = -1
GONE_SECONDS = 3600.0
"""A missing GPU is told of for this long; after that it was taken out on purpose, or nobody cares."""


class GpuIdentity(NamedTuple):
    """Which GPU. ``uuid`` is what it is known by; the rest is for people and for joining.

    ``device_index`` counts in PCI order, which is not CUDA's. ``parent_uuid`` is set on a MIG instance, which has
    memory of its own and nothing else; ``gpu_instance`` is then its GPU instance.
    """

    uuid: str
    device_index: int | None = None
    name: str = ""
    pci_bus_id: str = ""
    driver: str = ""
    parent_uuid: str = ""
    gpu_instance: int | None = None

    @property
    def instance_number(self) -> str:
        """What a MIG instance is called by who doesn't know its UUID, as dcgm-exporter; else empty."""
        return "" if self.gpu_instance is None else f"{self.parent_uuid}/{self.gpu_instance}"


class GpuMemory(NamedTuple):
    """Device memory in bytes. ``reserved_bytes`` is the driver's own part, not in ``used_bytes`` where known."""

    total_bytes: float
    used_bytes: float
    reserved_bytes: float | None = None


class GpuUtilisation(NamedTuple):
    """Shares of time, 0 to 1.

    ``busy_ratio``: at least one kernel ran. ``sm_active_ratio``: how busy the SMs were, from profiling
    counters. ``memory_bandwidth_ratio``: of the device memory's bandwidth.
    """

    busy_ratio: float | None = None
    sm_active_ratio: float | None = None
    memory_bandwidth_ratio: float | None = None


class PcieTraffic(NamedTuple):
    """What went over PCIe, packet headers included.

    ``*_bytes_total`` are 64-bit running totals since the reader began, or ``*_bytes_per_second`` is what a
    source that only knows rates tells. ``source`` is one of gpm, counter, dcgm, window.
    ``ambiguous_intervals_total`` counts intervals whose bytes could not be told and are in no total;
    ``disagreements_total`` those where one source said nothing moved and another that something did.
    """

    source: str
    out_bytes_total: float | None = None
    in_bytes_total: float | None = None
    out_bytes_per_second: float | None = None
    in_bytes_per_second: float | None = None
    ambiguous_intervals_total: float | None = None
    disagreements_total: float | None = None


class PcieLink(NamedTuple):
    """The PCIe link: what it runs at now and what GPU and slot can do at most."""

    generation: int | None = None
    width: int | None = None
    max_generation: int | None = None
    max_width: int | None = None

    @property
    def max_bytes_per_second(self) -> float | None:
        """Of each direction, after encoding, at the larger of what it runs at and what it can."""
        generation = _larger(self.generation, self.max_generation)
        width = _larger(self.width, self.max_width)
        return None if generation is None or width is None else link_bytes_per_second(generation, width)


class NvLink(NamedTuple):
    """All NVLinks of a GPU together, data without protocol where the driver tells it apart.

    ``*_bytes_total`` or ``*_bytes_per_second``, as of PCIe. ``bytes_per_second`` is both directions
    together, from a source that can't tell them apart. ``source`` is dcgm, or empty for the driver itself:
    they count from different places. ``read_at`` is when it was read, None: at the time of its sample.
    """

    out_bytes_total: float | None = None
    in_bytes_total: float | None = None
    links_active: int | None = None
    links_inactive: int | None = None
    out_bytes_per_second: float | None = None
    in_bytes_per_second: float | None = None
    bytes_per_second: float | None = None
    source: str = ""
    read_at: float | None = None


class GpuHealth(NamedTuple):
    """How the GPU fares. Pairs are (what, running total), all since the driver loaded unless said otherwise.

    ``pcie_errors_total``: replay, correctable, non_fatal, fatal, ...; ``ecc_errors_total``: corrected,
    uncorrected; ``remapped_rows``: correctable, uncorrectable, pending, failed (numbers of now);
    ``throttle_seconds_total`` by reason. ``recovery_action`` is the driver's code, 0 for none.
    """

    temperature_celsius: float | None = None
    power_watts: float | None = None
    pcie_errors_total: tuple[tuple[str, float], ...] = ()
    ecc_errors_total: tuple[tuple[str, float], ...] = ()
    remapped_rows: tuple[tuple[str, float], ...] = ()
    throttle_seconds_total: tuple[tuple[str, float], ...] = ()
    recovery_action: int | None = None
    persistence_mode: bool | None = None


class GpuProcess(NamedTuple):
    """One process on the GPU; ``memory_bytes`` None where the driver may not tell."""

    pid: int
    memory_bytes: float | None = None


class GpuSample(NamedTuple):
    """One GPU at ``at`` (seconds since the epoch; on the sampler's pipe, CLOCK_MONOTONIC).

    ``up`` is False for a GPU that is known and can't be read any more: then it has no groups, and
    ``down_because`` is one of the fixed reasons. ``reader_started_at`` changes where totals began anew.
    ``xids_total`` are (XID, events seen by the reader), ``xid_last_at`` the newest one's time.
    ``errors_total`` are ((group, reason), failed reads).
    """

    at: float
    identity: GpuIdentity
    up: bool = True
    down_because: str = ""
    reader_started_at: float = 0.0
    memory: GpuMemory | None = None
    utilisation: GpuUtilisation | None = None
    pcie: PcieTraffic | None = None
    link: PcieLink | None = None
    nvlink: NvLink | None = None
    health: GpuHealth | None = None
    processes: tuple[GpuProcess, ...] | None = None
    xids_total: tuple[tuple[int, float], ...] = ()
    xid_last_at: float | None = None
    errors_total: tuple[tuple[str, str, float], ...] = ()

    @property
    def read_seconds(self) -> float:
        """0: the counts are of ``at`` itself."""
        return 0.0

    def restarted_since(self, earlier: object) -> bool | None:
        """Whether the reader began anew: its totals then count from somewhere else."""
        if not isinstance(earlier, GpuSample):
            return None
        return self.reader_started_at != earlier.reader_started_at

    def filled_from(self, other: GpuSample) -> GpuSample:
        """Itself, with the groups it lacks as ``other`` has them."""
        lacks = {name: getattr(other, name) for name in _GROUPS if getattr(self, name) is None}
        return self._replace(**lacks) if self.up and other.up else self

    def sharing(self, earlier: GpuSample) -> GpuSample:
        """Itself, with the very groups of ``earlier`` that say the same: most change but every few seconds."""
        return GpuSample._make(old if new == old else new for new, old in zip(self, earlier, strict=True))


_GROUPS = ("memory", "utilisation", "pcie", "link", "nvlink", "health", "processes")


def _larger(one: int | None, other: int | None) -> int | None:
    known = [each for each in (one, other) if each]
    return max(known) if known else None
