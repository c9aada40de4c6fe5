"""Verdicts on played scenarios of one engine; all of them, served, are ``tests.evaluation.triage``'s."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drill.playing.play import Moment, Play
from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.setting import Setting
from exporter.sample import EngineSample
from tests.alerts.triage.looks import alone, beside, verdict


def played(name: str, seconds: int) -> list[Moment]:
    scene = SCENARIOS[name].scene(Setting(engines=1))
    return [*Play(replace(scene, seconds=seconds), 1).moments()]


def sample(moment: Moment) -> EngineSample:
    return next(each.engine for each in moment.observations if each.engine is not None)


CASES = [
    # (scenario, the second looked at, beside a sidecar, by the engine alone)
    ("tail-waste", 140, "tail-waste", "tail-waste"),
    ("engine-frozen", 225, "engine-frozen", "engine-frozen?"),
    ("gateway-too-tight", 245, "gateway-too-tight", "healthy"),
]


@pytest.mark.parametrize(("name", "second", "by_sidecar", "by_itself"), CASES)
def test_a_scenario_is_healthy_before_its_trouble_and_called_by_its_name_in_it(
    name: str, second: int, by_sidecar: str, by_itself: str
) -> None:
    moments = played(name, second)
    for place, expected in ((100, ("healthy", "healthy")), (second, (by_sidecar, by_itself))):
        before, now = moments[place - 2 : place]
        pair = (sample(before), sample(now))
        assert (verdict(beside(pair, before.snapshot, now.snapshot)), verdict(alone(pair))) == expected
