"""What an NVML return code means: a fixed word for the label, and what to do about it.

Several codes share a word: it says what a person would do about it, the text says which call and which code.

Codes are those of nvml.h (nvmlReturn_t); the classes follow what exporters of long standing do about them.
"""

from __future__ import annotations

from exporter.sampler.backend import ReadError, Remedy

INVALID_ARGUMENT = 2
NO_PERMISSION = 4
NOT_FOUND = 6
TIMEOUT = 10
GPU_IS_LOST = 15

_POLICY: dict[int, tuple[str, str]] = {
    1: ("driver_lost", Remedy.REOPEN),
    2: ("invalid_argument", Remedy.RETRY),
    3: ("not_supported", Remedy.DROP),
    # a permission comes with a new start, not while running
    4: ("no_permission", Remedy.DROP),
    6: ("not_found", Remedy.SKIP),
    7: ("insufficient_size", Remedy.RETRY),
    9: ("no_driver", Remedy.REOPEN),
    10: ("timeout", Remedy.RETRY),
    11: ("irq_issue", Remedy.RETRY),
    12: ("no_library", Remedy.REOPEN),
    13: ("not_supported", Remedy.DROP),
    14: ("gpu_ill", Remedy.DEVICE_DOWN),
    # the others are not opened anew for the sake of one
    15: ("gpu_lost", Remedy.DEVICE_DOWN),
    16: ("gpu_ill", Remedy.DEVICE_DOWN),
    # the operating system took the device file away, as by a cgroup
    17: ("no_permission", Remedy.DEVICE_DOWN),
    18: ("version_mismatch", Remedy.REOPEN),
    19: ("in_use", Remedy.RETRY),
    20: ("out_of_memory", Remedy.RETRY),
    21: ("no_data", Remedy.SKIP),
    22: ("not_supported", Remedy.DROP),
    23: ("insufficient_resources", Remedy.RETRY),
    25: ("not_supported", Remedy.DROP),
    26: ("not_supported", Remedy.DROP),
    27: ("not_ready", Remedy.SKIP),
    28: ("gone", Remedy.REOPEN),
    999: ("unknown", Remedy.RETRY),
}
_OTHER_CODE = ("other", Remedy.RETRY)
_BY_CLASS = {
    # the binding's own, and no NVMLError: an unversioned call whose newest version the driver lacks
    "NVMLLibraryMismatchError": ("not_supported", Remedy.DROP),
    # a binding too old for the call or for one of its arguments
    "AttributeError": ("not_supported", Remedy.DROP),
    "TypeError": ("not_supported", Remedy.DROP),
}
_MISFIT = _POLICY[18][0]
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

_ADVICE = {
    "binding_not_installed": "install the Python package nvidia-ml-py",
    "wrong_binding": "a package called pynvml hides nvidia-ml-py: uninstall pynvml, then reinstall nvidia-ml-py",
    "no_library": "libnvidia-ml.so.1 is not here: install NVIDIA's driver, or start the container with"
    " NVIDIA's runtime and NVIDIA_DRIVER_CAPABILITIES=utility",
    "no_driver": "the kernel module isn't loaded: modprobe nvidia, or reinstall the driver for this kernel",
    "version_mismatch": "the driver was upgraded and its old parts are still in use: reload the kernel module or"
    " reboot; in a container, restart that too",
    "unknown": "in a container, systemctl daemon-reload may have taken the GPUs away: restart the container",
    "no_permission": "let this process open /dev/nvidiactl and the GPUs' device files; in a container whose devices"
    " were taken away, restart the container",
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
    advice = _ADVICE.get(error.reason)
    remedy = Remedy.REOPEN if error.reason == _MISFIT else Remedy.RETRY
    return ReadError(error.reason, remedy, f"{error}: {advice}" if advice else str(error))
