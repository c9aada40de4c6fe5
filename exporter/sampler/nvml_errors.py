"""What an NVML return code means: a fixed word for the label, and what to do about it.

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
    1: ("uninitialized", Remedy.REOPEN),
    2: ("invalid_argument", Remedy.RETRY),
    3: ("not_supported", Remedy.DROP),
    # a permission comes with a new start, not while running
    4: ("no_permission", Remedy.DROP),
    6: ("not_found", Remedy.SKIP),
    7: ("insufficient_size", Remedy.RETRY),
    9: ("driver_not_loaded", Remedy.REOPEN),
    10: ("timeout", Remedy.RETRY),
    11: ("irq_issue", Remedy.RETRY),
    12: ("library_not_found", Remedy.REOPEN),
    13: ("function_not_found", Remedy.DROP),
    14: ("corrupted_inforom", Remedy.DEVICE_DOWN),
    # the others are not opened anew for the sake of one
    15: ("gpu_is_lost", Remedy.DEVICE_DOWN),
    16: ("reset_required", Remedy.DEVICE_DOWN),
    # the device file was taken away, as by a cgroup
    17: ("operating_system", Remedy.DEVICE_DOWN),
    18: ("driver_mismatch", Remedy.REOPEN),
    19: ("in_use", Remedy.RETRY),
    20: ("out_of_memory", Remedy.RETRY),
    21: ("no_data", Remedy.SKIP),
    22: ("vgpu_ecc_not_supported", Remedy.DROP),
    23: ("insufficient_resources", Remedy.RETRY),
    25: ("argument_version_mismatch", Remedy.DROP),
    26: ("deprecated", Remedy.DROP),
    27: ("not_ready", Remedy.SKIP),
    28: ("gpu_not_found", Remedy.REOPEN),
    999: ("unknown", Remedy.RETRY),
}
_OTHER_CODE = ("other", Remedy.RETRY)
_BY_CLASS = {
    # the binding's own, and no NVMLError: an unversioned call whose newest version the driver lacks
    "NVMLLibraryMismatchError": ("library_mismatch", Remedy.DROP),
    "AttributeError": ("binding_lacks_function", Remedy.DROP),
}
_UNEXPECTED = ("unexpected", Remedy.RETRY)

_ADVICE = {
    "binding_not_installed": "install the Python package nvidia-ml-py",
    "wrong_binding": "a package called pynvml hides nvidia-ml-py: uninstall pynvml, then reinstall nvidia-ml-py",
    "library_not_found": "libnvidia-ml.so.1 is not here: install NVIDIA's driver, or start the container with"
    " NVIDIA's runtime and NVIDIA_DRIVER_CAPABILITIES=utility",
    "driver_not_loaded": "the kernel module isn't loaded: modprobe nvidia, or reinstall the driver for this kernel",
    "driver_mismatch": "the driver was upgraded and its old parts are still in use: restart thrashold (in a"
    " container, the container); if that doesn't help, reload the kernel module or reboot",
    "unknown": "in a container, systemctl daemon-reload may have taken the GPUs away: restart the container",
    "no_permission": "this user may not open /dev/nvidiactl and /dev/nvidia0 and on: give it access",
    "operating_system": "the device files are blocked, as by a cgroup: restart the container",
}


def error_of_code(call: str, code: int) -> ReadError:
    """What a return code other than success means."""
    reason, remedy = _POLICY.get(code, _OTHER_CODE)
    return ReadError(reason, remedy, f"{call}: {reason.replace('_', ' ')} (NVML code {code})")


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
    """Why the library can't be opened, with what to do about it; it is to be opened anew in any case."""
    advice = _ADVICE.get(error.reason)
    return ReadError(error.reason, Remedy.REOPEN, f"{error}: {advice}" if advice else str(error))
