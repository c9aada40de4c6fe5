from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from exporter.derive.fragmentation import PROBED_FRAGMENTATION
from exporter.derive.phenomenon import EngineFacts, Phenomenon
from exporter.derive.pingpong import PROBED_PINGPONG
from exporter.derive.probe import PROBE
from exporter.probe_sample import GroupHeld, Probed, ProbeSample
from exporter.sample import RankSample
from exporter.window import Window
from tests.support.derive import Named, rank, said_of
from tests.support.probes import probe

BOUNDS = ("min", "low", "expected", "high", "max")


def last(
    phenomenon: Phenomenon[Probed, Any],
    samples: Sequence[ProbeSample],
    beside: RankSample | None = None,
    facts: EngineFacts | None = None,
) -> Named:
    window: Window[ProbeSample] = Window()
    state = phenomenon.initial
    named: Named = {}
    for sample in samples:
        window = window.appended(sample)
        state, points = phenomenon.derive(Probed(window, beside), facts or EngineFacts(), state)
        named = said_of(phenomenon, points)
    return named


def every_second(seconds: int, **per_second: int) -> list[ProbeSample]:
    return [
        probe(float(at), **{name: each * at for name, each in per_second.items()})
        for at in range(seconds + 1)
    ]


def test_exact_tails_are_all_the_bounds_there_are() -> None:
    held = probe(0.0, running=10, groups=(GroupHeld(32, 80, 150),))
    beside = rank(0, running=10.0, block_tokens=32.0, kv_usage_ratio=0.8, blocks=100.0)
    said = last(PROBED_FRAGMENTATION, [held], beside, EngineFacts(kv_bytes_per_token=512.0))
    assert [said[f"tail_fragmentation_tokens{{{bound}}}"] for bound in BOUNDS] == [150] * 5
    assert [said[f"tail_fragmentation_bytes{{{bound}}}"] for bound in BOUNDS] == [150 * 512] * 5
    assert said["tail_fragmentation_used_ratio"] == pytest.approx(150 / (80 * 32))
    assert said["tail_fragmentation_reserve_ratio"] == pytest.approx(150 / (20 * 32))


def test_tails_of_all_groups_add_up() -> None:
    held = probe(0.0, groups=(GroupHeld(16, 4, 15), GroupHeld(64, None, 100)))
    assert last(PROBED_FRAGMENTATION, [held])["tail_fragmentation_tokens{expected}"] == 115


def test_without_the_engine_s_page_there_are_tokens_and_no_shares() -> None:
    said = last(PROBED_FRAGMENTATION, [probe(0.0, groups=(GroupHeld(16, 4, 15),))], None)
    assert set(said) == {f"tail_fragmentation_tokens{{{bound}}}" for bound in BOUNDS}


@pytest.mark.parametrize(
    "unknown",
    [{"groups": ()}, {"groups": (GroupHeld(16, 1, 3), GroupHeld(1, None, None))}, {"age_seconds": 15.1}],
)
def test_tails_that_are_not_told_or_too_old_are_absent(unknown: dict[str, Any]) -> None:
    assert last(PROBED_FRAGMENTATION, [probe(0.0, **unknown)]) == {}


def test_the_repeat_share_is_that_of_the_trailing_30_s() -> None:
    samples = every_second(30, preemptions_total=4, repeats_total=3)
    assert last(PROBED_PINGPONG, samples) == {"pingpong_ratio{probe}": 0.75}
    later = [probe(31.0 + at, preemptions_total=120, repeats_total=90) for at in range(40)]
    assert last(PROBED_PINGPONG, samples + later) == {}, "no preemption, no share"


def test_plain_contention_is_no_ping_pong() -> None:
    assert last(PROBED_PINGPONG, every_second(30, preemptions_total=4)) == {"pingpong_ratio{probe}": 0.0}


def test_before_30_s_have_passed_and_without_counts_there_is_no_share() -> None:
    assert last(PROBED_PINGPONG, every_second(20, preemptions_total=4, repeats_total=3)) == {}
    blind = [probe(float(at), preemptions_total=None, repeats_total=None) for at in range(40)]
    assert last(PROBED_PINGPONG, blind) == {}


def test_totals_are_ours_from_0_and_outlive_the_engine() -> None:
    samples = [
        probe(0.0, steps_total=500, repeats_total=9),
        probe(1.0, steps_total=540, repeats_total=12),
        probe(2.0, sender="2-2", steps_total=3, repeats_total=1),
        probe(3.0, sender="2-2", steps_total=13, repeats_total=3),
    ]
    said = last(PROBE, samples)
    assert (said["scheduler_steps_total"], said["repeat_preemptions_total"]) == (50, 5)


def test_tokens_between_preemptions_are_a_mean_over_the_repeats() -> None:
    said = last(PROBE, every_second(30, repeats_total=2, repeat_tokens_total=5))
    assert said["tokens_between_preemptions"] == 2.5
    assert "tokens_between_preemptions" not in last(PROBE, every_second(30, preemptions_total=2))


def test_the_longest_step_of_10_s_and_of_a_minute() -> None:
    samples = [probe(float(at), longest_step_seconds=9.0 if at == 5 else 0.02) for at in range(40)]
    said = last(PROBE, samples)
    assert (said["scheduler_longest_step_seconds"], said["scheduler_longest_step_seconds_peak"]) == (
        0.02,
        9.0,
    )


def test_blocks_are_those_of_all_groups_where_each_can_tell() -> None:
    held = probe(0.0, groups=(GroupHeld(16, 4, 15), GroupHeld(16, 3, 1)))
    assert last(PROBE, [held])["sequence_blocks"] == 7
    for unknown in (probe(0.0, groups=(GroupHeld(16, None, 1),)), probe(0.0, age_seconds=15.5)):
        assert "sequence_blocks" not in last(PROBE, [unknown])


def test_the_probe_s_cost_is_a_share_of_the_time_that_steps_take() -> None:
    samples = [
        probe(float(at), busy_seconds_total=0.5 * at, own_seconds_total=0.001 * at) for at in range(61)
    ]
    assert last(PROBE, samples)["probe_overhead_ratio"] == pytest.approx(0.002)
    idle = [probe(float(at), own_seconds_total=0.001 * at) for at in range(61)]
    assert "probe_overhead_ratio" not in last(PROBE, idle)
