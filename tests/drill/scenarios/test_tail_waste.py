"""Tail waste: a pool that is full of empty slots, and the bounds that have to hold of them."""

from __future__ import annotations

import pytest

from drill.scenarios.setting import Setting, SettingError
from drill.scenarios.tail_waste import TAIL_WASTE
from drill.serving.config import Generation
from tests.drill.scenarios.played import ALONE, Played, played

_SETTLED = 30
"""Seconds until the pool is full, or enough requests have finished to know how long they are."""


@pytest.fixture(scope="module")
def run() -> Played:
    return played("tail-waste", 720, ALONE)


def test_the_pool_is_full_while_most_of_its_slots_are_empty(run: Played) -> None:
    for each in run.engine(run.onset + _SETTLED, run.end):
        gauges, slots = each.gauges, each.config.usable_blocks * each.config.block_tokens
        assert gauges is not None
        assert gauges.usage_ratio > 0.9
        assert each.truth.tail_waste_tokens > 0.7 * slots


def test_requests_wait_while_it_is_full(run: Played) -> None:
    late = run.signal("sequences", "waiting", start=run.end - 60, until=run.end)
    assert min(late) > 0


def test_there_is_room_before_and_after(run: Played) -> None:
    for start, until in ((0, run.onset), (len(run.seconds) - 30, None)):
        assert max(run.signal("kv_usage_ratio", start=start, until=until)) < 0.6
        assert max(run.signal("sequences", "waiting", start=start, until=until)) <= 1


def test_true_waste_lies_within_the_bounds(run: Played) -> None:
    inside = told = 0
    for second, low in run.pairs("tail_fragmentation_tokens", "low"):
        high = run.at(second, "tail_fragmentation_tokens", "high")
        assert high is not None
        true = run.seconds[second].engines[0].truth.tail_waste_tokens
        if second >= _SETTLED:
            told += 1
            inside += low <= true <= high
    assert told > 200
    assert inside / told > 0.8


def test_the_share_of_used_slots_says_what_is_wrong(run: Played) -> None:
    amid = run.signal("tail_fragmentation_used_ratio", start=run.onset + _SETTLED, until=run.end)
    assert min(amid) > 0.7
    assert max(run.signal("kv_demand_ratio", start=run.onset, until=run.end)) > 1.2
    assert max(run.signal("preemptions_total")) == 0.0


def test_v0_has_no_such_blocks() -> None:
    with pytest.raises(SettingError, match="take generation v1"):
        TAIL_WASTE.scene(Setting(generation=Generation.V0))
