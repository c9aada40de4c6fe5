from __future__ import annotations

import pytest

from exporter.cycle import CycleSettings, State, initial, step
from exporter.derive.kv_events import KV_EVENTS
from exporter.kv_events.tally import Tally
from exporter.kv_events.wire import decode
from exporter.kv_events_sample import KvEventsSample
from exporter.observation import Observation, SourceStatus
from exporter.sample import STALE_AFTER_SECONDS
from exporter.snapshot import Snapshot
from tests.support.derive import last, run
from tests.support.kv_events import recorded


def heard(at: float, stores: int = 0, removals: int = 0, **counts: int) -> KvEventsSample:
    """Counts on the GPU alone."""
    return KvEventsSample(at, "e", "0", (("gpu", stores),), (("gpu", removals),), **counts)


def test_an_idle_engine_stores_nothing_and_has_no_ratio() -> None:
    said = last(KV_EVENTS, [heard(float(at)) for at in range(70)])
    assert said["kv_block_stores_total{0,gpu}"] == 0
    assert said["kv_block_stores_per_second{0,gpu}"] == 0
    assert said["kv_block_removals_per_second_peak{0,gpu}"] == 0
    assert said["kv_event_batches_lost_total{0}"] == 0
    assert "kv_block_restore_ratio{0}" not in said


def test_rates_are_of_ten_seconds_and_a_burst_stays_in_the_peak_for_a_minute() -> None:
    stores = [0, 0, 500] + [500 + 10 * at for at in range(1, 30)]
    said = last(KV_EVENTS, [heard(float(at), count) for at, count in enumerate(stores)])
    assert said["kv_block_stores_per_second{0,gpu}"] == pytest.approx(10)
    assert said["kv_block_stores_per_second_peak{0,gpu}"] == 500


def test_the_ratio_is_of_what_was_stored_in_the_last_minute() -> None:
    # a minute in which all that is stored comes back, then one in which a quarter of it does
    samples = [heard(float(at), 8 * at, restores_total=8 * at) for at in range(61)]
    samples += [heard(60.0 + at, 480 + 8 * at, restores_total=480 + 2 * at) for at in range(1, 61)]
    said = run(KV_EVENTS, samples)
    assert "kv_block_restore_ratio{0}" not in said[30]
    assert said[60]["kv_block_restore_ratio{0}"] == 1
    assert said[90]["kv_block_restore_ratio{0}"] == pytest.approx((1 + 0.25) / 2, rel=0.02)
    assert said[120]["kv_block_restore_ratio{0}"] == 0.25


def test_a_tier_that_shows_up_late_is_absent_before_and_whole_then() -> None:
    samples = [heard(float(at)) for at in range(12)]
    samples.append(KvEventsSample(12.0, "e", "0", (("gpu", 0), ("cpu", 40)), (("gpu", 0),)))
    said = run(KV_EVENTS, samples)
    assert "kv_block_stores_total{0,cpu}" not in said[11]
    assert said[12]["kv_block_stores_total{0,cpu}"] == 40
    assert said[12]["kv_block_stores_per_second{0,cpu}"] == pytest.approx(4)


def test_each_count_has_its_signal() -> None:
    sample = heard(
        1.0, clears_total=1, batches_total=2, lost_batches_total=3, unknown_events_total=4, broken_batches_total=5
    )  # fmt: skip
    said = last(KV_EVENTS, [sample])
    assert said["kv_cache_clears_total{0}"] == 1
    assert said["kv_event_batches_total{0}"] == 2
    assert said["kv_event_batches_lost_total{0}"] == 3
    assert said["kv_events_unknown_total{0}"] == 4
    assert said["kv_event_batches_broken_total{0}"] == 5


def cycle(state: State, now: float, *samples: KvEventsSample) -> tuple[State, Snapshot]:
    status = SourceStatus("e/kv_events", "kv_events", bool(samples), None, None)
    return step(state, now, [Observation(status, kv_events=samples)])


def named(snapshot: Snapshot) -> dict[str, float]:
    return {
        value.signal.name + "{" + ",".join(value.labels) + "}": value.value
        for value in snapshot.values
        if value.signal in KV_EVENTS.signals and not value.is_peak
    }


def test_what_a_real_engine_published_goes_through_the_cycle() -> None:
    """Second by second, by the publisher's clock."""
    tally = Tally()
    state = initial(CycleSettings())
    batches = [decode(content) for content in recorded()]
    start = batches[0].at
    ratios = []
    snapshot = None
    for second in range(1, 100):
        while batches and batches[0].at <= start + second:
            batch = batches.pop(0)
            tally.take(batch, batch.at)
        at = start + second
        state, snapshot = cycle(state, at, tally.sample(at, "e", "0"))
        ratios.append(named(snapshot).get("kv_block_restore_ratio{e,0}"))
    assert not batches
    assert snapshot is not None
    values = named(snapshot)
    assert values["kv_block_stores_total{e,0,gpu}"] == 9397
    assert values["kv_block_stores_total{e,0,cpu}"] == 3804
    assert values["kv_block_removals_total{e,0,cpu}"] == 3292
    assert ratios[58] is None
    told = [ratio for ratio in ratios if ratio is not None]
    assert 0.2 < min(told) < max(told) < 0.45
    assert not snapshot.failures


def test_values_hold_for_as_long_as_others_and_counts_go_on_after_it() -> None:
    state, _ = cycle(initial(CycleSettings()), 100.0, heard(100.0, 5))
    state, held = cycle(state, 100.0 + STALE_AFTER_SECONDS)
    assert named(held)["kv_block_stores_total{e,0,gpu}"] == 5
    state, gone = cycle(state, 101.0 + STALE_AFTER_SECONDS)
    assert named(gone) == {}
    _, back = cycle(state, 130.0, heard(130.0, 7))
    assert named(back)["kv_block_stores_total{e,0,gpu}"] == 7
    assert "kv_block_stores_per_second{e,0,gpu}" not in named(back)


def test_ranks_and_engines_are_apart() -> None:
    samples = [KvEventsSample(1.0, engine, rank, (("gpu", 1),)) for engine in "ab" for rank in "01"]
    _, snapshot = cycle(initial(CycleSettings()), 1.0, *samples)
    assert {name for name in named(snapshot) if name.startswith("kv_block_stores_total")} == {
        f"kv_block_stores_total{{{engine},{rank},gpu}}" for engine in "ab" for rank in "01"
    }


def test_publishers_that_keep_changing_their_rank_do_not_fill_memory() -> None:
    state = initial(CycleSettings())
    for at in range(3000):
        state, _ = cycle(state, float(at), KvEventsSample(float(at), "e", str(at)))
    assert len(state.kv_events) == 1024
    assert ("e", "2999") in state.kv_events
