"""The gateway: what clients ask of it, how it ends, and what stands open or full."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from exporter.derive.phenomenon import EngineFacts, Phenomenon, stateless
from exporter.derive.traffic import Totals
from exporter.gateway_sample import GatewaySample, Outcome
from exporter.sample import Histogram
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import Total, Window

REJECT_SECONDS = 60.0
BREAKER_SECONDS = 60.0
_QUANTILE = 0.99

INFO = Signal(
    "gateway_info",
    Kind.GAUGE,
    Scope.GATEWAY,
    "1, with what the gateway is: envoy or litellm.",
    Confidence.MEASURED,
    "the names on its page",
    ("kind",),
    labels=("kind",),
)
REQUESTS = Signal(
    "gateway_requests_total",
    Kind.COUNTER,
    Scope.GATEWAY,
    "Requests of clients by how they ended, each counted once: "
    + "; ".join(f"{outcome.value}: {outcome.meaning}" for outcome in Outcome)
    + ". A retry of a client's is a request of its own.",
    Confidence.MEASURED,
    "rises of the gateway's counters, summed from 0; Envoy counts an answer by its first byte, so those that broke off "
    "are taken off again. Whether a 503 was the engine's own or a broken connection is told from both counts",
    ("outcomes_total",),
    labels=("outcome",),
    source="each ending by itself on a real Envoy 1.40",
    by_request=True,
)
INFLIGHT = Signal(
    "gateway_inflight",
    Kind.GAUGE,
    Scope.GATEWAY,
    "Requests of clients that have not ended.",
    Confidence.MEASURED,
    "the gateway's gauge; LiteLLM's less the read itself, and with requests for its own pages",
    ("inflight",),
)
UPSTREAM_INFLIGHT = Signal(
    "gateway_upstream_inflight",
    Kind.GAUGE,
    Scope.GATEWAY,
    "Requests that the gateway has sent to an engine and that have not ended.",
    Confidence.MEASURED,
    "the gauge of the engines' cluster",
    ("upstream_inflight",),
)
PENDING = Signal(
    "gateway_pending",
    Kind.GAUGE,
    Scope.GATEWAY,
    "Requests that wait in the gateway for a connection to an engine.",
    Confidence.MEASURED,
    "the gauge of the engines' cluster",
    ("pending",),
)
RETRIES = Signal(
    "gateway_retries_total",
    Kind.COUNTER,
    Scope.GATEWAY,
    "Attempts that the gateway itself made again. A client that asks again is a new request to it.",
    Confidence.MEASURED,
    "rises of the gateway's counter, summed from 0",
    ("retries_total",),
)
UPSTREAM_REQUESTS = Signal(
    "gateway_upstream_requests_total",
    Kind.COUNTER,
    Scope.GATEWAY,
    "Requests that the gateway has sent to engines, its own retries included.",
    Confidence.MEASURED,
    "rises of the gateway's counter, summed from 0",
    ("upstream_requests_total",),
    by_request=True,
)
BREAKER_OPEN = Signal(
    "gateway_breaker_open",
    Kind.GAUGE,
    Scope.GATEWAY,
    "1 while a circuit breaker of the engines' cluster is at its limit: what comes then is turned away.",
    Confidence.MEASURED,
    "the gateway's gauges, by Envoy's priority and by what is limited",
    ("breakers",),
    labels=("priority", "kind"),
    is_state=True,
)
BREAKER_OPEN_RATIO = Signal(
    "gateway_breaker_open_ratio",
    Kind.GAUGE,
    Scope.GATEWAY,
    "Share of the trailing 60 s in which a circuit breaker of the engines' cluster was at its limit: it closes with an "
    "answer and opens with the next request, so that one look says little.",
    Confidence.MEASURED,
    "intervals between samples, by what the later one says",
    ("breakers",),
    labels=("priority", "kind"),
    window_seconds=BREAKER_SECONDS,
    follows_reads=True,
)
REJECT_P99 = Signal(
    "gateway_reject_p99_seconds",
    Kind.GAUGE,
    Scope.GATEWAY,
    "Within how many seconds 99 % of those turned away for want of room (local limits, breakers) had their answer, "
    "over the trailing 60 s.",
    Confidence.ESTIMATE,
    "no gateway has a histogram of rejections: Envoy's over all answers less those that came from an engine, whose "
    "quickest are taken to be the rejections; merged each 5 s",
    ("request_time", "upstream_time", "turned_away_total"),
    window_seconds=REJECT_SECONDS,
    by_request=True,
)


def _gauges(window: Window[GatewaySample], _facts: EngineFacts) -> Iterator[Point]:
    now = window.newest
    yield Point(INFO, (now.kind,), 1.0)
    for signal, value in (
        (INFLIGHT, now.inflight),
        (UPSTREAM_INFLIGHT, now.upstream_inflight),
        (PENDING, now.pending),
        (REJECT_P99, reject_p99(window)),
    ):
        if value is not None:
            yield Point(signal, (), value)
    for breaker in now.breakers:
        yield Point(BREAKER_OPEN, (breaker.priority, breaker.kind), float(breaker.is_open))
    for (priority, kind), share in _open_ratios(window).items():
        yield Point(BREAKER_OPEN_RATIO, (priority, kind), share)


def _open_ratios(window: Window[GatewaySample]) -> dict[tuple[str, str], float]:
    """By priority and kind, of those that are there now."""
    covered = 0.0
    opened = {(breaker.priority, breaker.kind): 0.0 for breaker in window.newest.breakers}
    if not opened:
        return {}
    for before, after in window.intervals(BREAKER_SECONDS):
        covered += after.at - before.at
        for breaker in after.breakers:
            if breaker.is_open and (breaker.priority, breaker.kind) in opened:
                opened[breaker.priority, breaker.kind] += after.at - before.at
    return {name: seconds / covered for name, seconds in opened.items()} if covered > 0 else {}


def reject_p99(window: Window[GatewaySample]) -> float | None:
    """Seconds; None where nothing was turned away in the window, or the gateway has no such histograms."""
    turned_away = window.delta(lambda sample: sample.turned_away_total, REJECT_SECONDS)
    everyone = window.observed(lambda sample: sample.request_time, REJECT_SECONDS)
    upstream = window.observed(lambda sample: sample.upstream_time, REJECT_SECONDS)
    if turned_away is None or turned_away.increase <= 0 or everyone is None or upstream is None:
        return None
    if everyone.observed.bounds != upstream.observed.bounds:
        return None
    # an answer from an engine may stand one bucket higher at the listener: no difference is below those before it
    differences = (a - b for a, b in zip(everyone.observed.counts, upstream.observed.counts, strict=True))
    own = Histogram(everyone.observed.bounds, tuple(itertools.accumulate(differences, max, initial=0.0))[1:])
    if own.count <= 0:
        return None
    # the histograms are merged later than the counters: what broke off is told first, and is the slow end
    slow = window.delta(_broken_off, REJECT_SECONDS)
    quick = min(turned_away.increase, own.count - (slow.increase if slow is not None else 0.0))
    found = own.quantile(_QUANTILE * quick / own.count) if quick > 0 else None
    return None if found is None else found[0]


def _broken_off(sample: GatewaySample) -> float | None:
    late, reset = sample.outcome(Outcome.TIMEOUT), sample.outcome(Outcome.UPSTREAM_RESET)
    return None if late is None or reset is None else late + reset


@dataclass(frozen=True, slots=True)
class GatewayState:
    """The totals of one gateway."""

    outcomes: Totals = Totals()
    retries: Total = Total()
    upstream: Total = Total()


def _totals(
    window: Window[GatewaySample], _facts: EngineFacts, state: GatewayState
) -> tuple[GatewayState, list[Point]]:
    now, restarted = window.newest, window.restarted()
    counts = tuple((outcome.value, count) for outcome, count in now.outcomes_total)
    if not restarted:
        counts = tuple((name, held(state.outcomes.by_label.get(name), count)) for name, count in counts)
    state = GatewayState(
        state.outcomes.fed(counts, restarted=restarted),
        state.retries.fed(now.retries_total, restarted=restarted),
        state.upstream.fed(now.upstream_requests_total, restarted=restarted),
    )
    points = [Point(REQUESTS, (name,), total.value) for name, total in state.outcomes.by_label.items()]
    if state.retries.known:
        points.append(Point(RETRIES, (), state.retries.value))
    if state.upstream.known:
        points.append(Point(UPSTREAM_REQUESTS, (), state.upstream.value))
    return state, points


def held(total: Total | None, count: float) -> float:
    """``count``, or the last one where it is below that: a difference of counters that are read one after another."""
    return count if total is None or total.last is None else max(count, total.last)


GAUGES = stateless(
    "gateway",
    (INFO, INFLIGHT, UPSTREAM_INFLIGHT, PENDING, BREAKER_OPEN, BREAKER_OPEN_RATIO, REJECT_P99),
    _gauges,
)
TOTALS = Phenomenon("gateway_totals", (REQUESTS, RETRIES, UPSTREAM_REQUESTS), _totals, GatewayState())
