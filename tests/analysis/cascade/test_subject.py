"""Subjects of a frame: whose series are whose, and what counters rose by."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from alerts.conditions import Reading
from analysis.cascade.stretches import MERGED_SECONDS, stretches
from analysis.cascade.subject import Fleet, Subject
from analysis.frame import Frame, Key
from exporter.derive.blocks import KV_USAGE
from exporter.derive.inventory import ENGINE_GPU_INFO, GPU_UP
from exporter.derive.preemption import PREEMPTIONS
from tests.analysis.cascade.histories import START, made_up

KEYS = (
    Key.of(KV_USAGE.full_name, {"engine": "a", "rank": "0"}),
    Key.of(KV_USAGE.full_name, {"engine": "a", "rank": "1"}),
    Key.of(KV_USAGE.full_name, {"engine": "b", "rank": "0"}),
    Key.of(GPU_UP.full_name, {"uuid": "GPU-1"}),
    Key.of(GPU_UP.full_name, {"uuid": "GPU-2"}),
    Key.of(ENGINE_GPU_INFO.full_name, {"engine": "a", "uuid": "GPU-1"}),
    Key.of(ENGINE_GPU_INFO.full_name, {"engine": "b", "uuid": "GPU-2"}),
)
ROWS = np.array([[0.1, 0.2, 0.9, 1.0, 0.0, 1.0, 1.0], [np.nan, 0.3, 0.8, 1.0, 0.0, 1.0, 1.0]])
FLEET = Fleet(Frame(START + np.arange(2.0), 1.0, KEYS, ROWS))


def test_a_rank_an_engine_and_a_fleet_have_their_own_series() -> None:
    usage = Reading(KV_USAGE)
    assert [rank.rank for rank in FLEET.ranks("a")] == ["0", "1"]
    assert FLEET.ranks("a")[1].of(usage).tolist() == [0.2, 0.3]  # type: ignore[union-attr]
    assert Subject(FLEET, "a").of(usage).tolist() == [0.2, 0.3]  # type: ignore[union-attr]
    assert Subject(FLEET).of(usage).tolist() == [0.9, 0.8]  # type: ignore[union-attr]
    assert Subject(FLEET, "a").total(KV_USAGE) == pytest.approx([0.3, 0.3])


def test_two_sidecars_that_read_one_engine_do_not_make_two_of_it() -> None:
    labels = {"engine": "a", "rank": "0"}
    keys = tuple(Key.of(KV_USAGE.full_name, {**labels, "instance": each}) for each in ("one", "other"))
    rows = np.array([[0.5, np.nan], [0.6, 0.6]])
    twice = Subject(Fleet(Frame(START + np.arange(2.0), 1.0, keys, rows)), "a")
    assert twice.total(KV_USAGE).tolist() == [0.5, 0.6]  # type: ignore[union-attr]


def test_gpus_are_those_of_the_engine_and_each_is_a_subject() -> None:
    assert Subject(FLEET, "b").of(Reading(GPU_UP)).tolist() == [0.0, 0.0]  # type: ignore[union-attr]
    assert [(each.engine, each.uuid) for each in FLEET.each_gpu()] == [("a", "GPU-1"), ("b", "GPU-2")]
    assert FLEET.each_gpu()[0].of(Reading(GPU_UP)).tolist() == [1.0, 1.0]  # type: ignore[union-attr]


@given(
    steps=st.lists(st.integers(0, 50), min_size=5, max_size=60),
    born=st.integers(0, 4),
    restart=st.integers(0, 60),
    gap=st.integers(0, 60),
    seconds=st.integers(1, 80),
)
def test_a_counter_rises_through_restarts_and_gaps_and_never_falls(
    steps: list[int], born: int, restart: int, gap: int, seconds: int
) -> None:
    values = np.cumsum(steps).astype(float)
    values[restart:] -= values[restart - 1] if 0 < restart < len(values) else 0.0
    values[:born] = np.nan
    values[gap : gap + 3] = np.nan
    rose = Subject(Fleet(made_up({(PREEMPTIONS, ()): values}))).risen(PREEMPTIONS, (), float(seconds))
    assert rose is not None
    assert (rose >= 0).all()
    assert rose.max() <= sum(steps)


def test_a_counter_that_comes_up_amid_the_history_counts_from_zero() -> None:
    values = np.array([np.nan, np.nan, 4.0, 4.0, 5.0])
    rose = Subject(Fleet(made_up({(PREEMPTIONS, ()): values}))).risen(PREEMPTIONS, (), 2.0)
    assert rose is not None
    assert rose.tolist() == [0.0, 0.0, 4.0, 4.0, 1.0]


@given(arrays.arrays(bool, 60), arrays.arrays(bool, 60), st.sampled_from([1.0, 15.0]))
def test_stretches_hold_all_that_held_in_order_and_apart(
    held: np.ndarray, known: np.ndarray, step: float
) -> None:  # type: ignore[type-arg]
    times = START + np.arange(60) * step
    found = stretches(times, held, known | held, step, step)
    assert sum(each.held_seconds for each in found) == held.sum() * step
    for one, other in pairwise(found):
        between = (times >= one.until) & (times < other.since) & known & ~held
        assert between.sum() * step > MERGED_SECONDS
