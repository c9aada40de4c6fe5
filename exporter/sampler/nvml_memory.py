"""Device memory: the second version of the call where there is one, the first where not."""

from __future__ import annotations

from struct import Struct

from exporter.gpu_sample import GpuMemory
from exporter.sampler.backend import ReadError, Remedy
from exporter.sampler.nvml_parts import Parts

_LAYOUT = Struct("@I4Q")
"""nvmlMemory_v2_t: version, total, reserved, free, used (nvml.h)."""
_ASKED = _LAYOUT.pack(2 << 24 | _LAYOUT.size, 0, 0, 0, 0)
_CALL = "nvmlDeviceGetMemoryInfo"
_SECOND = "memory_v2"


def read_memory(parts: Parts) -> GpuMemory:
    """Memory now. Raises ReadError; with DROP where the GPU has no memory of its own to tell of (GB10)."""
    if not parts.is_never(_SECOND):
        try:
            return _of_second(parts)
        except ReadError as error:
            if error.remedy != Remedy.DROP:
                raise
            parts.note(_SECOND, error)
    first = parts.call(_CALL)
    return _checked(first.total, first.used, None)


def _of_second(parts: Parts) -> GpuMemory:
    told = parts.library.filled(f"{_CALL}_v2", parts.handle, _ASKED)
    _, total, reserved, free, used = _LAYOUT.unpack(told)
    if reserved and used + free == total:
        used -= reserved  # nvml.h reads as if it were contained, captures show that it isn't
    return _checked(total, used, reserved)


def _checked(total: float, used: float, reserved: float | None) -> GpuMemory:
    if total <= 0 or not 0 <= used <= total or (reserved or 0) > total:
        raise ReadError(
            "bad_value", Remedy.RETRY, f"{_CALL}: {used} of {total} bytes used, {reserved} reserved"
        )
    return GpuMemory(float(total), float(used), None if reserved is None else float(reserved))
