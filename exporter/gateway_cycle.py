"""The gateways through a cycle: each one's window, and those before the same engines joined with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from exporter.catalogue import GATEWAY_JOIN_PHENOMENA, GATEWAY_PHENOMENA
from exporter.derivation import labelled, run
from exporter.derive.phenomenon import EngineFacts
from exporter.gateway_join import Behind, GatewayJoin, joined_gateways
from exporter.gateway_sample import GatewaySample
from exporter.sample import STALE_AFTER_SECONDS, EngineSample
from exporter.snapshot import Failure, Value
from exporter.window import Window

GATEWAY_HORIZON_SECONDS = 75.0
"""The longest question asked is a minute, from up to some seconds before the newest sample."""

_NO_FACTS = EngineFacts()


@dataclass(frozen=True, slots=True)
class GatewayState:
    """One gateway: its window, what its phenomena remember, and the values of its newest sample."""

    window: Window[GatewaySample] = field(
        default_factory=lambda: Window(horizon_seconds=GATEWAY_HORIZON_SECONDS)
    )
    memory: Mapping[str, Any] = field(default_factory=dict)
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class GatewayJoinState:
    """Gateways with their engines: what was seen last, what their phenomena remember, and their values."""

    seen: tuple[float, ...] = ()
    memory: Mapping[str, Any] = field(default_factory=dict)
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class GatewaysState:
    """All gateways by name, and joins by the name they stand under."""

    gateways: Mapping[str, GatewayState] = field(default_factory=dict)
    joins: Mapping[str, GatewayJoinState] = field(default_factory=dict)

    def values(self, now: float) -> list[Value]:
        """Those of gateways whose newest sample still holds, and of joins."""
        states = self.gateways.values()
        fresh = [state.values for state in states if now - state.window.newest.at <= STALE_AFTER_SECONDS]
        return list(chain(*fresh, *(join.values for join in self.joins.values())))


def after_gateways(  # noqa: PLR0913, PLR0917 - gateways, engines, who stands behind whom, and what goes in and out
    state: GatewaysState,
    samples: Iterable[GatewaySample],
    engines: Mapping[str, Window[EngineSample]],
    behind: Behind,
    now: float,
    failures: list[Failure],
) -> GatewaysState:
    """All gateways after what the sources show, alone and with the engines behind them.

    Each is derived once for each new sample. The values of a join vanish with the numbers of any of it.
    """
    gateways = dict(state.gateways)
    for sample in samples:
        gateway = gateways.get(sample.gateway) or GatewayState()
        if not gateway.window.samples or sample.at > gateway.window.newest.at:
            gateways[sample.gateway] = _derived(gateway, sample, failures)
    windows = {name: gateway.window for name, gateway in gateways.items()}
    joins = {name: GatewayJoinState((), each.memory) for name, each in state.joins.items()}
    for join in joined_gateways(windows, engines, behind, now - STALE_AFTER_SECONDS):
        joins[join.name] = _after_join(state.joins.get(join.name) or GatewayJoinState(), join, failures)
    return GatewaysState(gateways, joins)


def _after_join(state: GatewayJoinState, join: GatewayJoin, failures: list[Failure]) -> GatewayJoinState:
    seen = (*(each.newest.at for each in join.gateways), *(each.newest.at for each in join.engines))
    if seen == state.seen:
        return state

    def failed(phenomenon: str, error: Exception) -> None:
        failures.append(Failure(join.name, phenomenon, error))

    memory, points = run(GATEWAY_JOIN_PHENOMENA, join, _NO_FACTS, state.memory, failed)
    return GatewayJoinState(seen, memory, tuple(labelled(points.values(), (join.name,))))


def _derived(state: GatewayState, sample: GatewaySample, failures: list[Failure]) -> GatewayState:
    def failed(phenomenon: str, error: Exception) -> None:
        failures.append(Failure(sample.gateway, phenomenon, error))

    window = state.window.appended(sample)
    memory, points = run(GATEWAY_PHENOMENA, window, _NO_FACTS, state.memory, failed)
    return GatewayState(window, memory, tuple(labelled(points.values(), (sample.gateway,))))
