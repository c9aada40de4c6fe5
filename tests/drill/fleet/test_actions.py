"""Actions that end by themselves, and those that meet each other."""

from __future__ import annotations

import pytest

from drill.actions import ChangeClients, ChangeGateway, NarrowLink, Restart
from drill.gateway_config import GatewayConfig
from tests.drill.fleet.stories import fleet


def test_a_change_for_a_while_is_taken_back_and_said() -> None:
    plan = [(1.0, ChangeGateway({"rate_per_second": 2.0, "burst": 1.0}, 3.0))]
    played = fleet([], gateway=GatewayConfig(rate_per_second=50.0), plan=plan)
    seconds = list(played.run(6))
    told = [(each.seconds, words) for each in seconds for words in each.actions]
    assert told == [
        (1.0, "gateway: rate_per_second 2, burst 1"),
        (4.0, "gateway: rate_per_second 50, burst off"),
    ]
    rates = [each.gateway_gauges.config.rate_per_second for each in seconds]
    assert rates == [2.0] * 3 + [50.0] * 3


@pytest.mark.parametrize("lasting", [0.5, 2.0, 4.0])
def test_what_somebody_else_changes_for_good_stays_so(lasting: float) -> None:
    for first in (True, False):
        a_while, for_good = (
            (1.0, ChangeClients({"retries": 1}, 3.0)),
            (lasting, ChangeClients({"retries": 7})),
        )
        plan = [a_while, for_good] if first else [for_good, a_while]
        played = fleet([], plan=plan)
        list(played.run(6))
        assert played.clients.config.retries == 7


def test_a_link_that_became_narrow_while_its_engine_was_restarted_stays_narrow() -> None:
    for at in (0.5, 1.0, 2.0, 4.0, 8.0):
        plan = [
            (1.0, Restart("e0", {"max_batched_tokens": 32}, drain_seconds=1.0)),
            (at, NarrowLink("e0", 4)),
        ]
        last = list(fleet([], plan=plan, start_seconds=4.0).run(10))[-1].engines[0]
        assert (last.life, last.config.max_batched_tokens, last.config.gpu.pcie_width) == (1, 32, 4)
