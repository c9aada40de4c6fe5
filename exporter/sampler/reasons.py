"""Why something of a GPU can't be read: the fixed words of labels, and what a person can do about each.

Plain text, no enum: the sampler's process is to stay small, and words travel through its pipe as they are.
"""

from __future__ import annotations

from exporter.sampler.backend import ReadError, Remedy


class Reason:
    """The ``reason`` label of what the sampler and its GPUs fail at."""

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
    GONE = "gone"
    """It was there and isn't counted any more."""
    EXITED = "exited"
    """The sampler's process ended by itself."""
    NOT_STARTED = "not_started"
    """The sampler's process could not be started."""
    BAD_FRAME = "bad_frame"
    """A line of the sampler can't be understood."""


_ADVICE = {
    Reason.NO_LIBRARY: "install NVIDIA's driver, or start the container with the NVIDIA runtime and the utility"
    " capability; without GPUs set gpus to never",
    Reason.NO_DRIVER: "load the driver's kernel module (nvidia-smi shows whether it is)",
    Reason.VERSION_MISMATCH: "the driver was upgraded under a running kernel module: reload the module or reboot",
    Reason.NO_PERMISSION: "let this process open the GPU's device file; in a container whose devices were taken away,"
    " restart the container",
    Reason.GPU_LOST: "it has fallen off the bus: drain the machine, look for XID 79 in the kernel's log, and reboot",
    Reason.GPU_ILL: "drain the machine and reset the GPU (nvidia-smi --gpu-reset)",
    Reason.DRIVER_LOST: "the driver was unloaded or exchanged; the sampler starts anew",
    Reason.TIMEOUT: "the driver is slow to answer; look for XID 119 in the kernel's log",
    Reason.UNKNOWN: "look at the kernel's log; in a container whose devices were taken away, restart the container",
    Reason.INTERNAL: "this is a bug of thrashold's; please report it with the log",
    Reason.HUNG: "the driver does not come back from a call; look at the kernel's log, a reboot may be all that helps",
    Reason.GONE: "the driver does not count it any more; look for its XID in the kernel's log",
    Reason.EXITED: "it is started again; what it said stands in the log",
    Reason.NOT_STARTED: "it is tried again; check memory and the limit of processes",
    Reason.BAD_FRAME: "this is a bug of thrashold's; please report it with the log",
}


def advice(reason: str) -> str:
    """What to do about ``reason``, as the end of a line; empty for one that nobody can do anything about."""
    return _ADVICE.get(reason, "")


def is_failure(error: ReadError) -> bool:
    """Whether it is to be counted: what a GPU can't do or has no data of now is absent and no failure."""
    return error.remedy != Remedy.SKIP and error.reason != Reason.NOT_SUPPORTED
