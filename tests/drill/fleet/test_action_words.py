"""What is done to a fleet, as people are told of it."""

from __future__ import annotations

import pytest

from drill.actions import ChangeGateway, Restart
from drill.gateway_config import Admission
from drill.serving.request import PreemptionMode


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (ChangeGateway({"rate_per_second": 400.0}), "gateway: rate_per_second 400"),
        (
            ChangeGateway({"passes_disconnects": True, "admission": Admission(2000)}),
            "gateway: passes_disconnects on, admission (expected_output_tokens 2000, reserve_ratio 0.05)",
        ),
        (ChangeGateway({"admission": None}), "gateway: admission off"),
        (Restart("e0"), "e0: drain and restart"),
        (
            Restart(
                "e0", {"prefix_caching": False, "preemption": PreemptionMode.RECOMPUTE, "swap_bytes_gpu": 0.0}
            ),
            "e0: drain and restart with prefix_caching off, preemption recompute, swap_bytes_gpu 0",
        ),
    ],
)
def test_settings_are_worded_as_people_write_them(action: object, words: str) -> None:
    assert str(action) == words
