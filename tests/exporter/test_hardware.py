from __future__ import annotations

import pytest

from exporter.hardware import GPUS, UnknownGpuError, gpu_by_name


def test_a_gpu_is_known_by_its_short_name_and_by_the_one_its_driver_reports() -> None:
    assert gpu_by_name("h100") is gpu_by_name("NVIDIA H100 80GB HBM3") is GPUS["h100"]
    assert gpu_by_name("H100") is GPUS["h100"]


def test_an_unknown_gpu_is_told_with_those_that_are_known() -> None:
    with pytest.raises(UnknownGpuError, match=r"no GPU 'h1000'.*h100, h200, a100, rtx-4090, rtx-pro-6000"):
        gpu_by_name("h1000")


def test_the_link_follows_from_generation_and_width() -> None:
    assert GPUS["h100"].pcie_bytes_per_second == pytest.approx(63.015e9, rel=1e-4)
    assert GPUS["a100"].pcie_bytes_per_second == pytest.approx(31.508e9, rel=1e-4)


def test_every_gpu_says_where_its_figures_stand_and_none_is_bare() -> None:
    for gpu in GPUS.values():
        assert "data sheet" in gpu.source or "white paper" in gpu.source
        assert min(gpu.memory_bytes, gpu.memory_bytes_per_second, gpu.flops_16bit) > 1e9
