"""A gateway before a fleet: who is let through, to which engine, and what it counts. Its numbers bear Envoy's names.

State and rules only: the time is told from outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from drill.breaker import Breaker
from drill.gateway_config import GatewayConfig
from drill.gateway_counts import GatewayGauges, GatewayTotals, Reject, UpstreamEnd, UpstreamTotals
from drill.gateway_times import Times
from drill.routing import Choice, pick
from drill.serving.content import Segment


@dataclass(slots=True)
class _Upstream:
    """What the gateway knows of an engine. ``held_blocks``: as last told; ``booked``: predicted, of what it has."""

    breaker: Breaker | None
    block_tokens: int = 16
    in_rotation: bool = True
    usable_blocks: int = 0
    held_blocks: int = 0
    booked: int = 0
    booked_since: int = 0
    active: int = 0
    counts: dict[str, int] = field(default_factory=lambda: asdict(UpstreamTotals()))


@dataclass(frozen=True, slots=True)
class _Sent:
    upstream: int
    blocks: int
    trial: bool
    came: float
    sent: float


class Gateway:
    """Before ``engines`` engines, which it knows by index."""

    def __init__(self, config: GatewayConfig, engines: int) -> None:
        self.config = config
        self._upstreams = [_Upstream(self._breaker()) for _ in range(engines)]
        self._came: dict[int, float] = {}
        """Requests that stand before the limits, and since when."""
        self._sent: dict[int, _Sent] = {}
        self._request_times, self._upstream_times = Times(), Times()
        self._tokens = config.bucket_size
        self._filled = 0.0
        self._next = 0
        self._downstream = dict.fromkeys(("total", "2xx", "4xx", "5xx", "rx_reset"), 0)
        self._rejected = dict.fromkeys(Reject, 0)

    def change(self, config: GatewayConfig, now: float) -> None:
        """Run with another configuration from now on; breakers start anew where theirs changed."""
        self._refill(now)
        before, self.config = self.config, config
        size = config.bucket_size
        self._tokens = size if size is None or self._tokens is None else min(self._tokens, size)
        if config.breaker != before.breaker:
            for upstream in self._upstreams:
                upstream.breaker = self._breaker()

    def see(
        self, engine: int, *, serves: bool, block_tokens: int, usable_blocks: int, held_blocks: int
    ) -> None:
        """What an engine told last: whether requests are to be sent to it, and its blocks."""
        upstream = self._upstreams[engine]
        upstream.in_rotation = serves
        upstream.block_tokens = block_tokens
        upstream.usable_blocks, upstream.held_blocks = usable_blocks, held_blocks
        upstream.booked_since = 0

    def come(self, request: int, now: float) -> float:
        """A request comes in: in how many seconds it is to be offered."""
        self._downstream["total"] += 1
        self._came[request] = now
        return self.config.filter_seconds

    def offer(self, request: int, content: Sequence[Segment], now: float) -> int | Reject:
        """It stands before the limits: which engine it is sent to, or why it isn't let through, which ends it.

        ``come`` comes first where something stands before them.
        """
        if request not in self._came:
            self.come(request, now)
        came = self._came.pop(request)
        chosen = self._choose(content, now)
        if isinstance(chosen, Reject):
            self._request_times.observe(now - came, now)
            self._rejected[chosen] += 1
            limited = chosen in (Reject.RATE_LIMITED, Reject.NO_ROOM)
            self._downstream["4xx" if limited else "5xx"] += 1
            return chosen
        upstream = self._upstreams[chosen]
        blocks = self._predicted(upstream, content)
        trial = upstream.breaker.sent() if upstream.breaker is not None else False
        upstream.active += 1
        upstream.booked += blocks
        upstream.booked_since += blocks
        upstream.counts["rq_total"] += 1
        self._sent[request] = _Sent(chosen, blocks, trial, came, now)
        return chosen

    def end(self, request: int, how: UpstreamEnd, now: float) -> None:
        """A request that was sent to an engine ended."""
        sent = self._sent.pop(request)
        upstream = self._upstreams[sent.upstream]
        upstream.active -= 1
        upstream.booked -= sent.blocks
        for name in _COUNTED[how]:
            upstream.counts[name] += 1
        self._downstream[_DOWNSTREAM[how]] += 1
        if how is not UpstreamEnd.CLIENT_LEFT:
            self._request_times.observe(now - sent.came, now)
        if how in (UpstreamEnd.COMPLETED, UpstreamEnd.REFUSED):
            self._upstream_times.observe(now - sent.sent, now)
        breaker = upstream.breaker
        if breaker is None:
            return
        opened = breaker.opened
        if how is UpstreamEnd.CLIENT_LEFT:
            breaker.abandoned(trial=sent.trial)
        elif how in (UpstreamEnd.COMPLETED, UpstreamEnd.REFUSED):
            breaker.succeeded(trial=sent.trial)
        else:
            breaker.failed(now, trial=sent.trial)
        upstream.counts["ejections"] += breaker.opened - opened

    def totals(self) -> GatewayTotals:
        """Since the beginning."""
        counts = self._downstream
        return GatewayTotals(
            counts["total"],
            counts["2xx"],
            counts["4xx"],
            counts["5xx"],
            counts["rx_reset"],
            tuple(self._rejected.items()),
            tuple(UpstreamTotals(**upstream.counts) for upstream in self._upstreams),
        )

    def gauges(self, now: float) -> GatewayGauges:
        """As of now."""
        self._refill(now)
        return GatewayGauges(
            self.config,
            len(self._sent) + len(self._came),
            tuple(upstream.active for upstream in self._upstreams),
            tuple(upstream.breaker is not None and upstream.breaker.is_open for upstream in self._upstreams),
            self._tokens,
            self._request_times.told(now),
            self._upstream_times.told(now),
        )

    def _choose(self, content: Sequence[Segment], now: float) -> int | Reject:
        config = self.config
        self._refill(now)
        if self._tokens is not None:
            if self._tokens < 1.0:
                return Reject.RATE_LIMITED
            self._tokens -= 1.0
        if config.max_requests is not None and len(self._sent) >= config.max_requests:
            return Reject.OVERFLOW
        serving = [
            (index, one)
            for index, one in enumerate(self._upstreams)
            if one.in_rotation and (one.breaker is None or one.breaker.lets_through(now))
        ]
        if not serving:
            return Reject.NO_ENGINE
        most = config.max_engine_requests
        if most is not None:
            serving = [(index, one) for index, one in serving if one.active < most]
            if not serving:
                return Reject.OVERFLOW
        if config.admission is not None:
            serving = [(index, one) for index, one in serving if self._has_room(one, content)]
            if not serving:
                return Reject.NO_ROOM
        chosen = pick(config, [Choice(index, one.active) for index, one in serving], content, self._next)
        self._next = (chosen + 1) % len(self._upstreams)
        return chosen

    def _has_room(self, upstream: _Upstream, content: Sequence[Segment]) -> bool:
        admission = self.config.admission
        if admission is None:
            return True
        held = max(upstream.held_blocks + upstream.booked_since, upstream.booked)
        room = upstream.usable_blocks * (1.0 - admission.reserve_ratio) - held
        return self._predicted(upstream, content) <= room

    def _predicted(self, upstream: _Upstream, content: Sequence[Segment]) -> int:
        if self.config.admission is None:
            return 0
        tokens = sum(part.tokens for part in content) + self.config.admission.expected_output_tokens
        return -(-tokens // upstream.block_tokens)

    def _refill(self, now: float) -> None:
        rate, size = self.config.rate_per_second, self.config.bucket_size
        if rate is not None and size is not None and self._tokens is not None:
            self._tokens = min(size, self._tokens + rate * (now - self._filled))
        self._filled = now

    def _breaker(self) -> Breaker | None:
        return None if self.config.breaker is None else Breaker(self.config.breaker)


_COUNTED = {
    UpstreamEnd.COMPLETED: ("rq_2xx",),
    UpstreamEnd.REFUSED: ("rq_4xx",),
    UpstreamEnd.RESET: ("rq_5xx", "rq_rx_reset"),
    UpstreamEnd.NO_CONNECTION: ("rq_5xx", "cx_connect_fail"),
    UpstreamEnd.TIMED_OUT: ("rq_5xx", "rq_timeout", "rq_tx_reset"),
    UpstreamEnd.CLIENT_LEFT: ("rq_tx_reset",),
}
_DOWNSTREAM = {
    UpstreamEnd.COMPLETED: "2xx",
    UpstreamEnd.REFUSED: "4xx",
    UpstreamEnd.RESET: "5xx",
    UpstreamEnd.NO_CONNECTION: "5xx",
    UpstreamEnd.TIMED_OUT: "5xx",
    UpstreamEnd.CLIENT_LEFT: "rx_reset",
}
