"""Conditions: what they refuse, how they read as PromQL, and that both faces say the same of the same data."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from alerts.conditions import All, Compare, Condition, Either, OnGpus, Reading, Rendering, Unless, readings
from alerts.thresholds import THRESHOLDS
from exporter.derive.attribution import SWAP_SHARE
from exporter.derive.blocks import KV_USAGE
from exporter.derive.inventory import ENGINE_GPU_INFO
from exporter.derive.pcie import PCIE_SATURATION
from exporter.derive.preemption import PREEMPTION_RATE, PREEMPTIONS, TOKENS_PER_PREEMPTION
from exporter.derive.traffic import SEQUENCES
from exporter.signal import Scope
from exporter.source_signals import SOURCE_UP
from tests.support.prometheus import Prometheus, openmetrics, serving

FULL = Compare(Reading(KV_USAGE), ">=", "kv_usage_full_ratio")
WAITING = Compare(Reading(SEQUENCES, (("state", "waiting"),)), ">", "waiting_sequences")
PREEMPTING = Compare(Reading(PREEMPTION_RATE), ">", "preemptions_per_second")
SWAPPING = Compare(Reading(SWAP_SHARE), ">", "pcie_swap_share_ratio")
SATURATED = OnGpus(Compare(Reading(PCIE_SATURATION), ">", "pcie_saturation_ratio"))
FEW_TOKENS = Compare(Reading(TOKENS_PER_PREEMPTION), "<", 50.0)


def test_a_leaf_reads_one_series_a_subject_through_failed_scrapes() -> None:
    assert FULL.promql(Rendering()) == (
        "max by (cluster, engine, rank, model_name) (last_over_time(thrashold_kv_usage_ratio[1m]) >= 0.9)"
    )
    rendering = Rendering(cluster_labels=("region", "cluster"), selector='job="thrashold"', lookback="2m")
    assert WAITING.promql(rendering) == (
        "max by (region, cluster, engine, rank, model_name) "
        '(last_over_time(thrashold_sequences{job="thrashold",state="waiting"}[2m]) > 5)'
    )


@pytest.mark.parametrize(
    ("limit", "written"),
    [(0.1234567, "0.1234567"), (1234567.0, "1234567"), (5.0, "5"), (0.9, "0.9"), (1e-7, "1e-07")],
)
def test_a_threshold_is_written_to_its_last_digit(limit: float, written: str) -> None:
    assert Compare(Reading(KV_USAGE), ">", limit).promql(Rendering()).endswith(f" > {written})")


def test_what_is_joined_is_matched_by_shared_labels_and_the_cluster() -> None:
    text = All(FULL, SWAPPING).promql(Rendering())
    assert "\nand on (cluster, engine)\n" in text
    assert "\nunless on (cluster, engine, rank, model_name)\n" in Unless(FULL, WAITING).promql(Rendering())
    assert "\nand on (cluster, engine)\n" in All(SWAPPING, SATURATED).promql(Rendering())


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: Reading(PREEMPTIONS), "thrashold_preemptions_total is a counter"),
        (lambda: Reading(KV_USAGE, (("state", "waiting"),)), "thrashold_kv_usage_ratio has no label state"),
        (lambda: Reading(PREEMPTION_RATE, peak=True), "has no _peak twin"),
        (lambda: Compare(Reading(KV_USAGE), "~", 1.0), "no operator '~'"),
        (lambda: Compare(Reading(KV_USAGE), ">", "kv_usage"), "no threshold 'kv_usage'"),
        (lambda: Compare(Reading(SEQUENCES), "<", 5.0), "say which state"),
        (
            lambda: All(FULL, Compare(Reading(SOURCE_UP), "==", 0.0)),
            "RANK and SOURCE have no label in common",
        ),
        (lambda: Either(FULL, SWAPPING), "of one scope"),
        (lambda: OnGpus(FULL), "thrashold_kv_usage_ratio speaks of no GPU"),
    ],
)
def test_what_makes_no_sense_is_refused(made: object, words: str) -> None:
    assert callable(made)
    with pytest.raises(ValueError, match=words):
        made()


@dataclass(frozen=True)
class Known:
    """Values of one subject by reading."""

    values: Mapping[Reading, object]

    def of(self, reading: Reading) -> object | None:
        """See Values."""
        return self.values.get(reading)


def test_operators_alone_serve_floats_and_arrays_and_what_isnt_there() -> None:
    tree = Unless(All(FULL, WAITING), PREEMPTING)
    usage, waiting, preempting = readings(tree)
    now = Known({usage: 0.95, waiting: 9.0, preempting: 0.0})
    assert tree.holds(now, THRESHOLDS) is True
    assert tree.holds(Known({usage: 0.95, waiting: 9.0}), THRESHOLDS) is True
    assert tree.holds(Known({usage: 0.95}), THRESHOLDS) is False
    rows = Known(
        {
            usage: np.array([0.95, 0.95, math.nan, 0.5]),
            waiting: np.array([9.0, 9.0, 9.0, 9.0]),
            preempting: np.array([0.0, 1.0, 0.0, math.nan]),
        }
    )
    assert tree.holds(rows, THRESHOLDS).tolist() == [True, False, False, False]


STEP, SECONDS, LOOKBACK = 15, 1800, 60
START = 1_790_000_000
CLUSTERS, ENGINES, RANKS = ("east", "west"), ("a", "b"), ("0", "1")
CASES: Mapping[str, Condition] = {
    "leaf": FULL,
    "all": All(FULL, WAITING, PREEMPTING),
    "either": Either(FULL, All(WAITING, PREEMPTING)),
    "unless": Unless(All(FULL, WAITING), PREEMPTING),
    "below": All(FULL, FEW_TOKENS),
    "rank with engine": All(FULL, SWAPPING),
    "engine with rank": All(SWAPPING, FULL),
    "engine with its gpus": All(SWAPPING, SATURATED),
    "rank with its gpus": Unless(FULL, SATURATED),
}
Row = dict[int, float]
Data = dict[tuple[str, tuple[tuple[str, str], ...]], Row]


def walked(chance: random.Random, low: float, high: float) -> Row:
    """A random walk, with failed scrapes and longer gaps; what can't move is always there."""
    if low == high:
        return dict.fromkeys(range(START, START + SECONDS, STEP), low)
    value, row, gone = chance.uniform(low, high), {}, 0
    for at in range(START, START + SECONDS, STEP):
        value = min(high, max(low, value + chance.gauss(0, (high - low) / 5)))
        gone = gone - 1 if gone else (chance.choice((1, 2, 9)) if chance.random() < 0.03 else 0)
        if not gone:
            row[at] = round(value, 3)
    return row


def drawn(cluster: str, engine: str) -> Iterator[tuple[str, dict[str, str], float, float]]:
    """Of one engine: signal, labels, and between what it walks."""
    at = {"cluster": cluster, "engine": engine, "instance": f"{cluster}-{engine}:9807"}
    here = {name: at[name] for name in ("cluster", "instance")}
    gpus = [{"uuid": f"GPU-{engine}-{gpu}"} for gpu in range(2)]
    for direction in ("in", "out"):
        way = {"direction": direction}
        yield SWAP_SHARE.full_name, at | way, 0, 1
        yield from ((PCIE_SATURATION.full_name, here | gpu | way, 0, 1) for gpu in gpus)
    yield from ((ENGINE_GPU_INFO.full_name, at | gpu, 1, 1) for gpu in gpus)
    for rank in RANKS:
        of = at | {"rank": rank, "model_name": "m"}
        yield KV_USAGE.full_name, of, 0.7, 1.0
        yield PREEMPTION_RATE.full_name, of, 0, 0.3
        yield TOKENS_PER_PREEMPTION.full_name, of, 10, 200
        yield from ((SEQUENCES.full_name, of | {"state": state}, 0, 12) for state in ("running", "waiting"))


def made_up() -> Data:
    """All that the cases read, of two clusters x two engines x two ranks."""
    chance = random.Random(5)  # noqa: S311 -- repeatable
    return {
        (name, tuple(sorted(labels.items()))): walked(chance, low, high)
        for cluster in CLUSTERS
        for engine in ENGINES
        for name, labels, low, high in drawn(cluster, engine)
    }


@pytest.fixture(scope="module")
def data() -> Data:
    return made_up()


@pytest.fixture(scope="module")
def prometheus(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    dump = folder / "data.om"
    dump.write_text(openmetrics(data))
    with serving(dump, folder) as server:
        yield server


@pytest.mark.parametrize("name", CASES)
def test_prometheus_and_operators_agree_at_every_instant(
    name: str, data: Data, prometheus: Prometheus
) -> None:
    condition = CASES[name]
    instants = range(START, START + SECONDS, STEP)
    told = prometheus.query_range(condition.promql(Rendering()), START, START + SECONDS - STEP, STEP)
    said = {
        tuple(dict(labels).get(label, "") for label in Rendering().labels(condition.scope)): {
            int(at) for at in row
        }
        for labels, row in told.items()
    }
    assert len(said) == len(told)
    fired = 0
    for subject in subjects(condition.scope):
        labels = dict(zip(Rendering().labels(condition.scope), subject, strict=True))
        truth = expected(condition, labels, data, list(instants))
        assert said.get(subject, set()) == {at for at, holds in zip(instants, truth, strict=True) if holds}
        fired += sum(truth)
    assert 0 < fired < len(instants) * len(subjects(condition.scope))


def subjects(scope: Scope) -> list[tuple[str, ...]]:
    engines = [(cluster, engine) for cluster in CLUSTERS for engine in ENGINES]
    return (
        [(*each, rank, "m") for each in engines for rank in RANKS] if scope is Scope.RANK else list(engines)
    )


def expected(
    condition: Condition,
    labels: dict[str, str],
    data: Data,
    instants: list[int],
) -> list[bool]:
    """What the other face says, of arrays: what speaks of something narrower is asked of each of it."""
    if isinstance(condition, All | Unless) and condition.scope is Scope.ENGINE:
        narrower = [part for part in condition.parts if part.scope is Scope.RANK]
        if narrower:
            first = expected(condition.parts[0], labels, data, instants)
            ranks = [expected(narrower[0], labels | {"rank": rank}, data, instants) for rank in RANKS]
            return [one and any(row[place] for row in ranks) for place, one in enumerate(first)]
    values = {reading: series(reading, labels, data, instants) for reading in readings(condition)}
    truth = condition.holds(Known(values), THRESHOLDS)
    return [bool(each) for each in truth]


def series(
    reading: Reading,
    labels: dict[str, str],
    data: Data,
    instants: list[int],
) -> np.ndarray:
    """The largest of the series that are the subject's, as they stand through a lookback."""
    wanted = {
        name: value for name, value in labels.items() if name in ("cluster", *reading.signal.scope.labels)
    }
    wanted |= dict(reading.where)
    rows = [
        row
        for (name, found), row in data.items()
        if name == reading.signal.full_name
        and wanted.items() <= dict(found).items()
        and (reading.signal.scope is not Scope.GPU or dict(found)["uuid"].split("-")[1] == labels["engine"])
    ]
    held = np.full(len(instants), math.nan)
    for place, at in enumerate(instants):
        newest = [
            next((row[then] for then in range(at, at - LOOKBACK - 1, -STEP) if then in row), math.nan)
            for row in rows
        ]
        known = [value for value in newest if not math.isnan(value)]
        held[place] = max(known) if known else math.nan
    return held
