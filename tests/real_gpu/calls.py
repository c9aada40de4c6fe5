"""Every call that the backend makes of one GPU, asked once: its code, its value, and what it costs."""

# ruff: noqa: ANN401 - what ctypes gives is of no type
from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

from drill.fake_nvml import Feature

TIMES = 20
ALL_LINKS = 0xFFFFFFFF
MEMORY_V2 = 0x02000028
FIELDS: tuple[tuple[int, int], ...] = (
    *((field, 0) for field in (3, 4, 5, 6, *range(74, 84), 94, 95)),
    *((field, ALL_LINKS) for field in range(138, 142)),
    *((field, 0) for field in (*range(142, 146), 169, *range(173, 184), 185, 186, 197, 198, 230)),
)
DISPUTED_FIELDS = (251, 252, 253, 269, 270, 271)
"""What these mean has changed between drivers: held here, and read by nobody else."""

# a name in the recording, the binding's function, and its arguments after the handle
CALLS: tuple[tuple[str, str, tuple[object, ...]], ...] = (
    ("name", "nvmlDeviceGetName", ()),
    ("architecture", "nvmlDeviceGetArchitecture", ()),
    ("virtualization", "nvmlDeviceGetVirtualizationMode", ()),
    ("persistence", "nvmlDeviceGetPersistenceMode", ()),
    ("memory", "nvmlDeviceGetMemoryInfo", ()),
    ("memory_v2", "nvmlDeviceGetMemoryInfo", (MEMORY_V2,)),
    ("bar1", "nvmlDeviceGetBAR1MemoryInfo", ()),
    ("utilization", "nvmlDeviceGetUtilizationRates", ()),
    ("temperature", "nvmlDeviceGetTemperature", (0,)),
    ("power", "nvmlDeviceGetPowerUsage", ()),
    ("clock_reasons", "nvmlDeviceGetCurrentClocksEventReasons", ()),
    ("throttle_reasons", "nvmlDeviceGetCurrentClocksThrottleReasons", ()),
    ("generation", "nvmlDeviceGetCurrPcieLinkGeneration", ()),
    ("width", "nvmlDeviceGetCurrPcieLinkWidth", ()),
    ("max_generation", "nvmlDeviceGetMaxPcieLinkGeneration", ()),
    ("gpu_max_generation", "nvmlDeviceGetGpuMaxPcieLinkGeneration", ()),
    ("max_width", "nvmlDeviceGetMaxPcieLinkWidth", ()),
    ("replays", "nvmlDeviceGetPcieReplayCounter", ()),
    ("throughput_out", "nvmlDeviceGetPcieThroughput", (0,)),
    ("throughput_in", "nvmlDeviceGetPcieThroughput", (1,)),
    ("ecc_mode", "nvmlDeviceGetEccMode", ()),
    ("ecc_corrected", "nvmlDeviceGetTotalEccErrors", (0, 0)),
    ("ecc_uncorrected", "nvmlDeviceGetTotalEccErrors", (1, 0)),
    ("remapped_rows", "nvmlDeviceGetRemappedRows", ()),
    ("mig_mode", "nvmlDeviceGetMigMode", ()),
    ("gpm_support", "nvmlGpmQueryDeviceSupport", ()),
    ("event_types", "nvmlDeviceGetSupportedEventTypes", ()),
    ("samples", "nvmlDeviceGetSamples", (1, 0)),
    ("compute_processes", "nvmlDeviceGetComputeRunningProcesses_v3", ()),
    ("compute_processes_v2", "nvmlDeviceGetComputeRunningProcesses_v2", ()),
    *((f"nvlink_{link}", "nvmlDeviceGetNvLinkState", (link,)) for link in range(18)),
    ("nvlink_version", "nvmlDeviceGetNvLinkVersion", (0,)),
)

FEATURES = {
    Feature.MEMORY: ("memory",),
    Feature.UTILIZATION: ("utilization",),
    Feature.PCIE_THROUGHPUT: ("throughput_out",),
    Feature.PCIE_LINK: ("max_generation",),
    Feature.CLOCK_REASONS: ("throttle_reasons",),
    Feature.ECC: ("ecc_mode",),
    Feature.EVENTS: ("event_types",),
    Feature.PROCESSES: ("compute_processes", "compute_processes_v2"),
    Feature.SAMPLES: ("samples",),
    Feature.POWER: ("power",),
    Feature.NVLINK: ("nvlink_0",),
}
"""The calls of which one shows whether a GPU can do it; the others show in fields, and in what GPM's call says."""
FIELD_FEATURES = {
    Feature.PCIE_COUNTERS: 197,
    Feature.MEMORY_TEMPERATURE: 82,
    Feature.REMAPPED_ROWS: 142,
}
NOT_FOUND = 6
"""What samples and their like say where there is nothing new: the call is there."""


def answered(pynvml: Any, handle: object) -> dict[str, dict[str, Any]]:
    """Code, value and mean microseconds of each call, by its name here. Names of GPUs and people aren't asked."""
    return {name: _answer(pynvml, function, handle, arguments) for name, function, arguments in CALLS}


def field_answers(pynvml: Any, handle: object, fields: tuple[tuple[int, int], ...]) -> list[dict[str, Any]]:
    """Each field as the driver answers it, with the value by its type."""
    members = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
    told = []
    for field in pynvml.nvmlDeviceGetFieldValues(handle, list(fields)):
        known = field.nvmlReturn == 0 and field.valueType < len(members)
        told.append(
            {
                "id": field.fieldId,
                "scope": field.scopeId,
                "code": field.nvmlReturn,
                "type": field.valueType,
                "value": getattr(field.value, members[field.valueType]) if known else 0,
                "timestamp": field.timestamp,
            }
        )
    return told


def microseconds(call: Callable[[], object], times: int = TIMES) -> float:
    """What one call costs on average."""
    began = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - began) / times * 1e6


def code_of(pynvml: Any, call: Callable[[], object]) -> int:
    """The return code of a call; -1 where the binding has its own idea of an error."""
    try:
        call()
    except pynvml.NVMLError as error:
        return int(error.value)
    except (pynvml.NVMLLibraryMismatchError, AttributeError, TypeError):
        return -1
    return 0


def _answer(pynvml: Any, function: str, handle: object, arguments: tuple[object, ...]) -> dict[str, Any]:
    def call() -> Any:
        return getattr(pynvml, function)(handle, *arguments)

    code = code_of(pynvml, call)
    if code:
        return {"code": code}
    times = 1 if "Throughput" in function else TIMES
    return {"code": 0, "value": plain(call()), "microseconds": round(microseconds(call, times), 2)}


def plain(value: Any) -> Any:
    """What JSON can hold of what ctypes gives."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, ctypes.Structure):
        return {name: plain(getattr(value, name)) for name, *_ in value._fields_}
    if isinstance(value, list | tuple | ctypes.Array):
        return len(value) if value and not isinstance(value[0], int) else [plain(each) for each in value]
    if isinstance(value, int | float | str) or value is None:
        return value
    return plain(getattr(value, "value", str(type(value).__name__)))
