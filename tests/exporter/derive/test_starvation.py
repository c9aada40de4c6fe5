from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from exporter.derive.starvation import STARVATION
from exporter.gpu_sample import GpuSample, GpuUtilisation, PcieLink, PcieTraffic
from exporter.sample import EngineSample
from tests.exporter.derive.joining import Timed, joins
from tests.support.derive import Named, engine, gpu, rank, run_joined
from tests.support.gpus import LINK, LINK_BYTES, identity

NAME = f"gpu_starved_ratio{{{identity().uuid}}}"
SECONDS = 120


def samples(
    full: Callable[[int], float] = lambda _: 0.95,
    active: Callable[[int], float | None] = lambda _: 0.05,
    running: Callable[[int], float | None] = lambda _: 8.0,
    busy: float | None = 1.0,
    **fields: object,
) -> list[Timed]:
    """A GPU whose link is so full and whose SMs are so active in each second, and an engine with sequences."""
    moved, made = 0.0, []
    for at in range(SECONDS):
        moved += full(at) * LINK_BYTES
        load = GpuUtilisation(busy, active(at))
        made.append(engine(float(at), rank(float(at), running=running(at))))
        known = {"pcie": PcieTraffic("gpm", moved, 0.0), "link": LINK, "utilisation": load, **fields}
        made.append(gpu(at + 0.3, **known))
    return made


def last(made: Sequence[Timed]) -> Named:
    return run_joined(STARVATION, joins(made))[-1]


def test_a_gpu_that_waits_for_pcie_starves() -> None:
    assert last(samples()) == {NAME: 1}


@pytest.mark.parametrize(
    "healthy",
    [
        samples(full=lambda _: 0.5),
        samples(active=lambda _: 0.6),
        samples(running=lambda _: 0.0),
    ],
    ids=["PCIe has room", "SMs work beside the copies", "nothing to do"],
)
def test_one_of_the_three_alone_is_no_starving(healthy: list[Timed]) -> None:
    assert last(healthy) == {NAME: 0}


def test_the_share_is_that_of_time() -> None:
    assert last(samples(full=lambda at: 0.95 if at % 4 == 0 else 0.1))[NAME] == pytest.approx(0.25, abs=0.02)


def test_it_needs_a_minute() -> None:
    said = run_joined(STARVATION, joins(samples()))
    assert not any(said[: 2 * 58])
    assert all(said[2 * 61 :])


def test_without_profiling_counters_the_driver_s_utilisation_has_to_do() -> None:
    assert last(samples(active=lambda _: None, busy=0.1)) == {NAME: 1}
    assert last(samples(active=lambda _: None, busy=0.9)) == {NAME: 0}


@pytest.mark.parametrize(
    "unknown",
    [
        samples(running=lambda _: None),
        samples(utilisation=None),
        samples(link=None),
        samples(pcie=None),
        samples(active=lambda _: None, busy=None),
    ],
    ids=["sequences", "utilisation", "link", "PCIe", "both of utilisation"],
)
def test_what_is_not_known_makes_it_absent(unknown: list[Timed]) -> None:
    assert last(unknown) == {}


def test_one_condition_that_is_known_not_to_hold_is_enough() -> None:
    assert last(samples(running=lambda _: 0.0, pcie=None)) == {NAME: 0}


def test_each_gpu_starves_by_itself_and_one_that_went_takes_its_value_along() -> None:
    first = samples()
    other = [each._replace(identity=identity(1)) for each in samples(full=lambda _: 0.2) if _is_gpu(each)]
    said = last([*first, *other])
    assert list(said.values()) == [1, 0]
    seen = list(joins([*first, *other]))
    seen.append(replace(seen[-1], gpus=seen[-1].gpus[:1]))
    assert run_joined(STARVATION, seen)[-1] == {NAME: 1}


def _is_gpu(sample: Timed) -> bool:
    return isinstance(sample, GpuSample)


def test_a_reader_that_begins_anew_tells_nothing_of_that_second() -> None:
    made = [
        each._replace(reader_started_at=float(each.at > 50)) if isinstance(each, GpuSample) else each
        for each in samples()
    ]
    assert last(made) == {NAME: 1}


@pytest.mark.parametrize(
    ("link", "of_all"),
    [(PcieLink(5, 8, 5, 16), 0.5), (PcieLink(4, 16, 5, 16), 0.5), (PcieLink(4, 4, 5, 16), 0.125)],
    ids=["fewer lanes", "a lower generation", "both"],
)
def test_a_gpu_behind_a_downgraded_link_starves_as_well(link: PcieLink, of_all: float) -> None:
    assert last(samples(full=lambda _: 0.95 * of_all, link=link)) == {NAME: 1}
    assert last(samples(full=lambda _: 0.5 * of_all, link=link)) == {NAME: 0}


def test_a_link_at_a_lower_generation_is_full_by_that_only_once_it_has_not_woken_for_long() -> None:
    resting = PcieLink(1, 16, 5, 16)
    # every 12 s a burst at what generation 1 would carry: it rests in between
    burst = samples(full=lambda at: 0.06 if at % 12 == 0 else 0.0, link=resting)
    assert last(burst) == {NAME: 0}


def test_sequences_of_a_moment_ago_say_nothing_of_these_seconds() -> None:
    """An engine that shows gauges of earlier steps may have been done long since, or have begun."""
    for running in (8.0, 0.0):
        shown = [
            engine(each.at, rank(each.at, running=running, gauges_hold_seconds=30.0))
            if isinstance(each, EngineSample)
            else each
            for each in samples()
        ]
        assert last(shown) == {}


def test_one_rank_that_works_now_is_enough_beside_one_of_a_moment_ago() -> None:
    def with_another(running: float) -> list[Timed]:
        return [
            replace(each, ranks=(*each.ranks, rank(each.at, running=running, gauges_hold_seconds=30.0)))
            if isinstance(each, EngineSample)
            else each
            for each in samples(running=lambda _: 8.0 - running)
        ]

    assert last(with_another(0.0)) == {NAME: 1}
    assert last(with_another(8.0)) == {}
