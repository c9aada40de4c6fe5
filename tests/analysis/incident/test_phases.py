from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from analysis.frame import Frame
from analysis.history.recorded import recorded
from analysis.incident.actions import actions
from analysis.incident.phase import Incident, PhaseName
from analysis.incident.phases import NO_USUAL, incidents
from analysis.incident.subject import fleet
from tests.evaluation.playing import Case, Run, play
from tests.support.histories import torn, twice


@pytest.fixture(scope="module")
def run() -> Run:
    return play(Case("incident"))


@pytest.fixture(scope="module")
def whole(run: Run) -> Frame:
    return recorded(run.recording).frame


def _one(frame: Frame) -> Incident:
    found = incidents(frame).fleet
    assert len(found) == 1
    return found[0]


def test_the_drill_begins_within_fifteen_seconds_of_the_truth_and_says_how_sure_that_is(
    run: Run, whole: Frame
) -> None:
    begin = _one(whole).begin
    assert abs(begin.at - run.truth["onset"]) <= 15
    assert begin.earliest <= begin.at <= begin.latest
    assert begin.uncertainty_seconds <= 60
    assert begin.said_by


def test_phases_follow_each_other_without_a_gap_and_mitigation_begins_with_the_first_restart(
    run: Run, whole: Frame
) -> None:
    done = actions(fleet(whole))
    incident = incidents(whole, actions=[each.at for each in done]).fleet[0]
    order = list(PhaseName)
    assert [each.name for each in incident.phases] == [
        name for name in order if incident.phase(name) is not None
    ]
    for before, after in pairwise(incident.phases):
        assert before.end is not None
        assert before.end.at == after.begin.at
    mitigation = incident.phase(PhaseName.MITIGATION)
    restarted = next(each["at"] for each in run.truth["actions"] if "restart" in each["what"])
    assert mitigation is not None
    # an engine that drains and starts again is back after a minute at most
    assert restarted <= mitigation.begin.at <= restarted + 60
    assert incident.begin.at < incident.worst_at < mitigation.begin.at + 60
    assert not incident.goes_on


def test_each_engine_that_was_affected_has_its_own(run: Run, whole: Frame) -> None:
    found = incidents(whole).engines
    assert set(found) == set(run.truth["affected"])
    for each in found.values():
        assert abs(each[0].begin.at - run.truth["onset"]) <= 30


def test_one_that_goes_on_says_so_and_has_no_end(run: Run, whole: Frame) -> None:
    incident = _one(whole.between(whole.start, run.truth["onset"] + 200))
    assert incident.goes_on
    assert incident.end is None
    assert incident.phases[-1].end is None
    assert any("goes on" in each for each in incident.notes)


def test_a_range_that_begins_amid_it_has_no_baseline_and_says_so(run: Run, whole: Frame) -> None:
    incident = _one(whole.between(run.truth["onset"] + 60, whole.end))
    assert incident.begins_inside
    assert incident.phase(PhaseName.BASELINE) is None
    assert NO_USUAL in incident.notes


def test_a_hole_across_the_onset_makes_it_as_unsure_as_the_hole_is_long(run: Run, whole: Frame) -> None:
    onset = run.truth["onset"]
    found = incidents(torn(whole, onset - 20, onset + 40))
    begin = found.fleet[0].begin
    assert begin.earliest <= onset <= begin.latest
    assert begin.uncertainty_seconds >= 60
    assert any("hole" in each for each in found.fleet[0].notes)
    assert any("hole" in each for each in found.notes)


def test_two_incidents_are_two_and_each_has_what_was_usual_before_it(whole: Frame) -> None:
    found = incidents(twice(whole)).fleet
    assert len(found) == 2
    first, second = found
    assert second.begin.at - first.begin.at == pytest.approx(len(whole), abs=30)
    assert not second.begins_inside


def test_a_peak_that_is_carried_is_no_incident() -> None:
    found = incidents(recorded(play(Case("peak")).recording).frame)
    assert found.fleet == ()
    assert found.engines == {}


def test_a_history_of_nothing_has_none(whole: Frame) -> None:
    nothing = Frame(whole.times, 1.0, whole.keys, np.full_like(whole.values, np.nan))
    assert incidents(nothing).fleet == ()
    assert incidents(Frame(np.zeros(0), 1.0, (), np.zeros((0, 0)))).fleet == ()
