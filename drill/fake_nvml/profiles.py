"""What kinds of GPU there are: the numbers by which they differ, and what each can't do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from drill.fake_nvml.block import Feature

_EVERYTHING = reduce(or_, Feature)
_CAPTURE = "a capture of nvidia-smi -q in utkuozdemir/nvidia_gpu_exporter"
_ASSUMED = "the total of memory as such cards report it; what is reserved, power and what flows idle assumed"


@dataclass(frozen=True, slots=True)
class MigDevice:
    """A compute instance of a GPU instance; None instead of one leaves its index empty. Memory in MiB."""

    gpu_instance: int
    compute_instance: int
    memory_mib: int
    used_mib: int = 0


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind of GPU, idle. ``source`` says where its numbers come from."""

    name: str
    source: str
    architecture: int
    """nvmlDeviceArchitecture_t: 6 Turing, 7 Ampere, 8 Ada, 9 Hopper, 10 Blackwell."""
    memory_mib: int
    reserved_mib: int
    generation: int
    """Of PCIe."""
    lacks: Feature
    used_mib: int = 0
    width: int = 16
    idle_generation: int | None = None
    """Where the link slows down while nothing flows; None where it never does."""
    idle_transmit: float = 0.0
    idle_receive: float = 0.0
    """bytes/s over PCIe."""
    power_mw: int = 0
    temperature: int = 30
    nvlinks: int = 0
    nvlink_version: int = 0
    ecc: bool = True
    serial: bool = True
    virtualization: int = 0
    """nvmlGpuVirtualizationMode_t: 0 none, 1 passed through, 2 a virtual GPU in its guest."""
    mig: tuple[MigDevice | None, ...] | None = None
    """None: not partitioned."""

    @property
    def features(self) -> Feature:
        """What it can do."""
        return _EVERYTHING & ~self.lacks


H200 = Profile(
    name="NVIDIA H200",
    source=_CAPTURE + " (driver 590.48.01); 18 links of NVLink 4",
    architecture=9,
    memory_mib=143771,
    reserved_mib=614,
    generation=5,
    lacks=Feature(0),
    idle_transmit=371e3,
    idle_receive=337e3,
    power_mw=77670,
    temperature=28,
    nvlinks=18,
    nvlink_version=4,
    virtualization=1,
)

H100 = replace(
    H200,
    name="NVIDIA H100 80GB HBM3",
    source=_CAPTURE + " for memory and what flows idle; power and links as an H200's",
    memory_mib=81559,
    reserved_mib=479,
    idle_transmit=352e3,
    idle_receive=329e3,
    virtualization=0,
)

A100 = replace(
    H100,
    name="NVIDIA A100-SXM4-80GB",
    source=_ASSUMED + "; no GPM before Hopper; 12 links of NVLink 3; byte counters are a guess",
    architecture=7,
    memory_mib=81920,
    reserved_mib=618,
    generation=4,
    lacks=Feature.GPM,
    power_mw=60000,
    nvlinks=12,
    nvlink_version=3,
)

L4 = Profile(
    name="NVIDIA L4",
    source=_ASSUMED + "; no memory temperature (NVIDIA/DCGM#311); what flows idle as in an L40S",
    architecture=8,
    memory_mib=23034,
    reserved_mib=466,
    generation=4,
    lacks=Feature.GPM | Feature.NVLINK | Feature.MEMORY_TEMPERATURE,
    idle_transmit=585e3,
    idle_receive=244e3,
    power_mw=16000,
)

T4 = Profile(
    name="Tesla T4",
    source=_ASSUMED + "; rows are remapped from Ampere on; no byte counters is a guess",
    architecture=6,
    memory_mib=15360,
    reserved_mib=443,
    generation=3,
    lacks=Feature.GPM
    | Feature.NVLINK
    | Feature.REMAPPED_ROWS
    | Feature.MEMORY_TEMPERATURE
    | Feature.PCIE_COUNTERS,
    idle_transmit=300e3,
    idle_receive=300e3,
    power_mw=9500,
)

RTX_4090 = Profile(
    name="NVIDIA GeForce RTX 4090",
    source=_ASSUMED + "; its link slows down while idle, as an RTX 4080 SUPER's does in " + _CAPTURE,
    architecture=8,
    memory_mib=24564,
    reserved_mib=434,
    generation=4,
    lacks=Feature.GPM | Feature.NVLINK | Feature.ECC | Feature.REMAPPED_ROWS | Feature.MEMORY_TEMPERATURE,
    idle_generation=1,
    power_mw=15000,
    ecc=False,
    serial=False,
)

H200_MIG = replace(
    H200,
    source=_CAPTURE + "; two compute instances of one GPU instance report the same memory",
    lacks=Feature.UTILIZATION | Feature.REMAPPED_ROWS | Feature.SAMPLES,
    used_mib=16925,
    idle_transmit=376e3,
    mig=(
        MigDevice(1, 0, 71424, 16925),
        None,
        MigDevice(1, 1, 71424, 16925),
        MigDevice(2, 0, 71424),
    ),
)

VGPU_GUEST = Profile(
    name="NVIDIA L40S-24Q",
    source=_ASSUMED + "; what a guest is not told",
    architecture=8,
    memory_mib=24576,
    reserved_mib=1700,
    generation=4,
    lacks=Feature.GPM
    | Feature.NVLINK
    | Feature.PCIE_THROUGHPUT
    | Feature.PCIE_COUNTERS
    | Feature.PCIE_LINK
    | Feature.CLOCK_REASONS
    | Feature.ECC
    | Feature.REMAPPED_ROWS
    | Feature.EVENTS
    | Feature.POWER
    | Feature.MEMORY_TEMPERATURE,
    ecc=False,
    serial=False,
    virtualization=2,
)

GB10 = Profile(
    name="NVIDIA GB10",
    source="its memory is the host's and both versions of the call say so (nvitop#208); the rest inferred",
    architecture=10,
    memory_mib=0,
    reserved_mib=0,
    generation=5,
    lacks=Feature.MEMORY
    | Feature.PCIE_THROUGHPUT
    | Feature.PCIE_COUNTERS
    | Feature.PCIE_LINK
    | Feature.GPM
    | Feature.NVLINK
    | Feature.ECC
    | Feature.REMAPPED_ROWS
    | Feature.MEMORY_TEMPERATURE,
    power_mw=4500,
    ecc=False,
    serial=False,
)

PROFILES = (H100, H200, A100, L4, T4, RTX_4090, H200_MIG, VGPU_GUEST, GB10)


@dataclass(frozen=True, slots=True)
class Driver:
    """A release of the driver: its versions, and the functions that it doesn't export."""

    version: str
    nvml: str
    cuda: int
    """1000 x major + 10 x minor."""
    hidden: tuple[str, ...] = ()
    wide_processes: bool = False
    """Its newest process list is laid out otherwise than its version says (wookayin/gpustat#161)."""


DRIVER_590 = Driver("590.48.01", "13.590.48.01", 13010)
DRIVER_535 = Driver("535.54.03", "12.535.54.03", 12020, wide_processes=True)
DRIVER_470 = Driver(
    "470.256.02",
    "11.470.256.02",
    11040,
    hidden=(
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetGraphicsRunningProcesses_v3",
        "nvmlDeviceGetMPSComputeRunningProcesses_v3",
        "nvmlGpmQueryDeviceSupport",
        "nvmlGpmSampleAlloc",
        "nvmlGpmSampleFree",
        "nvmlGpmSampleGet",
        "nvmlGpmMigSampleGet",
        "nvmlGpmMetricsGet",
    ),
)
