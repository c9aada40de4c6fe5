"""Flags of recordings of real engines and of runs of the drill."""

from __future__ import annotations

import pytest

from analysis.anomaly import Flag
from exporter.derive.blocks import KV_USAGE
from exporter.derive.latency import TPOT_P99
from exporter.derive.preemption import PREEMPTIONS
from exporter.derive.swap import SWAPPED
from exporter.derive.traffic import SEQUENCES
from exporter.signal import Signal
from tests.evaluation.detection import CAPTURES, Flagged, captured, drilled, overload


def of(run: Flagged, signal: Signal, **labels: str) -> list[Flag]:
    return [
        flag
        for flag in run.findings.flags
        if flag.key.name == signal.full_name
        and all(flag.key.label(name) == text for name, text in labels.items())
    ]


@pytest.mark.parametrize("name", CAPTURES)
def test_a_real_storm_of_preemptions_is_found_and_idling_and_recovering_are_not(name: str) -> None:
    """One recomputes, the other, V0, swaps each sequence that it preempts; both begin idle, and work before."""
    run, (begun, ended) = captured(name), overload(name)
    (storm,) = of(run, PREEMPTIONS)
    assert begun <= storm.start <= ended
    assert (storm.high, storm.value > 1.0) == (0.0, True)
    (queue,) = of(run, SEQUENCES, state="waiting")
    assert begun - 1 <= queue.start <= begun + 5
    assert queue.end is not None
    assert all(begun - 1 <= flag.start <= ended for flag in run.findings.flags)
    assert run.returns == ()


def test_the_incident_of_the_drill_is_found_at_its_onset_and_its_end_is_none() -> None:
    run = drilled("incident", 1)
    assert run.onset is not None
    assert run.end is not None
    onset, end = run.began + run.onset, run.began + run.end
    assert min(flag.start for flag in run.findings.flags) >= onset
    for engine in ("engine-0", "engine-1"):
        (usage,) = of(run, KV_USAGE, engine=engine)
        assert onset <= usage.start <= onset + 60
        assert usage.value > 0.99
        assert [onset < flag.start < end for flag in of(run, SWAPPED, engine=engine)] == [True]
        assert [onset < flag.start < end for flag in of(run, TPOT_P99, engine=engine)] == [True]
    assert run.returns == ()


@pytest.mark.parametrize("seed", [201, 202])
def test_on_a_benign_day_no_series_is_flagged_twice(seed: int) -> None:
    run = drilled("benign-day", seed)
    assert run.most_of_a_series <= 1
    assert len(run.findings.series) > 100
