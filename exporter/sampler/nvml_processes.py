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
    implausible = None
    for call in _CALLS:
        listed = parts.known(call, lambda call=call: parts.call(call))  # type: ignore[misc]
        if listed is None:
            continue
        processes = tuple(_process(one, total_bytes) for one in listed)
        if all(0 < one.pid <= _MOST_PROCESSES for one in processes):
            return processes
        implausible = ReadError("bad_value", Remedy.RETRY, f"{call}: process ids that can't be")
    raise implausible or parts.refusal(*_CALLS) or ReadError("no_data", Remedy.SKIP, "processes: none told")


def _process(listed: Any, total_bytes: float | None) -> GpuProcess:  # noqa: ANN401 - the binding's
    used = listed.usedGpuMemory
    believed = used is not None and (total_bytes is None or used <= total_bytes)
    return GpuProcess(int(listed.pid), float(used) if believed else None)
