"""Small fleets whose iterations take a second each, and what their clients saw."""

from __future__ import annotations

from collections.abc import Iterable

from drill.clients import AttemptEnd, AttemptOutcome, ClientConfig
from drill.fleet import Action, Fleet
from drill.gateway_config import GatewayConfig
from drill.second import Second
from drill.serving.content import Segment
from drill.workload.arrivals import Arrival
from tests.drill.engines import SECOND, config

PATIENT = ClientConfig(timeout_seconds=None, retries=0)
"""Waits for ever and comes once."""


def arrival(
    at: float, prompt: int = 4, output: int = 3, content: int | None = None, **more: object
) -> Arrival:
    """A prompt like no other, unless told."""
    own = round(at * 1000) + 1_000_000 if content is None else content
    return Arrival(at, (Segment(own, prompt),), output, **more)  # type: ignore[arg-type]


def fleet(  # noqa: PLR0913 -- what a story is about, each by name
    arrivals: Iterable[Arrival],
    engines: int = 1,
    blocks: int = 100,
    *,
    gateway: GatewayConfig | None = None,
    clients: ClientConfig = PATIENT,
    plan: Iterable[tuple[float, Action]] = (),
    start_seconds: float = 5.0,
    **changes: object,
) -> Fleet:
    """Engines e0, e1, ..., each with so many blocks of 4 tokens, an iteration a second."""
    return Fleet(
        {f"e{index}": config(blocks, **changes) for index in range(engines)},
        arrivals,
        gateway=gateway,
        clients=clients,
        plan=plan,
        timer=SECOND,
        start_seconds=start_seconds,
    )


def ended(seconds: Iterable[Second]) -> list[AttemptEnd]:
    """All attempts that ended."""
    return [each for second in seconds for each in second.ended]


def brief(seconds: Iterable[Second]) -> list[tuple[int, int, float, float, AttemptOutcome]]:
    """Of each attempt that ended: request, number, start, end, how."""
    return [
        (each.request, each.number, each.started_seconds, each.ended_seconds, each.outcome)
        for each in ended(seconds)
    ]
