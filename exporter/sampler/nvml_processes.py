"""Who runs on a GPU."""

from __future__ import annotations

from typing import Any

from exporter.gpu_sample import GpuProcess
from exporter.sampler.backend import ReadError, Remedy
from exporter.sampler.nvml_parts import Parts

_CALLS = ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2")
"""The second is for drivers before 510, and for those of 535 whose third has another layout."""
_MOST_PROCESSES = 1 << 22
"""Linux gives no larger process id."""


def read_processes(parts: Parts, total_bytes: float | None) -> tuple[GpuProcess, ...]:
    """The processes that compute on it, ``total_bytes`` of memory being there. Raises ReadError.

    A list with an entry that can't be true was laid out otherwise than its version says, as by drivers
    535.43 to 535.86 (wookayin/gpustat#161): none of it is believed.
    """
    wrong = ReadError("not_supported", Remedy.DROP, "the driver lists no processes")
    for call in _CALLS:
        if parts.is_never(call):
            continue
        try:
            listed = parts.call(call)
        except ReadError as error:
            if error.remedy != Remedy.DROP:
                raise
            parts.note(call, error)
            continue
        processes = tuple(_process(one, total_bytes) for one in listed)
        if all(0 < one.pid <= _MOST_PROCESSES for one in processes):
            return processes
        wrong = ReadError("bad_value", Remedy.RETRY, f"{call}: process ids that can't be")
    raise wrong


def _process(listed: Any, total_bytes: float | None) -> GpuProcess:  # noqa: ANN401 - the binding's
    used = listed.usedGpuMemory
    believed = used is not None and (total_bytes is None or used <= total_bytes)
    return GpuProcess(int(listed.pid), float(used) if believed else None)
