"""What programs reach of a GPU: efficiencies and fixed times, set once for a device, with their source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from exporter.hardware import Gpu


class UncalibratedGpuError(ValueError):
    """A GPU of which only the maker's figures are known."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Shares of the makers' peaks, and times that no peak explains.

    ``weight_bandwidth`` and ``arithmetic``: of memory and FLOPs, by matrix products that are bound by them;
    ``kv_bandwidth``: of memory, by the attention of decodes; ``attention_arithmetic``: of FLOPs, by that of
    prefills; ``mixed_attention``: how many times longer decodes attend in one kernel with a prefill, whose
    tiles they have to use; ``layer_seconds``: what a layer's small kernels take however little they do;
    ``collective_seconds``: one collective of no bytes; ``iteration_seconds`` and ``sequence_seconds``: how
    long the GPU waits for the CPU in an iteration, and for each sequence in it.
    """

    weight_bandwidth: float
    arithmetic: float
    kv_bandwidth: float
    attention_arithmetic: float
    mixed_attention: float
    layer_seconds: float
    iteration_seconds: float
    sequence_seconds: float
    collective_seconds: float
    nvlink_bytes_per_second: float
    pcie_collective_bytes_per_second: float
    source: str


_KERNELS = (
    "kernel times of LLMServingSim (profiler/perf, vLLM 0.19): dense.csv for matrix products, attention.csv for "
    "attention and layer_seconds. iteration_seconds and sequence_seconds assumed, scheduling runs beside the GPU"
)

_HOPPER = Calibration(
    weight_bandwidth=0.73,
    arithmetic=0.75,
    kv_bandwidth=0.75,
    attention_arithmetic=0.60,
    mixed_attention=1.5,
    layer_seconds=18e-6,
    iteration_seconds=1.0e-3,
    sequence_seconds=5e-6,
    collective_seconds=14e-6,
    nvlink_bytes_per_second=398e9,
    pcie_collective_bytes_per_second=16e9,
    source="matrix products and NVLink: kernel and all-reduce times of Vidur (data/profiling, 70B on 8 H100); an "
    "all-reduce of no bytes takes 28 us there with NCCL, half of it with vLLM's own kernel (vLLM pull request 2192). "
    "attention: Shah et al.: FlashAttention-3, 2024 (75 % of FLOPs at its best). kv_bandwidth, mixed_attention and "
    "layer_seconds: between those of the two GPUs of LLMServingSim's profiles, assumed. PCIe as there",
)

CALIBRATIONS: Mapping[str, Calibration] = {
    "NVIDIA H100 80GB HBM3": _HOPPER,
    "NVIDIA H200": replace(_HOPPER, source="as an H100's, assumed: the same chip beside faster memory"),
    "NVIDIA A100-SXM4-80GB": replace(
        _HOPPER,
        weight_bandwidth=0.68,
        attention_arithmetic=0.65,
        collective_seconds=16e-6,
        nvlink_bytes_per_second=230e9,
        source="matrix products: kernel times of Vidur (data/profiling, 70B on 8 A100). attention: Dao: "
        "FlashAttention-2, 2023 (73 % of FLOPs at its best). NVLink: 77 % of the peak, as of an H100's. The rest as "
        "an H100's, assumed",
    ),
    "NVIDIA GeForce RTX 4090": Calibration(
        weight_bandwidth=0.90,
        arithmetic=1.0,
        kv_bandwidth=0.86,
        attention_arithmetic=0.70,
        mixed_attention=1.75,
        layer_seconds=18e-6,
        iteration_seconds=1.0e-3,
        sequence_seconds=5e-6,
        collective_seconds=65e-6,
        nvlink_bytes_per_second=0.0,
        pcie_collective_bytes_per_second=16e9,
        source=_KERNELS + ". Collectives as on RTX PRO 6000, assumed",
    ),
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": Calibration(
        weight_bandwidth=0.89,
        arithmetic=0.78,
        kv_bandwidth=0.80,
        attention_arithmetic=0.45,
        mixed_attention=1.4,
        layer_seconds=18e-6,
        iteration_seconds=1.0e-3,
        sequence_seconds=5e-6,
        collective_seconds=65e-6,
        nvlink_bytes_per_second=0.0,
        pcie_collective_bytes_per_second=16e9,
        source=_KERNELS
        + ". pcie_collective_bytes_per_second: link_bw of LLMServingSim's clusters of this card; "
        "collective_seconds: fitted to the run of Qwen3-32B on two of them, the one constant taken from a run",
    ),
}
"""By the name that the driver reports."""

_V0_ITERATION_SECONDS = 3e-3
_V0_SEQUENCE_SECONDS = 50e-6
"""V0 schedules and prepares inputs between forward passes, in one process with the front end. Assumed: of the
order of what vLLM's own account of 0.6 leaves to the CPU (blog, September 2024), no measurement of ours."""


def calibration_of(gpu: Gpu, *, v0: bool) -> Calibration:
    """A GPU's calibration under V1's engine, or V0's. Raises UncalibratedGpuError."""
    known = CALIBRATIONS.get(gpu.name)
    if known is None:
        raise UncalibratedGpuError(f"{gpu.name} has no calibration (those have: {', '.join(CALIBRATIONS)})")
    if not v0:
        return known
    return replace(known, iteration_seconds=_V0_ITERATION_SECONDS, sequence_seconds=_V0_SEQUENCE_SECONDS)
