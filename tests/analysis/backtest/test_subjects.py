"""A frame as rules read it: what holds for how long, and whose it is."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as some

from alerts.catalogue import ALERTS
from alerts.conditions import Either, Reading
from alerts.thresholds import THRESHOLDS
from analysis.backtest.subjects import Subjects, hold
from analysis.frame import Frame, Key
from exporter.derive.blocks import KV_USAGE
from exporter.derive.inventory import ENGINE_GPU_INFO
from exporter.derive.pcie import PCIE_SATURATION

NAN = float("nan")
TIMES = np.arange(6) * 15.0


def frame(**columns: list[float]) -> Frame:
    keys = tuple(KEYS[name] for name in columns)
    return Frame(TIMES, 15.0, keys, np.array(list(columns.values())).T)


def _rank(rank: str) -> Key:
    return Key.of(KV_USAGE.full_name, {"engine": "a", "rank": rank, "model_name": "m", "instance": "x"})


KEYS = {
    "rank_0": _rank("0"),
    "rank_1": _rank("1"),
    "owned": Key.of(ENGINE_GPU_INFO.full_name, {"engine": "a", "uuid": "g"}),
    "bus": Key.of(PCIE_SATURATION.full_name, {"uuid": "g", "direction": "rx"}),
    "other_bus": Key.of(PCIE_SATURATION.full_name, {"uuid": "h", "direction": "rx"}),
}


@given(
    values=some.lists(some.sampled_from([NAN, NAN, 0.0, 1.0, 2.0]), min_size=1, max_size=40),
    steps=some.integers(1, 8),
)
def test_a_value_holds_for_so_many_instants_and_no_longer(values: list[float], steps: int) -> None:
    held = hold(np.array(values), steps)
    for place in range(len(values)):
        newest = [value for value in values[max(0, place - steps + 1) : place + 1] if not np.isnan(value)]
        assert np.array_equal(held[place], newest[-1] if newest else NAN, equal_nan=True)


def test_each_rank_is_a_subject_and_has_the_largest_of_its_own() -> None:
    known = Subjects(
        frame(rank_0=[0.1, NAN, NAN, NAN, NAN, NAN], rank_1=[0.9] * 6),
        cluster_labels=("cluster",),
        lookback_seconds=60.0,
    )
    first, second = known.of(ALERTS["KvCachePressure"].condition)
    assert (first.labels["rank"], second.labels["rank"]) == ("0", "1")
    read = first.of(Reading(KV_USAGE))
    assert read is not None
    assert np.array_equal(read, [0.1, 0.1, 0.1, 0.1, NAN, NAN], equal_nan=True)


def test_a_gpu_speaks_of_the_engine_that_runs_on_it_while_it_does() -> None:
    known = Subjects(
        frame(owned=[1, NAN, NAN, NAN, NAN, NAN], bus=[0.9] * 6, other_bus=[0.95] * 6),
        cluster_labels=(),
        lookback_seconds=30.0,
    )
    alert = ALERTS["PcieSaturatedByOthers"]
    (subject,) = known.of(alert.condition)
    assert subject.labels == {"engine": "a"}
    assert list(alert.condition.holds(subject, THRESHOLDS)) == [True, True, False, False, False, False]


def test_what_is_missing_is_told_where_it_is_needed() -> None:
    known = Subjects(frame(rank_0=[1.0] * 6), cluster_labels=(), lookback_seconds=60.0)
    assert known.missing(ALERTS["KvCachePressure"].condition) == (
        "thrashold_sequences",
        "thrashold_preemptions_per_second",
    )
    full = ALERTS["KvCachePressure"].condition.parts[0]  # type: ignore[attr-defined]
    assert known.missing(Either(full, ALERTS["KvThrashing"].condition)) == ()
    assert known.missing(ALERTS["PcieSaturatedByOthers"].condition) == (PCIE_SATURATION.full_name,)
