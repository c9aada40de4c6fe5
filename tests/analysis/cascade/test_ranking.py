"""The ranking over runs of the drill: right causes in order, in every view of them, and what it says of each view."""

from __future__ import annotations

import numpy as np
import pytest

from alerts.causes import Cause
from analysis.cascade.ranking import Answer, Ranking, causes
from analysis.frame import Frame
from analysis.history.recorded import recorded
from exporter.derive.blocks import KV_USAGE
from exporter.derive.headroom import DEMAND
from exporter.derive.inventory import ENGINE_GPU_INFO, GPU_UP
from exporter.derive.latency import SLO_EVENTS
from exporter.derive.traffic import GENERATION_RATE, SEQUENCES
from tests.analysis.cascade.histories import START, drilled, made_up
from tests.evaluation.playing import Run

ONSET_SECONDS = 15.0


@pytest.fixture(scope="module")
def incident() -> Run:
    return drilled("incident")


@pytest.fixture(scope="module")
def composed() -> Run:
    return drilled("engine-frozen", "pcie-other-tenant", engines=3)


def ranked(run: Run, step_seconds: float = 1.0) -> Ranking:
    return causes(recorded(run.recording, step_seconds=step_seconds).frame)


@pytest.mark.parametrize("step_seconds", [1.0, 15.0])
def test_the_incident_is_swapping_and_all_else_its_consequence(incident: Run, step_seconds: float) -> None:
    ranking = ranked(incident, step_seconds)
    first, *others = ranking.found
    assert first.cause is Cause.SWAP_THRASH
    assert first.onset == pytest.approx(incident.truth["onset"], abs=ONSET_SECONDS)
    assert first.affected == ("engine-0", "engine-1")
    assert {Cause.ORPHANS, Cause.RETRY_STORM, Cause.OVERLOAD} <= {each.cause for each in others}
    assert all(Cause.SWAP_THRASH in each.explained_by for each in others)


def test_evidence_says_what_held_since_when_and_by_how_much(incident: Run) -> None:
    (verdict,) = (each for each in ranked(incident).found if each.cause is Cause.SWAP_THRASH)
    (swapped,) = (each for each in verdict.supporting if each.name == "swapped_sequences")
    truth = incident.truth["engines"][verdict.shown_by]["swapped"]
    first = min(at for at, count in zip(incident.truth["seconds"], truth, strict=True) if count)
    assert swapped.since == pytest.approx(first, abs=2.0)
    assert swapped.worst == pytest.approx(max(count or 0 for count in truth), abs=1)
    assert swapped.baseline == 0.0
    assert swapped.threshold == 0.0
    assert swapped.words.startswith("Sequences stood swapped out on the host for ")


def test_two_faults_are_both_told_first_each_of_its_engine(composed: Run) -> None:
    ranking = ranked(composed)
    assert {each.cause for each in ranking.found[:2]} == {Cause.ENGINE_FROZEN, Cause.PCIE_OTHER_TENANT}
    for verdict in ranking.found[:2]:
        (truth,) = (each for each in composed.truth["episodes"] if each["cause"] == verdict.cause)
        assert verdict.affected == tuple(truth["affected"])
        assert verdict.onset == pytest.approx(truth["onset"], abs=ONSET_SECONDS)
    assert ranking.engines["engine-0"][0].cause in {Cause.ENGINE_FROZEN, Cause.PCIE_OTHER_TENANT}
    assert Cause.ENGINE_FROZEN not in {each.cause for each in ranking.engines["engine-2"] if each.found}


def test_a_peak_that_is_well_is_nothing_unusual() -> None:
    ranking = ranked(drilled("peak"))
    assert ranking.answer is Answer.NOTHING_UNUSUAL
    assert ranking.found == ()


def test_a_hole_across_the_onset_is_said_and_costs_confidence(incident: Run) -> None:
    frame = recorded(incident.recording).frame
    values = frame.values.copy()
    values[np.abs(frame.times - incident.truth["onset"]) < 60.0] = np.nan
    whole = causes(frame).found[0]
    holed = causes(Frame(frame.times, frame.step_seconds, frame.keys, values)).found[0]
    assert holed.cause is whole.cause is Cause.SWAP_THRASH
    assert holed.confidence < whole.confidence
    assert any("it may have begun in there" in caveat for caveat in holed.caveats)


def test_without_gateways_and_gpus_it_says_what_can_not_be_a_cause(incident: Run) -> None:
    frame = recorded(incident.recording).frame
    alone = frame.take([place for place, key in enumerate(frame.keys) if key.label("engine")])
    ranking = causes(alone)
    assert ranking.found[0].cause is Cause.SWAP_THRASH
    assert len(ranking.caveats) == 2
    (overload,) = (each for each in ranking.found if each.cause is Cause.OVERLOAD)
    assert "retry-storm is behind it nobody watched" in overload.caveats[-1]


def test_with_gpus_alone_a_full_link_is_still_found(composed: Run) -> None:
    frame = recorded(composed.recording).frame
    alone = frame.take(
        [place for place, key in enumerate(frame.keys) if key.label("uuid") and not key.label("engine")]
    )
    ranking = causes(alone)
    assert [each.cause for each in ranking.found] == [Cause.PCIE_OTHER_TENANT]
    assert ranking.found[0].confidence < 1.0
    assert ranking.caveats[0].startswith("No engine was watched")


def test_a_baseline_of_another_day_takes_the_place_of_what_came_before(incident: Run) -> None:
    frame = recorded(incident.recording).frame
    calm = frame.between(frame.start + 60.0, frame.start + 140.0)
    begun = frame.between(incident.truth["onset"] + 60.0, frame.end)
    usage = [
        next(each for each in causes(begun, baseline).found[0].evidence if each.signal is KV_USAGE).baseline
        for baseline in (None, calm)
    ]
    assert usage[0] is None or usage[0] > 0.5
    assert usage[1] is not None
    assert usage[1] < 0.2


def test_the_same_history_gives_the_same_ranking(incident: Run) -> None:
    assert ranked(incident) == ranked(incident)


def test_an_engine_whose_gpus_nobody_tells_stands_beside_one_whose_gpus_are_lost() -> None:
    gone = np.where(np.arange(600) < 300, 1.0, 0.0)
    frame = made_up(
        {
            (GPU_UP, (("uuid", "GPU-1"),)): gone,
            (ENGINE_GPU_INFO, (("uuid", "GPU-1"),)): np.ones(600),
            (KV_USAGE, (("engine", "worker-2"),)): np.full(600, 0.3),
        }
    )
    ranking = causes(frame)
    assert [each.cause for each in ranking.found] == [Cause.GPU_LOST]
    assert ranking.found[0].affected == ("worker-1",)
    assert ranking.found[0].onset == START + 300.0
    assert not any(each.found for each in ranking.engines["worker-2"])


def test_what_is_necessary_has_to_hold_together() -> None:
    """A queue in a morning and a full pool in the evening are no overload."""
    clock = np.arange(7200)
    morning, evening = clock < 600, clock > 6000
    frame = made_up(
        {
            (SEQUENCES, (("state", "running"),)): np.where(morning, 50.0, 10.0),
            (SEQUENCES, (("state", "waiting"),)): np.where(morning, 30.0, 0.0),
            (KV_USAGE, ()): np.full(7200, 0.5),
            (DEMAND, ()): np.where(evening, 1.5, 0.5),
        }
    )
    assert causes(frame).answer is Answer.NOTHING_UNUSUAL


@pytest.mark.parametrize(("first_tokens", "deadlocked"), [(0.0, True), (0.2, False)])
def test_an_engine_that_lets_nobody_in_is_deadlocked_though_long_answers_run_on(
    first_tokens: float, *, deadlocked: bool
) -> None:
    clock = np.arange(900)
    shut = clock >= 400
    frame = made_up(
        {
            (SEQUENCES, (("state", "running"),)): np.where(shut, 6.0, 20.0),
            (SEQUENCES, (("state", "waiting"),)): np.where(shut, (clock - 399) / 10, 0.0),
            (KV_USAGE, ()): np.full(900, 0.5),
            (GENERATION_RATE, ()): np.full(900, 200.0),
            (SLO_EVENTS, (("slo", "ttft"), ("good", "true"))): np.cumsum(np.where(shut, first_tokens, 1.0)),
        }
    )
    found = {each.cause: each for each in causes(frame).found}
    assert (Cause.ENGINE_DEADLOCKED in found) is deadlocked
    if deadlocked:
        assert found[Cause.ENGINE_DEADLOCKED].onset == pytest.approx(START + 400.0, abs=1.0)


def test_nothing_at_all_is_not_enough_data() -> None:
    empty = Frame(np.array([START]), 1.0, (), np.empty((1, 0)))
    assert causes(empty).answer is Answer.NOT_ENOUGH_DATA
    unknown = made_up({(KV_USAGE, ()): np.full(600, np.nan)})
    assert causes(unknown).answer is Answer.NOT_ENOUGH_DATA
