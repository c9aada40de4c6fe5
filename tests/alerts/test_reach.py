"""Which scenario is there for which alert: none without the other, or a reason."""

from __future__ import annotations

import pytest

from alerts.catalogue import ALERTS
from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.scenario import Scenario

EVERY = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=list(SCENARIOS))
_SLOW = "its windows are longer than any trouble that is drilled: {}"
NOT_DRILLED = {
    "SloFirstTokenBurnQuick": _SLOW.format("6 h and 15 min of waiting"),
    "SloFirstTokenBurnSlow": _SLOW.format("a day, and an hour of waiting"),
    "SloFirstTokenBurnCreeping": _SLOW.format("3 days, and 3 hours of waiting"),
    "SloTokenPaceBurnQuick": _SLOW.format("6 h and 15 min of waiting"),
    "SloTokenPaceBurnSlow": _SLOW.format("a day, and an hour of waiting"),
    "SloTokenPaceBurnCreeping": _SLOW.format("3 days, and 3 hours of waiting"),
    "FleetProgressFalling": "it compares with ten minutes before: at the small size all is over by then",
    "TokensCrawl": "the drill's incident has gaps of most of a minute, and no pace of seconds that stays",
    "PcieSaturatedBySwap": "copies of the drill fill a link for as long as one takes, and none takes a minute",
    "SidecarDown": "the drill's sidecar is always there: it is what writes the run",
    "FleetUnseen": "the same: the drill's sidecar is always there",
    "ManyEnginesStuck": "for nobody: it explains others in every scenario that thrashes or stands still",
    "ManyEnginesGone": "for nobody: it explains others where engines are down",
    "Watchdog": "it always fires",
}
"""By alert, why no scenario has it for its own."""


def test_every_alert_is_some_scenarios_own_or_says_why_not() -> None:
    own = {name for scenario in SCENARIOS.values() for name in scenario.alerts}
    assert own <= set(ALERTS)
    assert set(NOT_DRILLED) <= set(ALERTS)
    assert own & set(NOT_DRILLED) == set()
    assert own | set(NOT_DRILLED) == set(ALERTS)


@EVERY
def test_what_goes_wrong_has_an_alert_and_what_is_well_has_none(scenario: Scenario) -> None:
    assert bool(scenario.alerts) == (scenario.cause is not None)
    assert len(set(scenario.alerts)) == len(scenario.alerts)


@EVERY
def test_one_of_its_alerts_at_least_names_its_cause(scenario: Scenario) -> None:
    causes = {name: ALERTS[name].cause for name in scenario.alerts}
    assert scenario.cause is None or scenario.cause in causes.values()
