"""How a gateway is set up. Impossible settings are refused here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from drill.breaker import BreakerConfig


class Routing(StrEnum):
    """Which engine gets a request."""

    ROUND_ROBIN = "round robin"
    LEAST_IN_FLIGHT = "least in flight"
    PREFIX = "prefix"
    """Prompts that begin alike go to the same one, unless it has far more to do than the others."""


@dataclass(frozen=True, slots=True)
class Admission:
    """Lets in only whom an engine's free blocks will hold, with the prompt and so many generated tokens.

    ``reserve_ratio`` of an engine's blocks stays free. What an engine holds is known as of the last second and rises
    by what was sent since, as predicted; where the predictions of all that it has come to more, these count.
    """

    expected_output_tokens: int
    reserve_ratio: float = 0.05


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """None: no such limit.

    ``rate_per_second``, ``burst``: the token bucket, full at first; it holds a second's worth where ``burst`` is None.
    ``max_requests``: in flight in the fleet, ``max_engine_requests``: in each engine. ``timeout_seconds``: until the
    whole answer is there. ``passes_disconnects``: when a client leaves, or the gateway gives up, the engine is told;
    else it works on for nobody, until ``orphan_seconds`` later, when a timeout of the connection ends it; None: to the
    end of the answer. ``prefix_tokens``: how much of prompts has to be alike for Routing.PREFIX,
    ``prefix_slack``: by which share an engine may have more in flight than the mean before they go elsewhere.
    ``filter_seconds``: what each request waits in what stands before these limits, as a filter that asks somebody else.
    """

    routing: Routing = Routing.LEAST_IN_FLIGHT
    rate_per_second: float | None = None
    burst: float | None = None
    max_requests: int | None = None
    max_engine_requests: int | None = None
    timeout_seconds: float | None = None
    passes_disconnects: bool = True
    orphan_seconds: float | None = None
    breaker: BreakerConfig | None = None
    admission: Admission | None = None
    prefix_tokens: int = 1024
    prefix_slack: float = 0.25
    filter_seconds: float = 0.0

    def __post_init__(self) -> None:
        for name in ("rate_per_second", "burst", "timeout_seconds", "orphan_seconds"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} is {value}: it must be above 0, or None for no such limit")
        if not 0 <= self.filter_seconds < math.inf:
            raise ValueError(f"filter_seconds is {self.filter_seconds}: it must be 0 or more")
        for name in ("max_requests", "max_engine_requests"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}: it must be at least 1, or None for no such limit")

    @property
    def bucket_size(self) -> float | None:
        """Requests that may come at once; None without a token bucket."""
        if self.rate_per_second is None:
            return None
        return max(1.0, self.rate_per_second) if self.burst is None else max(1.0, self.burst)
