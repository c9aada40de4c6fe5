"""GPUs by name: memory, arithmetic, links. Makers' figures only, each with its source; no I/O.

What a program reaches of them (efficiencies) is not here: it belongs to whoever models a program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from exporter.pcie import link_bytes_per_second


class UnknownGpuError(ValueError):
    """A name that is no GPU of the table."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One kind of GPU. ``source`` names where the figures stand.

    ``memory_bytes`` is what the driver reports as its total, ``memory_bytes_per_second`` the peak of
    HBM or GDDR, ``flops_16bit`` the dense peak of 16-bit values accumulated in 32 bits,
    ``flops_8bit`` that of 8-bit floats (None: it has none). ``nvlink_bytes_per_second`` is one
    direction of all links together; 0 where GPUs talk over PCIe.
    """

    name: str
    memory_bytes: int
    memory_bytes_per_second: float
    flops_16bit: float
    flops_8bit: float | None
    pcie_generation: int
    pcie_width: int
    nvlink_bytes_per_second: float
    source: str

    @property
    def pcie_bytes_per_second(self) -> float:
        """One direction of its link after encoding, packet headers included."""
        rate = link_bytes_per_second(self.pcie_generation, self.pcie_width)
        if rate is None:
            raise ValueError(f"{self.name}: PCIe generation {self.pcie_generation} is not known")
        return rate


_MIB = 1024 * 1024
_SMI = "; memory as nvidia-smi reports it"

GPUS: Mapping[str, Gpu] = {
    "h100": Gpu(
        name="NVIDIA H100 80GB HBM3",
        memory_bytes=81559 * _MIB,
        memory_bytes_per_second=3.35e12,
        flops_16bit=989.4e12,
        flops_8bit=1978.9e12,
        pcie_generation=5,
        pcie_width=16,
        nvlink_bytes_per_second=450e9,
        source="NVIDIA H100 data sheet (SXM5; half of the figures with sparsity; NVLink 900 GB/s both ways)"
        + _SMI,
    ),
    "h200": Gpu(
        name="NVIDIA H200",
        memory_bytes=143771 * _MIB,
        memory_bytes_per_second=4.8e12,
        flops_16bit=989.4e12,
        flops_8bit=1978.9e12,
        pcie_generation=5,
        pcie_width=16,
        nvlink_bytes_per_second=450e9,
        source="NVIDIA H200 data sheet (SXM; half of the figures with sparsity; NVLink 900 GB/s both ways)"
        + _SMI,
    ),
    "a100": Gpu(
        name="NVIDIA A100-SXM4-80GB",
        memory_bytes=81920 * _MIB,
        memory_bytes_per_second=2.039e12,
        flops_16bit=312e12,
        flops_8bit=None,
        pcie_generation=4,
        pcie_width=16,
        nvlink_bytes_per_second=300e9,
        source="NVIDIA A100 data sheet (80 GB SXM4; NVLink 600 GB/s both ways)" + _SMI,
    ),
    "rtx-4090": Gpu(
        name="NVIDIA GeForce RTX 4090",
        memory_bytes=25250627584,
        memory_bytes_per_second=1.008e12,
        flops_16bit=165.2e12,
        flops_8bit=330.3e12,
        pcie_generation=4,
        pcie_width=16,
        nvlink_bytes_per_second=0.0,
        source="NVIDIA Ada GPU architecture white paper, appendix A (dense, accumulated in 32 bits); memory from "
        "device_total_memory_bytes in LLMServingSim's public run",
    ),
    "rtx-pro-6000": Gpu(
        name="NVIDIA RTX PRO 6000 Blackwell Server Edition",
        memory_bytes=97887 * _MIB,
        memory_bytes_per_second=1.597e12,
        flops_16bit=503.8e12,
        flops_8bit=1007.6e12,
        pcie_generation=5,
        pcie_width=16,
        nvlink_bytes_per_second=0.0,
        source="NVIDIA RTX PRO 6000 Blackwell Server Edition data sheet (1,597 GB/s) and RTX Blackwell PRO white paper "
        "(dense, accumulated in 32 bits)" + _SMI,
    ),
}
"""By the short name that commands take."""


def gpu_by_name(name: str) -> Gpu:
    """The GPU of that short name, or of the name its driver reports. Raises UnknownGpuError."""
    for short, gpu in GPUS.items():
        if name.lower() in {short, gpu.name.lower()}:
            return gpu
    raise UnknownGpuError(f"no GPU {name!r} (known: {', '.join(GPUS)})")
