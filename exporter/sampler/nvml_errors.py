"""What an NVML return code means: one of the words of ``reasons``, and what it costs.

Several codes share a word: it says what a person would do about it, the text says which call and which code.

Codes are those of nvml.h (nvmlReturn_t); the classes follow what exporters of long standing do about them.
"""

from __future__ import annotations

from exporter.sampler.backend import ReadError, Remedy
from exporter.sampler.reasons import Reason, advised

INVALID_ARGUMENT = 2
NO_PERMISSION = 4
NOT_FOUND = 6
TIMEOUT = 10
GPU_IS_LOST = 15

_POLICY: dict[int, tuple[str, str]] = {
    1: (Reason.DRIVER_LOST, Remedy.REOPEN),
    2: ("invalid_argument", Remedy.RETRY),
    3: (Reason.NOT_SUPPORTED, Remedy.DROP),
    # a permission comes with a new start, not while running
    4: (Reason.NO_PERMISSION, Remedy.DROP),
    6: ("not_found", Remedy.SKIP),
    7: ("insufficient_size", Remedy.RETRY),
    9: (Reason.NO_DRIVER, Remedy.REOPEN),
    10: (Reason.TIMEOUT, Remedy.RETRY),
    11: ("irq_issue", Remedy.RETRY),
    12: (Reason.NO_LIBRARY, Remedy.REOPEN),
    13: (Reason.NOT_SUPPORTED, Remedy.DROP),
    14: (Reason.GPU_ILL, Remedy.DEVICE_DOWN),
    # the others are not opened anew for the sake of one
    15: (Reason.GPU_LOST, Remedy.DEVICE_DOWN),
    16: (Reason.GPU_ILL, Remedy.DEVICE_DOWN),
    # the operating system took the device file away, as by a cgroup
    17: (Reason.NO_PERMISSION, Remedy.DEVICE_DOWN),
    18: (Reason.VERSION_MISMATCH, Remedy.REOPEN),
    19: ("in_use", Remedy.RETRY),
    20: ("out_of_memory", Remedy.RETRY),
    21: ("no_data", Remedy.SKIP),
    22: (Reason.NOT_SUPPORTED, Remedy.DROP),
    23: ("insufficient_resources", Remedy.RETRY),
    25: (Reason.NOT_SUPPORTED, Remedy.DROP),
    26: (Reason.NOT_SUPPORTED, Remedy.DROP),
    27: ("not_ready", Remedy.SKIP),
    28: (Reason.GONE, Remedy.REOPEN),
    999: (Reason.UNKNOWN, Remedy.RETRY),
}
_OTHER_CODE = ("other", Remedy.RETRY)
_BY_CLASS = {
    # the binding's own, and no NVMLError: an unversioned call whose newest version the driver lacks
    "NVMLLibraryMismatchError": (Reason.NOT_SUPPORTED, Remedy.DROP),
    # a binding too old for the call or for one of its arguments
    "AttributeError": (Reason.NOT_SUPPORTED, Remedy.DROP),
    "TypeError": (Reason.NOT_SUPPORTED, Remedy.DROP),
}
_UNEXPECTED = ("unexpected", Remedy.RETRY)

_NAMES = {
    1: "uninitialized",
    2: "invalid argument",
    3: "not supported",
    4: "no permission",
    5: "already initialized",
    6: "not found",
    7: "insufficient size",
    8: "insufficient power",
    9: "driver not loaded",
    10: "timeout",
    11: "interrupt request issue",
    12: "library not found",
    13: "function not found",
    14: "corrupted inforom",
    15: "GPU is lost",
    16: "reset required",
    17: "the operating system's refusal",
    18: "driver and library mismatch",
    19: "in use",
    20: "out of memory",
    21: "no data",
    22: "vGPU ECC not supported",
    23: "insufficient resources",
    24: "frequency not supported",
    25: "argument version mismatch",
    26: "deprecated",
    27: "not ready",
    28: "GPU not found",
    29: "invalid state",
    30: "reset type not supported",
    999: "unknown error",
}


def error_of_code(call: str, code: int) -> ReadError:
    """What a return code other than success means."""
    reason, remedy = _POLICY.get(code, _OTHER_CODE)
    return ReadError(
        reason, remedy, f"{call} failed with {_NAMES.get(code, 'an unknown error')} (NVML code {code})"
    )


def read_error(call: str, error: Exception) -> ReadError:
    """What the binding raised, as what to do about it. The binding's errors can't be hashed or compared."""
    if isinstance(error, ReadError):
        return error
    code = getattr(error, "value", None)
    if isinstance(code, int):
        return error_of_code(call, code)
    name = type(error).__name__
    reason, remedy = _BY_CLASS.get(name, _UNEXPECTED)
    return ReadError(reason, remedy, f"{call}: {name}: {error}")


def opening_error(error: ReadError) -> ReadError:
    """Why the library can't be opened, with what to do about it.

    It can be tried again, but for a library that doesn't fit its driver: it stays mapped until the process ends.
    """
    remedy = Remedy.REOPEN if error.reason == Reason.VERSION_MISMATCH else Remedy.RETRY
    return ReadError(error.reason, remedy, str(advised(error)))
