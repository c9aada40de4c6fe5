from __future__ import annotations

from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from exporter.kv_events.tally import MOST_REMEMBERED, RESTORE_SECONDS, RecentlyRemoved, Tally
from exporter.kv_events.wire import Batch, Cleared, Event, Removed, Stored, decode
from tests.support.kv_events import payload, recorded, removed, stored


def told(tally: Tally) -> dict[str, object]:
    sample = tally.sample(0.0, "e", "0")
    return {
        "stores": dict(sample.stores_total),
        "removals": dict(sample.removals_total),
        "restores": sample.restores_total,
        "clears": sample.clears_total,
        "batches": sample.batches_total,
        "unknown": sample.unknown_events_total,
    }


def batch(*events: Event) -> Batch:
    return Batch(0.0, 0, events)


def on_gpu(kind: Literal["stored", "removed"], *hashes: int | bytes, group: int = 0) -> Batch:
    return batch((Stored if kind == "stored" else Removed)(hashes, "GPU", group))


def test_the_recording_of_a_real_engine_adds_up_to_its_known_totals() -> None:
    tally = Tally()
    for content in recorded():
        each = decode(content)
        tally.take(each, each.at)
    assert told(tally) == {
        "stores": {"gpu": 9397, "cpu": 3804},
        "removals": {"gpu": 9143, "cpu": 3292},
        "restores": 2797,
        "clears": 0,
        "batches": 5787,
        "unknown": 0,
    }


def test_the_gpu_is_0_from_the_start_and_another_medium_absent_until_it_is_named() -> None:
    tally = Tally()
    assert told(tally)["stores"] == told(tally)["removals"] == {"gpu": 0}
    tally.take(decode(payload(1.0, [stored(1, 2, medium="CPU"), removed(1, medium="STORAGE")])), 1.0)
    assert told(tally)["stores"] == {"gpu": 0, "cpu": 2}
    assert told(tally)["removals"] == {"gpu": 0, "storage": 1}


def test_a_block_stored_within_a_minute_of_its_removal_is_a_restore_and_later_is_none() -> None:
    tally = Tally()
    tally.take(on_gpu("removed", 1, 2), 100.0)
    tally.take(on_gpu("stored", 1), 100.0 + RESTORE_SECONDS)
    tally.take(on_gpu("stored", 2), 100.1 + RESTORE_SECONDS)
    assert told(tally)["restores"] == 1


def test_a_removal_is_restored_once() -> None:
    tally = Tally()
    tally.take(on_gpu("removed", 1), 1.0)
    tally.take(on_gpu("stored", 1, 1), 2.0)
    tally.take(on_gpu("stored", 1), 3.0)
    assert told(tally)["restores"] == 1


def test_a_removal_is_restored_once_also_after_its_table_grew_old() -> None:
    tally = Tally()
    tally.take(on_gpu("removed", 1), 100.0)
    tally.take(on_gpu("removed", 2), 150.0)
    tally.take(on_gpu("removed", 3), 101.0 + RESTORE_SECONDS)  # begins a new table
    tally.take(on_gpu("stored", 2, 2), 170.0)
    assert told(tally)["restores"] == 1


def test_order_within_a_batch_counts() -> None:
    tally = Tally()
    tally.take(batch(Stored((1,), "GPU"), Removed((1,), "GPU")), 1.0)
    assert told(tally)["restores"] == 0
    tally.take(batch(Removed((2,), "GPU"), Stored((2,), "GPU")), 1.0)
    assert told(tally)["restores"] == 1


def test_other_media_and_other_groups_restore_nothing() -> None:
    tally = Tally()
    tally.take(on_gpu("removed", 1), 1.0)
    tally.take(batch(Removed((2,), "CPU")), 1.0)
    tally.take(batch(Stored((1,), "CPU")), 1.0)  # copied out, as an offload does
    tally.take(on_gpu("stored", 2), 1.0)
    tally.take(on_gpu("stored", 1, group=1), 1.0)
    assert told(tally)["restores"] == 0
    tally.take(on_gpu("removed", 7, group=1), 1.0)
    tally.take(on_gpu("stored", 7, group=1), 1.0)
    tally.take(on_gpu("removed", b"\x01" * 32), 1.0)
    tally.take(on_gpu("stored", b"\x01" * 32), 1.0)
    assert told(tally)["restores"] == 2


def test_what_comes_back_after_a_clear_or_a_restart_is_no_restore() -> None:
    tally = Tally()
    tally.take(on_gpu("removed", 1, 2), 1.0)
    tally.take(batch(Cleared(), Stored((1,), "GPU")), 2.0)
    tally.take(on_gpu("removed", 3), 2.0)
    tally.restarted()
    tally.take(on_gpu("stored", 3), 3.0)
    assert (told(tally)["restores"], told(tally)["clears"]) == (0, 1)


def test_memory_is_bounded_and_holds_what_was_removed_last() -> None:
    table = RecentlyRemoved()
    for start in range(0, 10 * MOST_REMEMBERED, 1000):
        table.add(range(start, start + 1000), 1.0)
        assert len(table) <= MOST_REMEMBERED
    newest = range(10 * MOST_REMEMBERED - MOST_REMEMBERED // 2, 10 * MOST_REMEMBERED)
    assert table.taken_back(newest, 2.0) == len(newest)
    table.add(range(3 * MOST_REMEMBERED), 3.0)  # by one event, which may hold as many
    assert len(table) <= MOST_REMEMBERED
    newest = range(3 * MOST_REMEMBERED - MOST_REMEMBERED // 2, 3 * MOST_REMEMBERED)
    assert table.taken_back(newest, 4.0) == len(newest)


def test_what_nobody_stores_again_is_let_go() -> None:
    table = RecentlyRemoved()
    for second in range(1000):
        table.add(range(second * 10, second * 10 + 10), float(second))
    assert len(table) <= 2 * 10 * (RESTORE_SECONDS + 2)


steps = st.lists(
    st.tuples(
        st.sampled_from(["stored", "removed", "cleared"]),
        st.lists(st.integers(0, 5), max_size=4),
        st.floats(0, 50),
    ),
    max_size=40,
)


@given(steps)
def test_restores_are_those_of_a_plain_count_that_forgets_nothing(
    told_steps: list[tuple[Literal["stored", "removed", "cleared"], list[int], float]],
) -> None:
    tally = Tally()
    removals: dict[int, float] = {}
    now, restores = 1000.0, 0
    for kind, blocks, pause in told_steps:
        now += pause
        tally.take(batch(Cleared()) if kind == "cleared" else on_gpu(kind, *blocks), now)
        if kind == "cleared":
            removals.clear()
        for block in () if kind == "cleared" else blocks:
            if kind == "removed":
                removals[block] = now
            else:
                restores += now - removals.pop(block, -1e9) <= RESTORE_SECONDS
    assert told(tally)["restores"] == restores
