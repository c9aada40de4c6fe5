"""Why something of a GPU can't be read: the fixed words of labels, and what a person can do about each.

Plain text, no enum: the sampler's process is to stay small, and words travel through its pipe as they are.
"""

from __future__ import annotations

from exporter.sampler.backend import ReadError, Remedy


class Reason:
    """The ``reason`` label of what the sampler and its GPUs fail at."""

    NO_BINDING = "binding_not_installed"
    WRONG_BINDING = "wrong_binding"
    NO_LIBRARY = "no_library"
    NO_DRIVER = "no_driver"
    VERSION_MISMATCH = "version_mismatch"
    NO_PERMISSION = "no_permission"
    GPU_LOST = "gpu_lost"
    GPU_ILL = "gpu_ill"
    """It needs a reset, or its own memory of settings is damaged."""
    DRIVER_LOST = "driver_lost"
    """The library was set up and no longer is: the driver was unloaded or exchanged."""
    TIMEOUT = "timeout"
    UNKNOWN = "unknown"
    """The driver says that something went wrong and not what."""
    NOT_SUPPORTED = "not_supported"
    BAD_VALUE = "bad_value"
    """Not a number, or not one that can be."""
    INTERNAL = "internal"
    """A bug of ours."""
    HUNG = "hung"
    """A call into the driver has not come back for long."""
    STALE = "stale"
    """Its numbers stand still, its energy counter among them, which never does."""
    GONE = "gone"
    """It was there and isn't counted any more."""
    EXITED = "exited"
    """The sampler's process ended by itself."""
    NOT_STARTED = "not_started"
    """The sampler's process could not be started."""
    BAD_FRAME = "bad_frame"
    """A line of the sampler can't be understood."""


_ADVICE = {
    Reason.NO_BINDING: "install the Python package nvidia-ml-py",
    Reason.WRONG_BINDING: "a package called pynvml hides nvidia-ml-py: uninstall pynvml, then reinstall nvidia-ml-py",
    Reason.NO_LIBRARY: "libnvidia-ml.so.1 is not here: install NVIDIA's driver, or start the container with"
    " NVIDIA's runtime and NVIDIA_DRIVER_CAPABILITIES=utility",
    Reason.NO_DRIVER: "the kernel module isn't loaded: modprobe nvidia, or reinstall the driver for this kernel",
    Reason.VERSION_MISMATCH: "the driver was upgraded and its old parts are still in use: reload the kernel module or"
    " reboot; in a container, restart that too",
    Reason.NO_PERMISSION: "let this process open /dev/nvidiactl and the GPUs' device files; in a container whose"
    " devices were taken away, restart the container",
    Reason.GPU_LOST: "it has fallen off the bus: drain the machine, look for XID 79 in the kernel's log, and reboot",
    Reason.GPU_ILL: "drain the machine and reset the GPU (nvidia-smi --gpu-reset)",
    Reason.DRIVER_LOST: "the driver was unloaded or exchanged; the sampler starts anew",
    Reason.TIMEOUT: "the driver is slow to answer; look for XID 119 in the kernel's log",
    Reason.UNKNOWN: "in a container, systemctl daemon-reload may have taken the GPUs away: restart the container",
    Reason.INTERNAL: "this is a bug of thrashold's; please report it with the log",
    Reason.HUNG: "the driver does not come back from a call; look at the kernel's log, a reboot may be all that helps",
    Reason.GONE: "the driver does not count it any more; look for its XID in the kernel's log",
    Reason.EXITED: "it is started again",
    Reason.NOT_STARTED: "it is tried again; check memory and the limit of processes",
    Reason.BAD_FRAME: "this is a bug of thrashold's; please report it with the log",
}


def advice(reason: str) -> str:
    """What to do about ``reason``, as the end of a line; empty for one that nobody can do anything about."""
    return _ADVICE.get(reason, "")


def advised(error: ReadError) -> ReadError:
    """The same, with what to do about it, unless that stands there."""
    what_to_do = advice(error.reason)
    if not what_to_do or what_to_do in str(error):
        return error
    return ReadError(error.reason, error.remedy, f"{error}: {what_to_do}")


def is_failure(error: ReadError) -> bool:
    """Whether it is to be counted: what a GPU can't do or has no data of now is absent and no failure."""
    return error.remedy != Remedy.SKIP and error.reason != Reason.NOT_SUPPORTED
