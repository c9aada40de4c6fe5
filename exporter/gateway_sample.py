"""One gateway at one instant, as a source read it. ``None`` means not known, never zero.

A gateway is what stands between clients and engines: Envoy, LiteLLM. Counters are its own running
totals, as read; times are seconds since the epoch on a clock that never jumps.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

from exporter.sample import Histogram


class Outcome(enum.StrEnum):
    """How a request of a client ended: each has one, and all together are those that have ended."""

    OK = "ok"
    CLIENT_ERROR = "client_error"
    SERVER_ERROR = "server_error"
    REJECTED = "rejected"
    TIMEOUT = "timeout"
    UPSTREAM_RESET = "upstream_reset"
    OVERFLOW = "overflow"
    CLIENT_LEFT = "client_left"

    @property
    def meaning(self) -> str:
        """In words, for documents."""
        return _MEANINGS[self]


_MEANINGS = {
    Outcome.OK: "answered 2xx or 3xx, to the end",
    Outcome.CLIENT_ERROR: "answered 4xx, 429 apart",
    Outcome.SERVER_ERROR: "answered 5xx, by the engine or for want of one",
    Outcome.REJECTED: "answered 429, by the gateway or by the engine",
    Outcome.TIMEOUT: "the gateway's time was up, before or amid the answer",
    Outcome.UPSTREAM_RESET: "the engine's connection broke, before or amid the answer",
    Outcome.OVERFLOW: "turned away by a circuit breaker",
    Outcome.CLIENT_LEFT: "the client went away before the end",
}


class Breaker(NamedTuple):
    """A circuit breaker: of a priority (default, high) for a kind of thing, and whether it is at its limit."""

    priority: str
    kind: str
    is_open: bool


class KeyUse(NamedTuple):
    """What one API key has asked for so far; ``key`` as the gateway shows it, an alias or a hash.

    ``long_prompts`` counts requests of 64,000 prompt tokens and more, where the gateway tells.
    """

    key: str
    prompt_tokens: float
    long_prompts: float | None = None


@dataclass(frozen=True, slots=True)
class GatewaySample:
    """One read of one gateway.

    ``inflight`` are requests of clients that have not ended, ``upstream_inflight`` those that it has sent
    to an engine and is waiting for, ``pending`` those that wait for a connection to one. ``requests_total``
    have arrived; ``outcomes_total`` have ended. ``retries_total`` are attempts that the gateway itself
    made again, ``upstream_requests_total`` all that it sent to engines, ``given_up_total`` those of them
    that it broke off itself: the client had left, its time was up. ``turned_away_total`` are requests that
    it answered itself for want of room; ``request_time`` is over all answers, ``upstream_time`` over those
    that came whole from an engine, both in seconds. ``backends`` are the endpoints behind it.
    ``keys`` are those of most prompt tokens, ``has_more_keys`` whether there are others, and
    ``keys_prompt_tokens_total`` is over all of them.
    ``notes`` are oddities met while reading, by a fixed word each. ``cluster`` is what Envoy calls the
    engines it sends requests to; empty where that isn't known, or the gateway is none of Envoy's.
    """

    at: float
    gateway: str
    kind: str
    read_seconds: float = 0.0
    inflight: float | None = None
    upstream_inflight: float | None = None
    pending: float | None = None
    requests_total: float | None = None
    outcomes_total: tuple[tuple[Outcome, float], ...] = ()
    retries_total: float | None = None
    upstream_requests_total: float | None = None
    given_up_total: float | None = None
    turned_away_total: float | None = None
    breakers: tuple[Breaker, ...] = ()
    request_time: Histogram | None = None
    upstream_time: Histogram | None = None
    backends: float | None = None
    keys: tuple[KeyUse, ...] = ()
    has_more_keys: bool = False
    keys_prompt_tokens_total: float | None = None
    notes: tuple[str, ...] = ()
    cluster: str = ""

    @property
    def ended(self) -> float | None:
        """All requests that have ended, however."""
        return sum([count for _, count in self.outcomes_total]) if self.outcomes_total else None

    def outcome(self, which: Outcome) -> float | None:
        """How many have ended in this way; None where the gateway doesn't tell."""
        for outcome, count in self.outcomes_total:
            if outcome is which:
                return count
        return None

    def restarted_since(self, earlier: object) -> bool | None:
        """A running total of the gateway's own that fell: it started anew, or somebody reset its counters."""
        if not isinstance(earlier, GatewaySample):
            return None
        pairs = (
            (self.requests_total, earlier.requests_total),
            (self.upstream_requests_total, earlier.upstream_requests_total),
            (self.keys_prompt_tokens_total, earlier.keys_prompt_tokens_total),
        )
        told = [now < then for now, then in pairs if now is not None and then is not None]
        return any(told) if told else None
