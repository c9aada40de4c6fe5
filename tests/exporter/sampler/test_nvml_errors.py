"""What each NVML return code means."""

from __future__ import annotations

import pytest

from exporter.sampler.backend import Remedy
from exporter.sampler.nvml_errors import error_of_code


@pytest.mark.parametrize(
    ("code", "reason", "remedy"),
    [
        (1, "driver_lost", Remedy.REOPEN),
        (2, "invalid_argument", Remedy.RETRY),
        (3, "not_supported", Remedy.DROP),
        (4, "no_permission", Remedy.DROP),
        (6, "not_found", Remedy.SKIP),
        (9, "no_driver", Remedy.REOPEN),
        (10, "timeout", Remedy.RETRY),
        (13, "not_supported", Remedy.DROP),
        (14, "gpu_ill", Remedy.DEVICE_DOWN),
        (15, "gpu_lost", Remedy.DEVICE_DOWN),
        (16, "gpu_ill", Remedy.DEVICE_DOWN),
        (17, "no_permission", Remedy.DEVICE_DOWN),
        (18, "version_mismatch", Remedy.REOPEN),
        (21, "no_data", Remedy.SKIP),
        (25, "not_supported", Remedy.DROP),
        (27, "not_ready", Remedy.SKIP),
        (28, "gone", Remedy.REOPEN),
        (31, "other", Remedy.RETRY),
        (999, "unknown", Remedy.RETRY),
    ],
)
def test_each_code_has_a_word_and_a_remedy(code: int, reason: str, remedy: str) -> None:
    error = error_of_code("nvmlFly", code)
    assert (error.reason, error.remedy) == (reason, remedy)
    assert f"NVML code {code})" in str(error)
