from __future__ import annotations

import math

import numpy as np
import pytest

from analysis.frame import Frame, Key
from analysis.history.recorded import recorded
from analysis.incident.buckets import Bucket, bounds, bucket
from analysis.incident.key_metrics import Row, key_metrics
from analysis.incident.phases import incidents
from analysis.incident.subject import fleet
from exporter.derive.blocks import KV_USAGE
from exporter.derive.latency import SATURATED, TPOT_P50, TPOT_P99, TTFT_P99
from exporter.derive.preemption import THRASHING
from exporter.derive.ranks import ENGINE_INFO
from exporter.signal import Signal
from tests.evaluation.key_metrics import compared
from tests.evaluation.playing import Case, Run, play
from tests.support.captures import recording
from tests.support.histories import frame, labelled

RANK = {"engine": "a", "rank": "0", "model_name": "m"}


@pytest.fixture(scope="module")
def run() -> Run:
    return play(Case("incident"))


@pytest.fixture(scope="module")
def rows(run: Run) -> dict[str, Row]:
    whole = recorded(run.recording).frame
    return {row.title: row for row in key_metrics(fleet(whole), incidents(whole).fleet[0])}


def test_counters_and_gauges_are_within_five_percent_of_the_truth(run: Run) -> None:
    found = list(compared(run))
    assert {each.title for each in found} >= {
        "sessions in flight",
        "swapped sequences",
        "client requests hit",
    }
    assert [each for each in found if each.error > 0.05] == []


def test_a_percentile_stands_with_its_bucket_and_the_factor_is_what_buckets_allow(
    rows: dict[str, Row],
) -> None:
    row = rows["TPOT p99"]
    for cell in (row.baseline, row.peak, row.after):
        assert cell.value is not None
        assert cell.bucket is not None
        assert cell.bucket.low <= cell.value <= cell.bucket.high
        assert cell.bucket.words in row.words(cell)
    least, most = row.factor or (0.0, 0.0)
    assert row.peak.value is not None
    assert row.baseline.value is not None
    assert least <= row.peak.value / row.baseline.value <= most


def _stuck(value: float, saturated: float, unusual: bool = True) -> Frame:  # noqa: FBT001, FBT002
    """Ten minutes, from the fifth on thrashing, with one p99 throughout it."""
    bad = np.arange(600.0) >= 300
    return frame(
        {
            labelled(THRASHING, **RANK): np.where(bad & (np.arange(600) < 480), 1.0, 0.0),
            labelled(KV_USAGE, **RANK): 0.5,
            labelled(TPOT_P99, **RANK): np.where(bad & unusual, value, 0.18),
            labelled(SATURATED, of="tpot_p99", **RANK): np.where(bad & unusual, saturated, 0.0),
            labelled(ENGINE_INFO, engine="a", engine_kind="vllm", generation="v1"): 1.0,
        }
    )


def test_above_the_top_bucket_there_is_a_floor_and_no_figure() -> None:
    history = _stuck(80.0, 1.0)
    row = next(
        each for each in key_metrics(fleet(history), incidents(history).fleet[0]) if each.title == "TPOT p99"
    )
    assert row.peak.is_floor
    assert row.words(row.peak) == "> 80 s"
    assert row.words(row.baseline) == "180 ms (150 to 200 ms)"
    assert row.factor == (80.0 / 0.2, math.inf)
    assert row.factor_words == "> 400x"


def test_the_postmortems_own_figure_is_known_to_its_bucket_alone() -> None:
    history = _stuck(18.42, 0.0)
    row = next(
        each for each in key_metrics(fleet(history), incidents(history).fleet[0]) if each.title == "TPOT p99"
    )
    assert row.words(row.peak) == "18.4 s (10 to 20 s)"
    assert row.factor_words == "50x to 133x"


def test_a_bound_that_a_recording_rounded_up_is_still_in_its_bucket() -> None:
    known = ((0.1, 0.2, 0.3), False)
    assert bucket(float(np.float32(0.2)), known, saturated=False) == Bucket(0.1, 0.2, told=False)
    assert bucket(0.05, known, saturated=False) == Bucket(0.0, 0.1, told=False)
    assert bucket(0.05, None, saturated=False) is None


@pytest.mark.parametrize(
    ("signal", "family"), [(TPOT_P50, "time_per_output_token"), (TTFT_P99, "time_to_first_token")]
)
def test_shipped_bounds_are_those_of_a_real_page(signal: Signal, family: str) -> None:
    _, page = next(recording("vllm-0.8.5-v0-swap").scrapes())
    told = {
        float(line.split('le="')[1].split('"')[0])
        for line in page.decode().splitlines()
        if line.startswith(f"vllm:{family}_seconds_bucket")
    }
    known = bounds(fleet(_stuck(1.0, 0.0)), signal)
    assert known is not None
    assert set(known[0]) == {each for each in told if math.isfinite(each)}
    assert not known[1]


def test_bounds_in_the_history_go_before_those_that_are_shipped() -> None:
    own = {
        Key.of("vllm:inter_token_latency_seconds_bucket", {"le": text}): 0.0
        for text in ("0.05", "1.5", "+Inf")
    }
    whole = frame({labelled(ENGINE_INFO, engine="a", engine_kind="vllm", generation="v1"): 1.0, **own})
    assert bounds(fleet(whole), TPOT_P99) == ((0.05, 1.5), True)
