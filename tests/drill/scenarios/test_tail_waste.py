"""Tail waste: a pool that is full of empty slots, and the bounds that have to hold of them."""

from __future__ import annotations

import pytest

from drill.scenarios.setting import Setting, SettingError
from drill.scenarios.tail_waste import TAIL_WASTE
from drill.serving.config import Generation
from tests.drill.scenarios.seen import Seen, seen

_SETTLED = 30
"""Seconds until the pool is full, or enough requests have finished to know how long they are."""


@pytest.fixture(scope="module")
def played() -> Seen:
    return seen(TAIL_WASTE, 330)


def test_the_pool_is_full_while_most_of_its_slots_are_empty(played: Seen) -> None:
    for each in played.engine(played.onset + _SETTLED, played.end):
        gauges, slots = each.gauges, each.config.usable_blocks * each.config.block_tokens
        assert gauges is not None
        assert gauges.usage_ratio > 0.9
        assert each.truth.tail_waste_tokens > 0.7 * slots


def test_requests_wait_while_it_is_full(played: Seen) -> None:
    late = played.signal("sequences", "waiting", start=played.end - 60, until=played.end)
    assert min(late) > 0


def test_there_is_room_before_and_after(played: Seen) -> None:
    for start, until in ((0, played.onset), (len(played.moments) - 30, None)):
        assert max(played.signal("kv_usage_ratio", start=start, until=until)) < 0.6
        assert max(played.signal("sequences", "waiting", start=start, until=until)) <= 1


def test_true_waste_lies_within_the_bounds(played: Seen) -> None:
    inside = told = 0
    for second, low in played.pairs("tail_fragmentation_tokens", "low"):
        values, true = played.values[second], played.engine()[second].truth.tail_waste_tokens
        if second >= _SETTLED:
            told += 1
            inside += low <= true <= values["tail_fragmentation_tokens", "high"]
    assert told > 200
    assert inside / told > 0.8


def test_the_share_of_used_slots_says_what_is_wrong(played: Seen) -> None:
    amid = played.signal("tail_fragmentation_used_ratio", start=played.onset + _SETTLED, until=played.end)
    assert min(amid) > 0.7
    assert max(played.signal("kv_demand_ratio", start=played.onset, until=played.end)) > 1.2
    assert max(played.signal("preemptions_total")) == 0.0


def test_v0_has_no_such_blocks() -> None:
    with pytest.raises(SettingError, match="take generation v1"):
        TAIL_WASTE.scene(Setting(generation=Generation.V0))
