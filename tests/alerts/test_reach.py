"""Which scenario is there for which alert: none without the other, or a reason."""

from __future__ import annotations

import pytest

from alerts.catalogue import ALERTS
from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.scenario import Scenario
from tests.evaluation.reach import NOT_OWN, UNREACHED

EVERY = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=list(SCENARIOS))
NOT_DRILLED = {**UNREACHED, **NOT_OWN}


def test_every_alert_is_some_scenarios_own_or_says_why_not() -> None:
    own = {name for scenario in SCENARIOS.values() for name in scenario.alerts}
    assert own <= set(ALERTS)
    assert set(NOT_DRILLED) <= set(ALERTS)
    assert own & set(NOT_DRILLED) == set()
    assert own | set(NOT_DRILLED) == set(ALERTS)
    assert UNREACHED.keys().isdisjoint(NOT_OWN)


@EVERY
def test_what_goes_wrong_has_an_alert_and_what_is_well_has_none(scenario: Scenario) -> None:
    assert bool(scenario.alerts) == (scenario.cause is not None)
    assert len(set(scenario.alerts)) == len(scenario.alerts)


@EVERY
def test_one_of_its_alerts_at_least_names_its_cause(scenario: Scenario) -> None:
    causes = {name: ALERTS[name].cause for name in scenario.alerts}
    assert scenario.cause is None or scenario.cause in causes.values()
