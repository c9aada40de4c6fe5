"""Loads fill pools as far as they were asked to, wherever a scenario is moved."""

from __future__ import annotations

from statistics import fmean

import pytest

from drill.scenarios.chat import USAGE_RATIO, chat_fleet, shared_fleet
from drill.scenarios.fleets import engine_config
from drill.scenarios.setting import Setting, SettingError
from drill.serving.config import Generation


@pytest.mark.parametrize(
    "setting",
    [
        Setting(engines=1),
        Setting(engines=1, seed=2, gpu="a100"),
        Setting(engines=1, seed=3, model="llama-8b", gpu="rtx-4090"),
        Setting(engines=1, seed=4, model="qwen3-32b", gpu="h100"),
        Setting(engines=1, seed=5, generation=Generation.V0),
    ],
    ids=str,
)
def test_a_chat_fleet_stands_near_what_it_was_sized_for(setting: Setting) -> None:
    usages = [
        second.engines[0].gauges.usage_ratio
        for second in chat_fleet(setting).fleet(setting.seed).run(300)
        if second.seconds > 120 and second.engines[0].gauges is not None
    ]
    assert fmean(usages) == pytest.approx(USAGE_RATIO, rel=0.35)
    assert max(usages) < 0.9


def test_a_shared_beginning_is_held_once() -> None:
    seconds = list(shared_fleet(Setting(engines=1)).fleet(1).run(240))
    usages = [second.engines[0].gauges.usage_ratio for second in seconds[120:] if second.engines[0].gauges]
    assert fmean(usages) < 0.4


def test_a_model_that_leaves_no_room_for_kv_is_refused_with_what_would_do() -> None:
    with pytest.raises(SettingError, match="take a smaller model or a larger GPU"):
        engine_config(Setting(gpu="rtx-4090"), "llama-70b", "h100", memory_utilization_ratio=0.78)
