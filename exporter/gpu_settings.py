"""What can be set on the reading of GPUs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from exporter.connection_settings import ConnectionSettings, settle


@dataclass(frozen=True, slots=True)
class DcgmSettings(ConnectionSettings):
    """A dcgm-exporter to read. May be written as its URL alone."""

    shorthand: ClassVar[str] = "url"

    def __post_init__(self) -> None:
        settle(self, "/metrics")


@dataclass(frozen=True, slots=True)
class GpuSettings:
    """The GPUs of this machine. May be written as ``auto``, ``always`` or ``never`` alone."""

    shorthand: ClassVar[str] = "nvml"

    nvml: Annotated[
        Literal["auto", "always", "never"],
        Meta(
            description="Whether to read them with NVIDIA's own library: `auto` where this machine has it, `always`,"
            " so that a missing one is shown as a source that is down, or `never`."
        ),
    ] = field(default="auto", metadata={"flag": "--gpus"})
    dcgm: Annotated[
        DcgmSettings | None,
        Meta(
            description="A dcgm-exporter to read, where the sidecar can't see the GPUs itself. Where both tell of a"
            " GPU, NVML goes first and what it can't tell is filled in."
        ),
    ] = None
    processes: Annotated[
        bool,
        Meta(
            description="Whether to list the processes on each GPU, every 30 s, for `gpu_processes` and"
            " `gpu_process_memory_bytes`. Off, because the call has been seen to"
            " take 4.5 ms under the driver's lock."
        ),
    ] = False
    pcie_window: Annotated[
        bool,
        Meta(
            description="Whether to measure PCIe over windows of 20 ms where nothing better is to be had. Off, because"
            " it looks at 2 % of the time, misses most bursts and has been seen to read twice the truth."
        ),
    ] = False
