"""Twice the incident's sessions on the fleet that was hardened after it: nothing to tell."""

from __future__ import annotations

from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.setting import Setting, Size
from tests.drill.scenarios.played import played


def test_it_stays_quiet() -> None:
    run = played("peak", 330)
    assert run.seconds[-1].clients.in_flight > 1.8 * run.seconds[140].clients.in_flight
    assert max(run.values("tpot_p99_seconds")) < 0.2
    assert max(run.values("swapped_sequences")) == 0
    assert max(run.values("thrashing")) == 0
    assert max(run.values("preemptions_total")) < 5
    assert run.seconds[-1].clients.timed_out == 0
    results = [each for second in run.seconds for engine in second.engines for each in engine.results]
    asked = sum(each.prefix_queried_tokens for each in results)
    assert 0.35 < sum(each.prefix_hit_tokens for each in results) / asked < 0.5


def test_the_full_fleet_has_2400_sessions() -> None:
    scene = SCENARIOS["peak"].scene(Setting(Size.FULL))
    assert abs(sum(1 for _ in scene.load) - 2_400) < 100
