"""Gateways together with the engines behind them: what signals that need both are derived from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from exporter.gateway_sample import GatewaySample
from exporter.sample import EngineSample
from exporter.window import Window


@dataclass(frozen=True, slots=True)
class Behind:
    """Which engines stand behind each gateway, by names; of one that isn't told of, or None: ``everyone``.

    Without ``everyone`` they are those that were ever read.
    """

    told: Mapping[str, Sequence[str] | None] = field(default_factory=dict)
    everyone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GatewayJoin:
    """Gateways that stand before the same engines, and these, all fresh.

    ``told`` is whether settings say which engines these are; else all that are read are taken to be.
    """

    gateways: tuple[Window[GatewaySample], ...]
    engines: tuple[Window[EngineSample], ...]
    told: bool

    @property
    def name(self) -> str:
        """The first of the gateways: what speaks of all stands under its name."""
        return self.gateways[0].newest.gateway


def joined_gateways(
    gateways: Mapping[str, Window[GatewaySample]],
    engines: Mapping[str, Window[EngineSample]],
    behind: Behind,
    stale_before: float,
) -> list[GatewayJoin]:
    """All joins that are whole: every gateway and every engine of them was read at ``stale_before`` or later.

    Where an engine stands behind two gateways that don't have the same engines, neither is joined: whose its
    sequences are can't be told.
    """
    groups: dict[frozenset[str], list[str]] = {}
    for name in gateways:
        wanted = behind.told.get(name)
        everyone = behind.everyone or tuple(engines)
        groups.setdefault(frozenset(everyone if wanted is None else wanted), []).append(name)
    found = []
    for names, members in groups.items():
        shared = any(names & others for others in groups if others != names)
        mine = [gateways[each] for each in members]
        theirs = [engines[each] for each in sorted(names) if each in engines]
        whole = bool(names) and len(theirs) == len(names)
        newest = [*(each.newest.at for each in mine), *(each.newest.at for each in theirs)]
        if shared or not whole or min(newest) < stale_before:
            continue
        told = all(behind.told.get(each) is not None for each in members)
        found.append(GatewayJoin(tuple(mine), tuple(theirs), told))
    return found
