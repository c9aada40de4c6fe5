"""The PCIe link: what it runs at and what it can."""

from __future__ import annotations

from exporter.gpu_sample import PcieLink
from exporter.sampler.backend import ReadError, Remedy
from exporter.sampler.nvml_parts import Parts

_GENERATIONS = (1, 7)
_WIDTHS = (1, 32)
_CALLS = {
    "generation": ("nvmlDeviceGetCurrPcieLinkGeneration", _GENERATIONS),
    "width": ("nvmlDeviceGetCurrPcieLinkWidth", _WIDTHS),
    "max_generation": ("nvmlDeviceGetMaxPcieLinkGeneration", _GENERATIONS),
    "max_width": ("nvmlDeviceGetMaxPcieLinkWidth", _WIDTHS),
}
_GPU_ALONE = "nvmlDeviceGetGpuMaxPcieLinkGeneration"
"""What the GPU can, where the slot's maximum is hidden, as in a machine that it is passed through to."""


def read_link(parts: Parts) -> PcieLink:
    """The link. Raises ReadError: with DROP where the driver tells nothing of it."""
    told = {name: _number(parts, name, call, bounds) for name, (call, bounds) in _CALLS.items()}
    if told["max_generation"] is None:
        told["max_generation"] = _number(parts, "gpu_max_generation", _GPU_ALONE, _GENERATIONS)
    if all(value is None for value in told.values()):
        raise parts.refusal(*map(_part, _CALLS)) or ReadError(
            "no_data", Remedy.SKIP, "PCIe link: nothing told"
        )
    return PcieLink(**told)


def _number(parts: Parts, name: str, call: str, bounds: tuple[int, int]) -> int | None:
    value = parts.number(_part(name), call, *bounds)
    return None if value is None else int(value)


def _part(name: str) -> str:
    return f"link_{name}"
