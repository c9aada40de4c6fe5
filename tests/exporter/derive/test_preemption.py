from __future__ import annotations

from dataclasses import replace

import pytest

from exporter.derive.preemption import COST, THRASH
from exporter.sample import RankSample
from tests.support.derive import last, rank, run


def load(at: float, tokens: float, preemptions: float, usage: float = 0.98, **fields: object) -> RankSample:
    return rank(
        at,
        generation_tokens_total=tokens,
        preemptions_total=preemptions,
        kv_usage_ratio=usage,
        **{"blocks": 255.0, "block_tokens": 32.0, "running": 10.0, **fields},
    )


def incident(
    healthy: int = 150, thrashing: int = 60, after: int = 200, usage: float = 0.98
) -> list[RankSample]:
    """1,000 tokens/s in peace, 60 tokens and 30 preemptions a second while it thrashes."""
    samples, tokens, preemptions = [], 0.0, 0.0
    for at in range(healthy + thrashing + after):
        thrashes = healthy <= at < healthy + thrashing
        tokens += 60 if thrashes else 1000
        preemptions += 30 if thrashes else 0
        samples.append(load(float(at), tokens, preemptions, usage))
    return samples


def test_tokens_per_preemption_tells_contention_from_ping_pong() -> None:
    contention = [load(float(at), 1200.0 * at, 2.0 * at) for at in range(31)]
    assert last(COST, contention)["tokens_per_preemption"] == 600
    assert last(COST, contention)["preemptions_per_second"] == 2
    assert last(COST, incident(60, 40, 0))["tokens_per_preemption"] == pytest.approx(2)


def test_four_preemptions_say_nothing() -> None:
    said = last(COST, [load(float(at), 100.0 * at, min(4.0, at)) for at in range(31)])
    assert "tokens_per_preemption" not in said


def test_an_engine_that_does_not_count_preemptions_is_not_at_peace() -> None:
    samples = [rank(float(at), generation_tokens_total=10.0 * at) for at in range(40)]
    assert last(COST, samples) == {}
    assert last(THRASH, samples) == {}


def test_thrashing_is_entered_and_left_once() -> None:
    said = run(THRASH, incident())
    active = [values.get("thrashing") for values in said]
    assert active[:150] == [None] * 30 + [0] * 120
    entered = active.index(1.0)
    # 30 s of work are looked at: within them the share of the thrashing grows
    assert 150 < entered <= 180
    left = active.index(0.0, entered)
    assert active[entered:left] == [1.0] * (left - entered)
    # 60 calm seconds after the last preemption has left the window of 30 s
    assert 210 + 60 <= left <= 210 + 95
    assert said[-1]["thrash_episodes_total"] == 1
    assert said[-1]["preemptions_total"] == 60 * 30


def test_a_sidecar_that_starts_amid_thrashing_says_so() -> None:
    samples = [load(float(at), 60.0 * at, 30.0 * at) for at in range(300)]
    thrashing = [values.get("thrashing") for values in run(THRASH, samples)]
    assert thrashing[:30] == [None] * 30
    assert thrashing[31:] == [1] * 269


def test_a_restart_ends_the_thrashing_of_the_process_before() -> None:
    storm = incident(after=0)
    tail = storm[-1]
    fresh = [load(tail.at + at, 1000.0 * at, 0.0, usage=0.1, started_at=900.0) for at in range(1, 90)]
    old = [replace(sample, started_at=100.0) for sample in storm]
    said = [values.get("thrashing") for values in run(THRASH, [*old, *fresh])]
    assert said[len(old) - 1] == 1
    assert 1 not in said[len(old) :]


def test_what_it_did_before_a_long_silence_is_not_what_it_does() -> None:
    storm = incident(after=0)
    tail = storm[-1]
    later = [
        load(
            tail.at + 600 + at,
            (tail.generation_tokens_total or 0) + 1000.0 * at,
            tail.preemptions_total or 0,
            0.1,
        )
        for at in range(90)
    ]
    said = [values.get("thrashing") for values in run(THRASH, [*storm, *later])][len(storm) :]
    assert said[:20] == [None] * 20
    assert said[-1] == 0


@pytest.mark.parametrize("where", ["running", "waiting", "swapped"])
def test_a_deadlock_is_no_calm(where: str) -> None:
    storm = incident(after=0)
    tail = storm[-1]
    stuck = [
        load(
            tail.at + at,
            tail.generation_tokens_total or 0,
            tail.preemptions_total or 0,
            **{"running": 0.0, "waiting": 0.0, "swapped": 0.0, where: 58.0},
        )
        for at in range(1, 300)
    ]
    assert last(THRASH, [*storm, *stuck])["thrashing"] == 1


def test_two_incidents_are_two_episodes() -> None:
    first = incident()
    offset = first[-1]
    second = [
        load(
            sample.at + offset.at + 1,
            sample.generation_tokens_total + offset.generation_tokens_total,  # type: ignore[operator]
            sample.preemptions_total + offset.preemptions_total,  # type: ignore[operator]
        )
        for sample in incident()
    ]
    assert last(THRASH, [*first, *second])["thrash_episodes_total"] == 2


def test_preemptions_in_a_half_empty_pool_are_not_thrashing() -> None:
    said = [values.get("thrashing") for values in run(THRASH, incident(usage=0.6))]
    assert set(said[30:]) == {0}


@pytest.mark.parametrize(("running", "thrashes"), [(4.0, 1), (40.0, 0)])
def test_what_a_preemption_is_worth_is_set_against_what_a_sequence_holds(
    running: float, thrashes: int
) -> None:
    # 300 tokens a preemption: next to nothing where the thrown out held 2,000, and all that 200 tokens make room for
    samples = [load(float(at), 600.0 * at, 2.0 * at, running=running) for at in range(100)]
    assert last(THRASH, samples)["thrashing"] == thrashes


def test_an_engine_that_does_not_tell_what_sequences_hold_is_not_said_to_be_well() -> None:
    said = last(THRASH, [load(float(at), 60.0 * at, 30.0 * at, blocks=None) for at in range(100)])
    assert said == {"preemptions_total": 99 * 30, "thrash_episodes_total": 0}


def test_plain_contention_of_a_real_engine_is_not_thrashing() -> None:
    samples = [load(float(at), 2000.0 * at, 3.5 * at) for at in range(300)]
    assert {values.get("thrashing") for values in run(THRASH, samples)[30:]} == {0}


def test_wasted_work_of_recomputing() -> None:
    # 3 preemptions a second, each of 25.5 x 0.98 blocks x 32 tokens, against 1,000 tokens
    said = last(COST, [load(float(at), 1000.0 * at, 3.0 * at) for at in range(31)])
    again = 3 * 255 * 0.98 * 32 / 10
    assert said["wasted_work_ratio"] == pytest.approx(again / (again + 1000))


def test_prefix_hits_save_part_of_it_and_swapping_moves_it_twice() -> None:
    hits = [
        load(float(at), 1000.0 * at, 3.0 * at, prefix_queries_total=100.0 * at, prefix_hits_total=75.0 * at)
        for at in range(31)
    ]
    each = 3 * 255 * 0.98 * 32 / 10
    assert last(COST, hits)["wasted_work_ratio"] == pytest.approx(each / 4 / (each / 4 + 1000))
    swapping = [load(float(at), 1000.0 * at, 3.0 * at, swapped=2.0) for at in range(31)]
    assert last(COST, swapping)["wasted_work_ratio"] == pytest.approx(2 * each / (2 * each + 1000))


def test_no_preemption_wastes_nothing_but_idleness_is_not_known_to_be_good() -> None:
    busy = [load(float(at), 10.0 * at, 7.0) for at in range(31)]
    assert last(COST, busy)["wasted_work_ratio"] == 0
    idle = [load(float(at), 10.0, 7.0) for at in range(31)]
    assert "wasted_work_ratio" not in last(COST, idle)
