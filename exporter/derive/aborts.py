"""Clients that left: told by the engine, or, as vLLM counts none of them, from what doesn't add up."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from exporter.derive.phenomenon import EngineFacts, Phenomenon
from exporter.derive.swap import swaps
from exporter.sample import EngineSample, RankSample
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import Total, Window

SETTLE_SECONDS = 30.0
"""How long a preempted sequence may look like one whose client left, where nothing tells them apart."""
ANSWER_SECONDS = 5.0
"""How long an answer may be on its way after its sequence finished."""
AHEAD = 32.0
"""Answers that may be finished and not yet counted though nothing runs any more."""

CLIENT_ABORTS = Signal(
    "client_aborts_total",
    Kind.COUNTER,
    Scope.ENGINE,
    "Requests whose client left before the end. One that finished before the server noticed is none. Without http_* "
    "counters a sequence that waits preempted for over 30 s passes for one. vLLM V0 that recomputes what it preempted: "
    "at least so many, without those who left while they were preempted.",
    Confidence.ESTIMATE,
    "the engine's own count (SGLang, TGI, Dynamo); else completions answered 2xx less finished requests; without the "
    "front end's http_* counters, or where they don't count each sequence (batches, n > 1, other routes): first tokens "
    "less finished, running and swapped, settled over 30 s while anything waits. V0 counts the end of a recomputation "
    "as a first token: less its preemptions too, until sequences were seen swapped",
    (
        "aborted_total",
        "http_ok_total",
        "finished_total",
        "time_to_first_token",
        "end_to_end_latency",
        "running",
        "swapped",
        "preemptions_total",
    ),
    source="exact on a real vLLM 0.32 (72 of 72); vLLM issues 31503, 8115",
    probed="requests that the scheduler was told to end, on all ranks; goes on from where the estimate stood. Left to "
    "the estimate once one with stop strings, or a session, was ended, since vLLM ends such like that itself",
    misses_between_reads=True,
)


class Settling(enum.Enum):
    """What an estimate may be off by when it begins, and so how its floor settles."""

    NOT = enum.auto()
    """Nothing was there: it is exact."""
    UP = enum.auto()
    """Sequences ran: some without a first token yet, or finished and not yet answered, pull it down."""
    DOWN = enum.auto()
    """Sequences waited: some preempted ones among them look like aborts."""


@dataclass(frozen=True, slots=True)
class AbortState:
    """``total`` so far, of it ``carried`` from before the estimate began anew.

    ``by_http`` is the estimator in use, None before the first; ``many_each`` whether the front end was
    seen not to count each sequence; ``ranks`` whose counts the estimate adds up. ``floor`` is what it
    read when it began, at ``since``; ``recent`` are (time, estimate) pairs of the trailing
    ``SETTLE_SECONDS``. ``swaps``: it was seen to swap, so that no later preemption of it is recomputed;
    ``recomputed`` are those before, by rank. ``told`` is the engine's own count, which goes before any estimate.
    """

    total: float = 0.0
    carried: float = 0.0
    by_http: bool | None = None
    many_each: bool = False
    ranks: frozenset[tuple[str, str]] = frozenset()
    floor: float = 0.0
    since: float = 0.0
    settling: Settling = Settling.NOT
    recent: tuple[tuple[float, float], ...] = ()
    swaps: bool = False
    recomputed: Mapping[tuple[str, str], float] = field(default_factory=dict)
    told: Total = Total()

    @property
    def known(self) -> bool:
        """Whether aborts could ever be told."""
        return self.by_http is not None or self.total > 0 or self.told.known


def fed_aborts(window: Window[EngineSample], state: AbortState) -> AbortState:
    """The state after the window's newest sample."""
    now = window.newest
    told = state.told.fed(now.aborted_total, restarted=window.restarted())
    if told.known:
        # the rise first: no switch from an estimate lets the total fall
        return replace(state, total=state.total + (told.value - state.told.value), told=told)
    state = replace(state, told=told)
    ranks = frozenset((rank.rank, rank.model_name) for rank in now.ranks)
    if window.restarted():
        state = AbortState(state.total, state.total, swaps=state.swaps, told=told)
    elif ranks != state.ranks:
        # a rank that comes or goes takes the counts of its whole life along
        by_http = state.by_http if not state.ranks else None
        state = replace(state, carried=state.total, by_http=by_http, recent=())
    if not state.swaps:
        if any(swaps(rank) for rank in now.ranks):
            state = replace(state, swaps=True)
        else:
            state = replace(state, recomputed=_recomputed(now))
    state = replace(state, ranks=ranks, many_each=state.many_each or not _counts_each(now))
    by_http, raw = _estimate(now, state)
    if raw is None:
        return state
    if by_http != state.by_http:
        state = _begun(state, window, raw, by_http=by_http)
    state = _settled(state, now.at, raw)
    if by_http:
        return replace(state, total=max(state.total, state.carried + raw - state.floor))
    recent = (*(each for each in state.recent if each[0] >= now.at - SETTLE_SECONDS), (now.at, raw))
    settled = raw
    if _preempted_look_gone(now, state):
        # aborts only add up, what looks like one and comes back does not: the least is the truth
        settled = min(value for _, value in recent)
    return replace(state, total=max(state.total, state.carried + settled - state.floor), recent=recent)


def _estimate(sample: EngineSample, state: AbortState) -> tuple[bool, float | None]:
    """Whether the front end's counters tell, and the raw estimate."""
    finished = _finished(sample)
    if sample.http_ok_total is None or finished is None or state.many_each:
        return False, _by_sequences(sample, state.recomputed)
    return True, sample.http_ok_total - finished


def _preempted_look_gone(sample: EngineSample, state: AbortState) -> bool:
    """Whether there may be sequences that have begun and, as far as the estimate by sequences sees, are nowhere."""
    return any(
        (rank.waiting or rank.swapped) and not _recomputes(rank, swapping=state.swaps)
        for rank in sample.ranks
    )


def _counts_each(sample: EngineSample) -> bool:
    finished = _finished(sample)
    if sample.http_ok_total is None or finished is None:
        return True  # nothing speaks against it
    return counts_each(sample.http_ok_total, finished, _running(sample))


def _settled(state: AbortState, now: float, raw: float) -> AbortState:
    """The floor while it settles. Answers follow their sequences soon; a prefill takes longer."""
    lasts = ANSWER_SECONDS if state.by_http else SETTLE_SECONDS
    if now - state.since > lasts or state.settling is Settling.NOT:
        return state
    better = max if state.settling is Settling.UP else min
    return replace(state, floor=better(state.floor, raw))


def _begun(state: AbortState, window: Window[EngineSample], raw: float, *, by_http: bool) -> AbortState:
    """The state in which an estimator begins: two of them, or two sets of ranks, don't share a floor."""
    now = window.newest
    first = state.by_http is False or (state.by_http is None and not state.since)
    if by_http and first and _stood_at_nothing(window):
        # the front end's counters show up with the first request: until then they stood at 0
        return replace(state, by_http=True, floor=0.0, since=now.at, settling=Settling.NOT, recent=())
    if by_http or not _preempted_look_gone(now, state):
        settling = Settling.UP if _running(now) else Settling.NOT
    else:
        settling = Settling.DOWN
    return replace(
        state,
        carried=state.total,
        by_http=by_http,
        floor=raw,
        since=now.at,
        settling=settling,
        recent=(),
    )


def counts_each(http_ok: float | None, finished: float | None, running: float | None) -> bool:
    """Whether the front end counts a completion for each sequence, as far as can be seen.

    A request with many prompts or answers is one completion and many finished sequences, and a route
    that isn't counted is none. A sequence finishes before its answer does, so as many as run may be
    ahead, and as many again that have just finished.
    """
    if http_ok is None or finished is None:
        return False
    return finished - http_ok <= 2 * (running or 0.0) + AHEAD


def _finished(sample: EngineSample) -> float | None:
    """Sequences the engine finished; its own count of aborts is no finish."""
    if not any(rank.finished_total for rank in sample.ranks):
        # a page without that series: the latencies of finished requests count them too
        ended = [
            rank.end_to_end_latency.count for rank in sample.ranks if rank.end_to_end_latency is not None
        ]
        return sum(ended) if ended else None
    return sum(count for rank in sample.ranks for reason, count in rank.finished_total if reason != "abort")


def _stood_at_nothing(window: Window[EngineSample]) -> bool:
    """Whether the engine was seen, in this life, before the front end counted and before anything finished.

    A sequence finishes a moment before its answer is counted: the sample just before may lie between.
    """
    now = window.newest
    return any(
        sample.http_ok_total is None and not _finished(sample) and not window.restarted_between(sample, now)
        for sample in window.samples[:-1]
    )


def _running(sample: EngineSample) -> float:
    return sum(rank.running or 0.0 for rank in sample.ranks)


def _by_sequences(sample: EngineSample, recomputed: Mapping[tuple[str, str], float]) -> float | None:
    """Sequences that got a first token, have not finished, and are not there any more."""
    each = [_missing(rank, recomputed.get((rank.rank, rank.model_name), 0.0)) for rank in sample.ranks]
    known = [missing for missing in each if missing is not None]
    return sum(known) if known and len(known) == len(each) else None


def _recomputes(rank: RankSample, *, swapping: bool) -> bool:
    """Whether each preemption adds a first token: V0 counts the end of a recomputation as one (``_get_stats``)."""
    return rank.generation == "v0" and not swapping


def _recomputed(sample: EngineSample) -> dict[tuple[str, str], float]:
    """Preemptions so far of ranks that recompute."""
    return {
        (rank.rank, rank.model_name): rank.preemptions_total or 0.0
        for rank in sample.ranks
        if _recomputes(rank, swapping=False)
    }


def _missing(rank: RankSample, again: float) -> float | None:
    """``again``: first tokens that were none, since a recomputation ended with them."""
    first = rank.first_tokens_so_far
    if first is None or rank.running is None or not rank.gauges_are_fresh:
        return None
    ended = rank.end_to_end_latency.count if rank.end_to_end_latency is not None else rank.finished
    if ended is None:
        return None
    return first.count - again - ended - rank.running - (rank.swapped or 0.0)


def _derive(
    window: Window[EngineSample], _facts: EngineFacts, state: AbortState
) -> tuple[AbortState, list[Point]]:
    state = fed_aborts(window, state)
    return state, [Point(CLIENT_ABORTS, (), state.total)] if state.known else []


ABORTS = Phenomenon("aborts", (CLIENT_ABORTS,), _derive, AbortState())
