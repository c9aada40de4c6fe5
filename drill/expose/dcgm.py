"""GPUs as dcgm-exporter shows them: its default counters that a drill's GPUs have something to say to, and PCIe rates.

Names, labels, types and number formats follow dcgm-exporter 4.8 (its counters files and templates). It collects at
an interval of its own and shows the same numbers until then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from exporter.gpu_sample import GpuIdentity, GpuSample

_MIB = float(1 << 20)
_KIB_A_MILLISECOND = 1000.0 * 1024.0
"""What ``NVLINK_BANDWIDTH_TOTAL`` is in, whatever its name says (docs/gpus.md)."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Means over a collection."""

    pcie_out_bytes_per_second: float = 0.0
    pcie_in_bytes_per_second: float = 0.0
    nvlink_bytes_per_second: float = 0.0
    """Both directions together."""


Field = tuple[str, str, str, Callable[[GpuSample, Rates], str | None]]


def _utilisation(
    name: str, form: str = "{:.6f}", times: float = 1.0
) -> Callable[[GpuSample, Rates], str | None]:
    def read(sample: GpuSample, _: Rates) -> str | None:
        value = getattr(sample.utilisation, name, None)
        return None if value is None else form.format(value * times)

    return read


def _health(name: str, form: str) -> Callable[[GpuSample, Rates], str | None]:
    def read(sample: GpuSample, _: Rates) -> str | None:
        value = getattr(sample.health, name, None)
        return None if value is None else form.format(value)

    return read


def _memory(part: Callable[[GpuSample], float]) -> Callable[[GpuSample, Rates], str | None]:
    def read(sample: GpuSample, _: Rates) -> str | None:
        return None if sample.memory is None else f"{part(sample) / _MIB:.0f}"

    return read


def _free(sample: GpuSample) -> float:
    memory = sample.memory
    return 0.0 if memory is None else memory.total_bytes - memory.used_bytes - (memory.reserved_bytes or 0.0)


def _link(name: str) -> Callable[[GpuSample, Rates], str | None]:
    return lambda sample, _: None if sample.link is None else str(getattr(sample.link, name))


_FIELDS: tuple[Field, ...] = (
    (
        "DEV_GPU_TEMP",
        "gauge",
        "GPU temperature (in C).",
        _health("temperature_celsius", "{:.0f}"),
    ),
    (
        "DEV_POWER_USAGE",
        "gauge",
        "Power draw (in W).",
        _health("power_watts", "{:.6f}"),
    ),
    (
        "DEV_GPU_UTIL",
        "gauge",
        "GPU utilization (in %).",
        _utilisation("busy_ratio", "{:.0f}", 100.0),
    ),
    ("DEV_FB_FREE", "gauge", "Framebuffer memory free (in MiB).", _memory(_free)),
    (
        "DEV_FB_USED",
        "gauge",
        "Framebuffer memory used (in MiB).",
        _memory(lambda sample: sample.memory.used_bytes if sample.memory else 0.0),
    ),
    (
        "DEV_FB_RESERVED",
        "gauge",
        "Framebuffer memory reserved (in MiB).",
        _memory(lambda sample: (sample.memory.reserved_bytes or 0.0) if sample.memory else 0.0),
    ),
    (
        "DEV_NVLINK_BANDWIDTH_TOTAL",
        "counter",
        "Total number of NVLink bandwidth counters for all lanes.",
        lambda sample, rates: (
            f"{rates.nvlink_bytes_per_second / _KIB_A_MILLISECOND:.0f}" if sample.nvlink else None
        ),
    ),
    ("DEV_PCIE_LINK_GEN", "gauge", "PCIe generation now.", _link("generation")),
    ("DEV_PCIE_LINK_WIDTH", "gauge", "PCIe lanes now.", _link("width")),
    ("DEV_PCIE_MAX_LINK_GEN", "gauge", "PCIe generation at most.", _link("max_generation")),
    ("DEV_PCIE_MAX_LINK_WIDTH", "gauge", "PCIe lanes at most.", _link("max_width")),
    (
        "PROF_SM_ACTIVE",
        "gauge",
        "Ratio of cycles in which an SM has a warp.",
        _utilisation("sm_active_ratio"),
    ),
    (
        "PROF_DRAM_ACTIVE",
        "gauge",
        "Ratio of cycles the device memory interface is active sending or receiving data.",
        _utilisation("memory_bandwidth_ratio"),
    ),
    (
        "PROF_PCIE_TX_BYTES",
        "gauge",
        "The rate of data transmitted over the PCIe bus, headers and payload, in bytes per second.",
        lambda _, rates: f"{rates.pcie_out_bytes_per_second:.0f}",
    ),
    (
        "PROF_PCIE_RX_BYTES",
        "gauge",
        "The rate of data received over the PCIe bus, headers and payload, in bytes per second.",
        lambda _, rates: f"{rates.pcie_in_bytes_per_second:.0f}",
    ),
)


class Dcgm:
    """dcgm-exporter of one machine, which collects each ``interval_seconds``."""

    def __init__(self, hostname: str, interval_seconds: float = 30.0) -> None:
        self._hostname = hostname
        self._interval = interval_seconds
        self._collected: tuple[GpuSample, ...] = ()
        self._rates: list[Rates] = []
        self._families: dict[str, list[str]] = {}

    def see(self, samples: Sequence[GpuSample]) -> None:
        """The machine's GPUs at an instant; to be told at least as often as it collects."""
        if not samples:
            return
        before = self._collected
        if before and samples[0].at - before[0].at < self._interval:
            return
        self._collected = tuple(samples)
        if not before:
            before, self._rates = self._collected, [Rates()] * len(samples)
        self._rates = [_rates(*each) for each in zip(before, self._collected, self._rates, strict=True)]
        self._families = self._written(self._rates)

    def page(self) -> str:
        """What it would answer on ``/metrics``; empty before it first collected."""
        return together([self])

    def lines(self, head: str) -> list[str]:
        """Those of one family, by its HELP and TYPE lines."""
        return self._families.get(head, [])

    def _written(self, rates: Sequence[Rates]) -> dict[str, list[str]]:
        families = {}
        for name, kind, text, read in _FIELDS:
            values = [
                (sample, value)
                for sample, rate in zip(self._collected, rates, strict=True)
                if sample.up and (value := read(sample, rate)) is not None
            ]
            if values:
                families[_head(name, kind, text)] = [
                    f"DCGM_FI_{name}{self._labels(sample.identity)} {value}\n" for sample, value in values
                ]
        return families

    def _labels(self, gpu: GpuIdentity) -> str:
        return (
            f'{{gpu="{gpu.device_index}",UUID="{gpu.uuid}",pci_bus_id="{gpu.pci_bus_id}",'
            f'device="nvidia{gpu.device_index}",modelName="{gpu.name}",hostname="{self._hostname}",DCGM_FI_DRIVER_VERSION="{gpu.driver}"}}'
        )


def together(exporters: Sequence[Dcgm]) -> str:
    """One page of several machines, as whoever gathers them answers; empty before the first has collected."""
    text = ""
    for name, kind, words, _ in _FIELDS:
        head = _head(name, kind, words)
        lines = [line for each in exporters for line in each.lines(head)]
        text += "".join([head, *lines]) if lines else ""
    return text


def _head(name: str, kind: str, text: str) -> str:
    return f"# HELP DCGM_FI_{name} {text}\n# TYPE DCGM_FI_{name} {kind}\n"


def _rates(before: GpuSample, now: GpuSample, last: Rates) -> Rates:
    """``last``: of the collection before, whose NVLink rate holds until its totals are read anew."""
    seconds = now.at - before.at
    if seconds <= 0 or before.pcie is None or now.pcie is None:
        return Rates()

    def rise(then: float | None, later: float | None) -> float:
        return 0.0 if then is None or later is None else max(0.0, later - then)

    nvlink = last.nvlink_bytes_per_second
    if before.nvlink is not None and now.nvlink is not None:
        since, at = (each.nvlink.read_at or each.at for each in (before, now) if each.nvlink)
        if at > since:
            moved = rise(before.nvlink.out_bytes_total, now.nvlink.out_bytes_total)
            moved += rise(before.nvlink.in_bytes_total, now.nvlink.in_bytes_total)
            nvlink = moved / (at - since)
    return Rates(
        rise(before.pcie.out_bytes_total, now.pcie.out_bytes_total) / seconds,
        rise(before.pcie.in_bytes_total, now.pcie.in_bytes_total) / seconds,
        nvlink,
    )
