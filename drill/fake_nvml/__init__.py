"""A stand-in for NVIDIA's management library, faithful enough that the real Python binding runs on it.

The library is C, so that layouts, versions of calls, missing symbols and calls that hang are real; what the
GPUs do is said from Python, live, through a shared control block.
"""

from drill.fake_nvml.block import OUTSIDE_MIG, Feature, Flow, Hang, Presence, ProcessKind
from drill.fake_nvml.control import ANY_FUNCTION, VARIABLE, XID, Control
from drill.fake_nvml.devices import partition
from drill.fake_nvml.library import BuildError, build, functions
from drill.fake_nvml.profiles import (
    A100,
    DRIVER_470,
    DRIVER_535,
    DRIVER_590,
    GB10,
    H100,
    H200,
    H200_MIG,
    L4,
    PROFILES,
    RTX_4090,
    T4,
    VGPU_GUEST,
    Driver,
    MigDevice,
    Profile,
)

__all__ = [
    "A100",
    "ANY_FUNCTION",
    "DRIVER_470",
    "DRIVER_535",
    "DRIVER_590",
    "GB10",
    "H100",
    "H200",
    "H200_MIG",
    "L4",
    "OUTSIDE_MIG",
    "PROFILES",
    "RTX_4090",
    "T4",
    "VARIABLE",
    "VGPU_GUEST",
    "XID",
    "BuildError",
    "Control",
    "Driver",
    "Feature",
    "Flow",
    "Hang",
    "MigDevice",
    "Presence",
    "ProcessKind",
    "Profile",
    "build",
    "functions",
    "partition",
]
