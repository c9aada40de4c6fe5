from __future__ import annotations

import pytest

from drill.scenarios.chat import chat_fleet
from drill.scenarios.fleets import request_seconds, requests_per_second, rising
from drill.scenarios.setting import Setting, SettingError, Size
from drill.workload.lengths import Fixed


def test_a_fleet_that_is_moved_gets_as_many_gpus_as_leave_a_pool_worth_the_name() -> None:
    config = next(iter(chat_fleet(Setting(Size.FULL, gpu="a100")).engines.values()))
    assert config.tensor_parallel == 4
    assert config.usable_blocks * config.block_tokens > 100_000
    own = next(iter(chat_fleet(Setting(Size.FULL)).engines.values()))
    assert own.tensor_parallel == 2


def test_requests_a_second_are_sequences_over_the_time_of_each() -> None:
    config = next(iter(chat_fleet(Setting()).engines.values()))
    rate = requests_per_second(config, Fixed(1_000), Fixed(200), 0.5)
    each = request_seconds(config, Fixed(1_000), Fixed(200), 0.5)
    assert rate * each == pytest.approx(0.5 * config.usable_blocks * config.block_tokens / 1_100, rel=0.02)


def test_a_ramp_that_is_longer_than_its_load_is_refused() -> None:
    assert rising(2.0, (10.0, 20.0), Setting(ramp_seconds=10.0)).at(15.0) == 1.0
    with pytest.raises(SettingError, match="a ramp of 11 s for a load of 10 s asked for: take 10 or less"):
        rising(2.0, (10.0, 20.0), Setting(ramp_seconds=11.0))
