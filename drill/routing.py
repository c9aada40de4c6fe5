"""Which of several engines a request is sent to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from drill.gateway_config import GatewayConfig, Routing
from drill.serving.content import Segment
from drill.workload.contents import content_id


@dataclass(frozen=True, slots=True)
class Choice:
    """An engine that may be taken, by index, and how many requests it has in flight."""

    engine: int
    active: int


def pick(config: GatewayConfig, choices: Sequence[Choice], content: Sequence[Segment], turn: int) -> int:
    """The engine's index. ``choices``: at least one, by index; ``turn``: whose turn it is where all are equal.

    Prefixes: rendezvous hashing (Thaler, Ravishankar: Using name-based mappings to increase hit rates, 1998), with
    loads bounded (Mirrokni, Thorup, Zadimoghaddam: Consistent hashing with bounded loads, 2018).
    """
    if config.routing is Routing.ROUND_ROBIN:
        return min(choices, key=lambda one: (one.engine < turn, one.engine)).engine
    if config.routing is Routing.LEAST_IN_FLIGHT:
        return min(choices, key=lambda one: (one.active, one.engine < turn, one.engine)).engine
    mean = (sum(one.active for one in choices) + 1) / len(choices)
    below = [one for one in choices if one.active < (1.0 + config.prefix_slack) * mean]
    key = content_id(*_beginning(content, config.prefix_tokens))
    return max(below, key=lambda one: content_id(key, one.engine)).engine


def _beginning(content: Sequence[Segment], tokens: int) -> list[int]:
    """Contents of the segments that begin within the first so many tokens."""
    found = []
    for part in content:
        if tokens <= 0:
            break
        found.append(part.content)
        tokens -= part.tokens
    return found
