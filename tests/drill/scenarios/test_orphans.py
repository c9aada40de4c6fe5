"""Orphans: engines work for nobody, and only the gateway beside them can tell."""

from __future__ import annotations

from statistics import mean

import pytest

from drill.scenarios.orphans import ORPHANS
from tests.drill.scenarios.seen import Seen, seen


@pytest.fixture(scope="module")
def played() -> Seen:
    return seen(ORPHANS, 660)


def test_engines_work_for_nobody_and_orphans_hold_the_blocks(played: Seen) -> None:
    late = played.engine(played.end - 60, played.end)
    usable = late[0].config.usable_blocks
    assert mean(each.truth.orphans for each in late) > 10
    assert mean(each.truth.orphan_blocks for each in late) > 0.2 * usable
    clients = [moment.second.clients for moment in played.moments]
    before = clients[played.onset - 1].answered - clients[played.onset - 121].answered
    assert clients[played.end - 1].answered - clients[played.end - 121].answered < 0.5 * before


def test_there_are_none_before_and_none_a_while_after(played: Seen) -> None:
    assert set(played.signal("orphan_sequences", until=played.onset)) == {0.0}
    assert not any(each.truth.orphans for each in played.engine(until=played.onset))
    assert set(played.signal("orphan_sequences", start=-30)) == {0.0}


def test_orphans_are_told_late_but_told(played: Seen) -> None:
    told = played.signal("orphan_sequences", start=played.onset + 60, until=played.end)
    true = [each.truth.orphans for each in played.engine(played.onset + 60, played.end)]
    assert len(told) > 0.8 * len(true)
    assert mean(told) == pytest.approx(mean(true), rel=0.25)
    share = played.signal("orphan_kv_ratio", start=played.end - 60, until=played.end)
    blocks = [
        each.truth.orphan_blocks / each.config.usable_blocks
        for each in played.engine(played.end - 60, played.end)
    ]
    assert mean(share) == pytest.approx(mean(blocks), rel=0.35)


def test_engines_count_no_client_that_left_while_nobody_tells_them(played: Seen) -> None:
    assert set(played.signal("client_aborts_total", until=played.end)) == {0.0}
    assert played.moments[played.end - 1].second.clients.timed_out > 100
