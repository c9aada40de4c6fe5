from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate

import pytest

from exporter.derive.attribution import ATTRIBUTION
from exporter.gpu_sample import GpuSample, PcieTraffic
from exporter.pcie import HEADER_FACTOR
from exporter.sample import EngineSample
from tests.exporter.derive.joining import Timed, beside, joins
from tests.support.derive import Named, engine, gpu, rank, run_joined

IN, OUT = "pcie_swap_share_ratio{in}", "pcie_swap_share_ratio{out}"
LEFT_IN, LEFT_OUT = "pcie_unexplained_bytes_per_second{in}", "pcie_unexplained_bytes_per_second{out}"
IMPOSSIBLE = "pcie_swap_share_impossible"
SECONDS = 100


def swapping(at: float, into: float, out: float = 0.0, **fields: object) -> EngineSample:
    """An engine that has swapped so many bytes."""
    return engine(
        at, rank(at, swap_in_bytes_total=into, swap_out_bytes_total=out), **{"read_seconds": 0.01, **fields}
    )


def carried(at: float, into: float, index: int = 0, out: float = 0.0, **fields: object) -> GpuSample:
    told = {"pcie": PcieTraffic("gpm", out, into, ambiguous_intervals_total=0.0), **fields}
    return gpu(at, index, **{"reader_started_at": 1.0, **told})


def steady(
    swap: float = 1e9, traffic: float = 2e9, gpus: int = 1, phase: float = 0.4, seconds: int = SECONDS
) -> list[Timed]:
    """So many bytes a second of swap and of PCIe on each GPU, read ``phase`` seconds apart."""
    samples: list[Timed] = [swapping(float(at), swap * at) for at in range(seconds)]
    for index in range(gpus):
        samples += [carried(at + phase, traffic * (at + phase), index) for at in range(seconds)]
    return samples


def last(samples: Sequence[Timed], *, stale: int = 0) -> Named:
    return run_joined(ATTRIBUTION, joins(samples, stale=stale))[-1]


def test_the_share_of_all_gpus_and_what_is_left() -> None:
    said = last(steady(swap=4e9, traffic=2e9, gpus=8))
    assert said[IN] == pytest.approx(4e9 * 1.09 / 16e9)
    assert said[LEFT_IN] == pytest.approx(16e9 - 4e9 * 1.09)
    assert said[IMPOSSIBLE] == 0


def test_the_incident_s_figures() -> None:
    """1,420 blocks a second of 5.24 MB explain 12 % of 61.8 GB/s, headers a little more."""
    said = last(steady(swap=1420 * 5_242_880.0, traffic=61.8e9))
    assert said[IN] == pytest.approx(0.12 * HEADER_FACTOR, rel=0.01)


def test_directions_are_told_apart() -> None:
    samples: list[Timed] = [swapping(float(at), 1e9 * at, 3e9 * at) for at in range(SECONDS)]
    samples += [carried(at + 0.5, 2.18e9 * at, out=6.54e9 * at) for at in range(SECONDS)]
    said = last(samples)
    assert said[IN] == pytest.approx(0.5)
    assert said[OUT] == pytest.approx(0.5)
    assert said[LEFT_OUT] == pytest.approx(3.27e9)


def test_nothing_is_said_before_a_minute_was_seen() -> None:
    said = run_joined(ATTRIBUTION, joins(steady()))
    known = [values.get(IN) is not None for values in said]
    assert known.index(True) in range(118, 123), "two samples a second"
    assert all(known[known.index(True) :])


@pytest.mark.parametrize("phase", [0.01, 0.25, 0.5, 0.75, 0.99])
def test_bursts_that_are_read_at_other_moments_keep_the_share_within_three_percent(phase: float) -> None:
    dice = random.Random(phase)  # noqa: S311 -- a story, not a secret
    # a tenth of a second each: mostly nothing, now and then 50 GB/s
    bursts = [5e9 * (dice.random() < 0.2) for _ in range(10 * 200)]
    moved = [0.0, *accumulate(bursts)]

    def until(at: float) -> float:
        place = at * 10
        low = math.floor(place)
        return moved[low] + (moved[low + 1] - moved[low]) * (place - low)

    samples: list[Timed] = [swapping(float(at), until(at)) for at in range(190)]
    samples += [
        carried(at + phase, 1.09 * until(at + phase) + 10e9 * (at + phase), out=0.0) for at in range(190)
    ]
    for values in run_joined(ATTRIBUTION, joins(samples))[140:]:
        everything = values[LEFT_IN] / (1 - values[IN])
        assert abs(values[LEFT_IN] - 10e9) <= 0.03 * everything


def test_ranks_of_one_engine_add_up() -> None:
    samples: list[Timed] = []
    for at in range(SECONDS):
        ranks = [
            replace(rank(float(at), swap_in_bytes_total=1e9 * at, swap_out_bytes_total=0.0), rank=name)
            for name in "01"
        ]
        samples += [engine(float(at), *ranks), carried(at + 0.4, 4.36e9 * (at + 0.4))]
    assert last(samples)[IN] == pytest.approx(0.5)


@pytest.mark.parametrize(
    "broken",
    [
        lambda samples: [each for each in samples if isinstance(each, EngineSample) or each.at < 60],
        lambda samples: [
            each._replace(pcie=None) if isinstance(each, GpuSample) else each for each in samples
        ],
        lambda samples: [
            carried(each.at, 2e9, pcie=PcieTraffic("window", None, None, 0.0, 2e9))
            if isinstance(each, GpuSample)
            else each
            for each in samples
        ],
        lambda samples: [
            carried(each.at, 2e9 * each.at, reader_started_at=100.0 * (each.at > 70))
            if isinstance(each, GpuSample)
            else each
            for each in samples
        ],
        lambda samples: [
            carried(each.at, 0.0, pcie=PcieTraffic("counter", 0.0, 2e9 * each.at, None, None, each.at // 70))
            if isinstance(each, GpuSample)
            else each
            for each in samples
        ],
        lambda samples: [
            carried(
                each.at, 0.0, pcie=PcieTraffic("gpm" if 50 < each.at < 60 else "dcgm", 0.0, 2e9 * each.at)
            )
            if isinstance(each, GpuSample)
            else each
            for each in samples
        ],
        lambda samples: [
            replace(each, started_at=100.0 * (each.at > 70)) if isinstance(each, EngineSample) else each
            for each in samples
        ],
        lambda samples: [
            replace(each, read_seconds=3.0) if isinstance(each, EngineSample) and each.at > 50 else each
            for each in samples
        ],
        lambda samples: [
            engine(each.at, rank(each.at, swapped=1.0, swap_tier_blocks=512.0))
            if isinstance(each, EngineSample)
            else each
            for each in samples
        ],
        lambda samples: [
            replace(each, ranks=each.ranks[: int(each.at < 50)]) if isinstance(each, EngineSample) else each
            for each in samples
        ],
    ],
    ids=[
        "a GPU stale",
        "no PCIe bytes",
        "windows of 20 ms",
        "reader began anew",
        "ambiguous",
        "source changed",
        "engine began anew",
        "engine answers late",
        "swap only estimated",
        "ranks went",
    ],
)
def test_what_can_not_be_known_is_absent(broken: Callable[[list[Timed]], list[Timed]]) -> None:
    assert last(broken(steady())) == {}


def test_absent_while_a_gpu_is_stale_or_lost() -> None:
    assert last(steady(gpus=2), stale=1) == {}


def test_one_late_answer_of_the_engine_is_passed_over() -> None:
    samples = [
        replace(each, read_seconds=3.0) if isinstance(each, EngineSample) and each.at == 99 else each
        for each in steady()
    ]
    assert last(samples)[IN] == pytest.approx(1.09 / 2)


def test_a_direction_of_which_the_engine_tells_nothing_is_absent() -> None:
    samples: list[Timed] = [
        engine(float(at), rank(float(at), swap_in_bytes_total=1e9 * at)) for at in range(SECONDS)
    ]
    samples += [carried(at + 0.4, 2e9 * (at + 0.4)) for at in range(SECONDS)]
    assert set(last(samples)) == {IN, LEFT_IN, IMPOSSIBLE}


def test_an_engine_that_can_not_swap_explains_nothing() -> None:
    samples: list[Timed] = [
        engine(float(at), rank(float(at), prefix_queries_total=1.0 + at, external_queries_total=0.0))
        for at in range(SECONDS)
    ]
    samples += [carried(at + 0.4, 2e9 * (at + 0.4)) for at in range(SECONDS)]
    said = last(samples)
    assert said[IN] == 0
    assert said[LEFT_IN] == pytest.approx(2e9)
    assert IMPOSSIBLE not in said


def test_where_nothing_moved_there_is_no_share() -> None:
    said = last(steady(swap=0.0, traffic=0.0))
    assert said == {LEFT_IN: 0, LEFT_OUT: 0}


def test_a_share_above_one_is_one_within_the_slack() -> None:
    said = last(steady(swap=2e9, traffic=2e9 * 1.09 / 1.08))
    assert said[IN] == 1
    assert said[LEFT_IN] == 0
    assert said[IMPOSSIBLE] == 0


def test_an_engine_that_is_joined_with_the_wrong_gpus_is_told_of() -> None:
    said = run_joined(ATTRIBUTION, joins(steady(swap=2e9, traffic=1e9, seconds=200)))
    assert not any(IN in values or LEFT_IN in values for values in said)
    told = [values.get(IMPOSSIBLE) for values in said]
    # a minute until it can be seen, and 90 s in which a burst may only have fallen badly
    assert set(told[: 2 * 149]) == {None}
    assert set(told[2 * 152 :]) == {1}


def test_one_burst_that_fell_badly_is_no_wrong_join() -> None:
    swapped = [0.0 if at < 70 else 9e9 for at in range(250)]
    samples: list[Timed] = [swapping(float(at), value) for at, value in enumerate(swapped)]
    samples += [carried(at + 0.4, 1e6 * at) for at in range(250)]
    told = {values.get(IMPOSSIBLE) for values in run_joined(ATTRIBUTION, joins(samples))}
    assert told == {None}


def test_a_trickle_is_not_judged() -> None:
    said = last(steady(swap=5e5, traffic=1e5))
    assert IN not in said
    assert IMPOSSIBLE not in said


def test_of_two_engines_on_the_same_gpus_each_has_its_share_and_both_explain() -> None:
    other = [swapping(at + 0.7, 0.5e9 * (at + 0.7)) for at in range(-1, SECONDS + 1)]
    (*_, said) = run_joined(ATTRIBUTION, beside(joins(steady()), other))
    assert said[IN] == pytest.approx(1.09 / 2)
    assert said[LEFT_IN] == pytest.approx(2e9 - 1.5e9 * 1.09)


@pytest.mark.parametrize(("within", "fresh"), [(False, True), (True, False)])
def test_what_another_engine_may_have_moved_is_not_called_unexplained(
    within: bool,  # noqa: FBT001 -- a table's column
    fresh: bool,  # noqa: FBT001 -- a table's column
) -> None:
    other = [swapping(at + 0.7, 0.5e9 * (at + 0.7)) for at in range(-1, SECONDS + 1)]
    (*_, said) = run_joined(ATTRIBUTION, beside(joins(steady()), other, within=within, fresh=fresh))
    assert said[IN] == pytest.approx(1.09 / 2)
    assert LEFT_IN not in said


def test_two_engines_that_together_swap_more_than_went_over_pcie_leave_nothing_to_say() -> None:
    other = [swapping(at + 0.7, 1.5e9 * (at + 0.7)) for at in range(-1, SECONDS + 1)]
    (*_, said) = run_joined(ATTRIBUTION, beside(joins(steady()), other))
    assert said[IN] == pytest.approx(1.09 / 2)
    assert LEFT_IN not in said


def rated(at: float, into: float, source: str = "dcgm") -> GpuSample:
    return gpu(at, pcie=PcieTraffic(source, None, None, 0.0, into))


def test_rates_alone_will_do_where_they_are_fresh_and_of_all_the_time() -> None:
    def fresh(source: str) -> list[Timed]:
        samples: list[Timed] = [swapping(float(at), 1e9 * at) for at in range(SECONDS)]
        return [*samples, *(rated(at + 0.4, 2e9 + at % 2, source) for at in range(SECONDS))]

    said = last(fresh("dcgm"))
    assert said[IN] == pytest.approx(1.09 / 2)
    assert said[LEFT_IN] == pytest.approx(2e9 - 1.09e9)
    assert last(fresh("window")) == {}, "windows of 20 ms see 2 % of it"


def test_rates_that_are_renewed_every_thirty_seconds_are_too_late() -> None:
    samples: list[Timed] = [swapping(float(at), 1e9 * at) for at in range(SECONDS)]
    samples += [rated(at + 0.4, 2e9 + at // 30) for at in range(SECONDS)]
    assert last(samples) == {}
