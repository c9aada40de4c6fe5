"""Orphans: engines work for nobody, and only the gateway beside them can tell."""

from __future__ import annotations

from statistics import mean

import pytest

from tests.drill.scenarios.played import ALONE, Played, played


@pytest.fixture(scope="module")
def run() -> Played:
    return played("orphans", 660, ALONE)


def test_engines_work_for_nobody_and_orphans_hold_the_blocks(run: Played) -> None:
    late = run.engine(run.end - 60, run.end)
    usable = late[0].config.usable_blocks
    assert mean(each.truth.orphans for each in late) > 10
    assert mean(each.truth.orphan_blocks for each in late) > 0.2 * usable
    clients = [second.clients for second in run.seconds]
    before = clients[run.onset - 1].answered - clients[run.onset - 121].answered
    assert clients[run.end - 1].answered - clients[run.end - 121].answered < 0.5 * before


def test_there_are_none_before_and_none_a_while_after(run: Played) -> None:
    assert set(run.signal("orphan_sequences", until=run.onset)) == {0.0}
    assert not any(each.truth.orphans for each in run.engine(until=run.onset))
    assert set(run.signal("orphan_sequences", start=-30)) == {0.0}


def test_orphans_are_told_late_but_told(run: Played) -> None:
    told = run.signal("orphan_sequences", start=run.onset + 60, until=run.end)
    true = [each.truth.orphans for each in run.engine(run.onset + 60, run.end)]
    assert len(told) > 0.8 * len(true)
    assert mean(told) == pytest.approx(mean(true), rel=0.25)
    share = run.signal("orphan_kv_ratio", start=run.end - 60, until=run.end)
    blocks = [
        each.truth.orphan_blocks / each.config.usable_blocks for each in run.engine(run.end - 60, run.end)
    ]
    assert mean(share) == pytest.approx(mean(blocks), rel=0.35)


def test_engines_count_no_client_that_left_while_nobody_tells_them(run: Played) -> None:
    assert set(run.signal("client_aborts_total", until=run.end)) == {0.0}
    assert run.seconds[run.end - 1].clients.timed_out > 100
