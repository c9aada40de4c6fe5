"""What dcgm-exporter calls things: the one home of its field names, units, labels and blank values.

Sources: dcgm-exporter's ``etc/*.csv`` and templates up to 4.8, ``dcgm_fields.h`` and the cache manager of
DCGM 4.6. A stem is a name without ``DCGM_FI_DEV_``, ``DCGM_FI_`` or ``DCGM_``, in capitals: the exporter
shows the names of its CSV file as they stand there, DCGM 4.6 gave many fields a second name, and the names
of its 1.x are in small letters. The TYPE that the page gives is never asked; rates are called counters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from exporter.gpu_sample import GpuIdentity
from exporter.pcie import link_bytes_per_second

MIB = float(1 << 20)
_NANOSECOND = 1e-9

_PREFIX = re.compile(r"^DCGM_(?:FI_(?:DEV_)?)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One quantity. ``stems`` are its spellings, ``scale`` makes base units of what they hold.

    ``most`` is the largest value that can be, before scaling; a larger one is a fault of the reader's.
    ``of_device``: asked of a MIG instance, DCGM answers with its GPU's. ``detail`` tells readings of one
    group apart, ``total`` is whether it only ever rises.
    """

    group: str
    stems: tuple[str, ...]
    scale: float = 1.0
    most: float = 1e18
    of_device: bool = False
    detail: str = ""
    total: bool = False


# MiB whatever HELP says: DCGM divides by 1024 twice. No GPU has 16 TiB.
FB_TOTAL = Field("memory", ("FB_TOTAL",), MIB, 1 << 24)
FB_USED = Field("memory", ("FB_USED",), MIB, 1 << 24)
FB_FREE = Field("memory", ("FB_FREE",), MIB, 1 << 24)
FB_RESERVED = Field("memory", ("FB_RESERVED",), MIB, 1 << 24)

# Still per cent under its new name. 4294967295 and 1 000 to 200 000 were seen (DCGM#199, go-dcgm#75).
GPU_UTIL = Field("utilisation", ("GPU_UTIL", "GPU_UTIL_RATIO", "GPU_UTILIZATION"), 0.01, 100)
ENGINE_ACTIVE = Field("utilisation", ("PROF_GR_ENGINE_ACTIVE", "PROF_GR_ENGINE_UTIL_RATIO"), most=1)
SM_ACTIVE = Field("utilisation", ("PROF_SM_ACTIVE", "PROF_SM_UTIL_RATIO"), most=1)
DRAM_ACTIVE = Field("utilisation", ("PROF_DRAM_ACTIVE", "PROF_DRAM_UTIL_RATIO"), most=1)

# Bytes a second, packet headers included, though some CSV files have them as counters (dcgm-exporter#87, #88).
PCIE_OUT_RATE = Field("pcie", ("PROF_PCIE_TX_BYTES",))
PCIE_IN_RATE = Field("pcie", ("PROF_PCIE_RX_BYTES",))
PCIE_OUT_TOTAL = Field("pcie", ("PROF_PCIE_TX_BYTES_TOTAL",), total=True)
PCIE_IN_TOTAL = Field("pcie", ("PROF_PCIE_RX_BYTES_TOTAL",), total=True)
# NVML's window of 20 ms in KB/s, deprecated; DCGM 4 no longer answers it. KB taken as 1000.
PCIE_OUT_WINDOW = Field("pcie", ("PCIE_TX_THROUGHPUT",), 1000.0)
PCIE_IN_WINDOW = Field("pcie", ("PCIE_RX_THROUGHPUT",), 1000.0)

NVLINK_OUT_TOTAL = Field("nvlink", ("NVLINK_COUNT_TX_BYTES", "NVLINK_TX_BYTES_TOTAL"), total=True)
NVLINK_IN_TOTAL = Field("nvlink", ("NVLINK_COUNT_RX_BYTES", "NVLINK_RX_BYTES_TOTAL"), total=True)
NVLINK_OUT_RATE = Field("nvlink", ("PROF_NVLINK_TX_BYTES",))
NVLINK_IN_RATE = Field("nvlink", ("PROF_NVLINK_RX_BYTES",))
# A rate in spite of its name: the rise of NVML's KiB over the time since the last collection, over 1000.
_KIB_A_MILLISECOND = 1000.0 * 1024.0
NVLINK_OUT_DATA = Field(
    "nvlink", ("NVLINK_TX_BANDWIDTH_TOTAL", "NVLINK_TX_THROUGHPUT_TOTAL"), _KIB_A_MILLISECOND
)
NVLINK_IN_DATA = Field(
    "nvlink", ("NVLINK_RX_BANDWIDTH_TOTAL", "NVLINK_RX_THROUGHPUT_TOTAL"), _KIB_A_MILLISECOND
)
NVLINK_DATA = Field("nvlink", ("NVLINK_BANDWIDTH_TOTAL", "NVLINK_THROUGHPUT_TOTAL"), _KIB_A_MILLISECOND)

LINK_GENERATION = Field("link", ("PCIE_LINK_GEN",), most=10, of_device=True)
LINK_WIDTH = Field("link", ("PCIE_LINK_WIDTH",), most=64, of_device=True)
MAX_LINK_GENERATION = Field("link", ("PCIE_MAX_LINK_GEN",), most=10, of_device=True)
MAX_LINK_WIDTH = Field("link", ("PCIE_MAX_LINK_WIDTH",), most=64, of_device=True)

TEMPERATURE = Field("health", ("GPU_TEMP", "GPU_TEMP_CELSIUS"), most=200, of_device=True)
POWER = Field("health", ("POWER_USAGE", "BOARD_POWER_WATTS"), most=1e5, of_device=True)
ENERGY = Field("health", ("TOTAL_ENERGY_CONSUMPTION",), 0.001, of_device=True, total=True)
RECOVERY_ACTION = Field(
    "health", ("GET_GPU_RECOVERY_ACTION", "GPU_RECOVERY_ACTION"), most=100, of_device=True
)
PERSISTENCE = Field("health", ("PERSISTENCE_MODE", "GPU_PERSISTENCE_MODE"), most=1, of_device=True)
XID = Field("health", ("XID_ERRORS", "XID_ERROR"), most=100_000, of_device=True)


def _health(detail: str, *stems: str, scale: float = 1.0, total: bool = True) -> Field:
    return Field("health", stems, scale, of_device=True, detail=detail, total=total)


PCIE_ERRORS = (
    _health("replay", "PCIE_REPLAY_COUNTER", "PCIE_REPLAY_TOTAL"),
    _health("correctable", "PCIE_COUNT_CORRECTABLE_ERRORS", "PCIE_CORRECTABLE_ERROR_TOTAL"),
)
ECC_ERRORS = (
    _health("corrected", "ECC_SBE_VOL_TOTAL"),
    _health("uncorrected", "ECC_DBE_VOL_TOTAL"),
)
REMAPPED_ROWS = (
    _health("correctable", "CORRECTABLE_REMAPPED_ROWS", "ROW_REMAP_CORRECTABLE_TOTAL", total=False),
    _health("uncorrectable", "UNCORRECTABLE_REMAPPED_ROWS", "ROW_REMAP_UNCORRECTABLE_TOTAL", total=False),
    _health("pending", "ROW_REMAP_PENDING", total=False),
    _health("failed", "ROW_REMAP_FAILURE", "ROW_REMAP_FAILED", total=False),
)
# Nanoseconds; the microseconds of old CSV files and Python constants were a slip (DCGM#266).
THROTTLE = (
    _health("power", "POWER_VIOLATION", "CLOCKS_EVENT_REASON_SW_POWER_CAP_NS", scale=_NANOSECOND),
    _health("thermal", "THERMAL_VIOLATION", scale=_NANOSECOND),
    _health("sync_boost", "SYNC_BOOST_VIOLATION", "CLOCKS_EVENT_REASON_SYNC_BOOST_NS", scale=_NANOSECOND),
    _health("board_limit", "BOARD_LIMIT_VIOLATION", scale=_NANOSECOND),
    _health("low_utilization", "LOW_UTIL_VIOLATION", scale=_NANOSECOND),
    _health("reliability", "RELIABILITY_VIOLATION", scale=_NANOSECOND),
    _health("application_clocks", "TOTAL_APP_CLOCKS_VIOLATION", scale=_NANOSECOND),
    _health("base_clocks", "TOTAL_BASE_CLOCKS_VIOLATION", scale=_NANOSECOND),
    _health("software_thermal", "CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS", scale=_NANOSECOND),
    _health("hardware_thermal", "CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS", scale=_NANOSECOND),
    _health("power_brake", "CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS", scale=_NANOSECOND),
)

_FIELDS: tuple[Field, ...] = (
    *(FB_TOTAL, FB_USED, FB_FREE, FB_RESERVED),
    *(GPU_UTIL, ENGINE_ACTIVE, SM_ACTIVE, DRAM_ACTIVE),
    *(PCIE_OUT_RATE, PCIE_IN_RATE, PCIE_OUT_TOTAL, PCIE_IN_TOTAL, PCIE_OUT_WINDOW, PCIE_IN_WINDOW),
    *(NVLINK_OUT_TOTAL, NVLINK_IN_TOTAL, NVLINK_OUT_RATE, NVLINK_IN_RATE),
    *(NVLINK_OUT_DATA, NVLINK_IN_DATA, NVLINK_DATA),
    *(LINK_GENERATION, LINK_WIDTH, MAX_LINK_GENERATION, MAX_LINK_WIDTH),
    *(TEMPERATURE, POWER, ENERGY, RECOVERY_ACTION, PERSISTENCE, XID),
    *(*PCIE_ERRORS, *ECC_ERRORS, *REMAPPED_ROWS, *THROTTLE),
)
_BY_STEM = {stem: field for field in _FIELDS for stem in field.stems}

_FASTEST_LINK = link_bytes_per_second(6, 16) or 0.0
_LINK_SLACK = 1.1
"""What is counted beyond the line rate is wrong; below that it may be how the time was taken."""

_INT64_BLANKS = 9.2e18
"""Blank, not found, not supported, no permission: 0x7ffffffffffffff0 and the next three, which a float rounds."""
_OTHER_BLANKS = frozenset(blank + more for blank in (140737488355328.0, 2147483632.0) for more in range(4))
"""The same four as a double and as an int32 (0x7ffffff0)."""
_TEXT_BLANK = re.compile(r"^<<<.*>>>$")

_OF_A_POD = frozenset(
    {
        "pod",
        "pod_name",
        "pod_uid",
        "container",
        "container_name",
        "namespace",
        "pod_namespace",
        "vgpu",
        "hpc_job",
    }
)
_OF_A_PART = frozenset({"nvlink", "nvswitch", "cpu", "cpucore"})
"""Series of a link, a switch or a processor: no GPU's as a whole."""


def recognises(names: Iterable[str]) -> bool:
    """Whether a page with series of these names is dcgm-exporter's."""
    return any(_PREFIX.match(name) for name in names)


def field_of(series_name: str) -> Field | None:
    """What a series of this name holds; None for one that means nothing to us."""
    stem, prefixes = _PREFIX.subn("", series_name.upper(), count=1)
    return _BY_STEM.get(stem) if prefixes else None


def is_blank(value: float) -> bool:
    """Whether a value stands for "not known"; negative and not a number are nothing else."""
    return not 0.0 <= value < _INT64_BLANKS or value in _OTHER_BLANKS


def most_bytes_per_second(generation: float | None, width: float | None) -> float:
    """More than this goes over no link of that kind; of an unknown one, over none there is."""
    known = link_bytes_per_second(int(generation or 0), int(width or 0))
    return _LINK_SLACK * (known or _FASTEST_LINK)


def is_of_a_pod(labels: Mapping[str, str]) -> bool:
    """Whether a series tells of one who uses the GPU, perhaps of many: a copy, or that one's part."""
    return not _OF_A_POD.isdisjoint(labels)


def identity_of(labels: Mapping[str, str]) -> GpuIdentity | None:
    """Whose a series is: a GPU, or a MIG instance, which is called by its GPU and its number.

    DCGM doesn't tell the UUID of an instance. None for what is no GPU, or one that bears no UUID.
    """
    uuid = _text(labels, "UUID", "uuid")
    if not uuid or not _OF_A_PART.isdisjoint(labels):
        return None
    instance = _number(labels.get("GPU_I_ID", ""))
    which = GpuIdentity(
        uuid,
        _number(labels.get("gpu", "")),
        _text(labels, "modelName", "model_name"),
        _text(labels, "pci_bus_id"),
        _text(labels, "DCGM_FI_DRIVER_VERSION"),
    )
    if instance is None:
        return which
    which = which._replace(parent_uuid=uuid, gpu_instance=instance)
    return which._replace(uuid=which.instance_number)


def _text(labels: Mapping[str, str], *names: str) -> str:
    found = next((labels[name] for name in names if labels.get(name)), "")
    return "" if _TEXT_BLANK.match(found) else found


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 10 else None  # noqa: PLR2004 - no index has more
