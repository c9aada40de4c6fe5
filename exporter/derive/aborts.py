"""Clients that left: vLLM counts none of them, so they are told from what doesn't add up."""

from __future__ import annotations

from dataclasses import dataclass, replace

from exporter.derive.phenomenon import EngineFacts, Phenomenon
from exporter.sample import EngineSample, RankSample
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import Window

SETTLE_SECONDS = 30.0
"""How long a preempted sequence may look like one whose client left, where nothing tells them apart."""
AHEAD = 32.0
"""Answers that may be finished and not yet counted though nothing runs any more."""

CLIENT_ABORTS = Signal(
    "client_aborts_total",
    Kind.COUNTER,
    Scope.ENGINE,
    "Requests whose client left before the end. One that finished before the server noticed is none.",
    Confidence.ESTIMATE,
    "completions answered 2xx less finished requests; without the front end's http_* counters, or where they don't "
    "count each sequence (batches, n > 1, other routes): first tokens less finished, running and swapped, settled over "
    "30 s while anything waits",
    ("http_ok_total", "finished_total", "time_to_first_token", "end_to_end_latency", "running", "swapped"),
    source="exact on a real vLLM 0.32 (72 of 72); vLLM issues 31503, 8115",
)


@dataclass(frozen=True, slots=True)
class AbortState:
    """``total`` so far, of it ``carried`` from before a restart or a change of estimator.

    ``by_http`` is the estimator in use, None before the first; ``many_each`` whether the front end was
    seen not to count each sequence. ``floor`` is what the estimator read when it began, at ``since``;
    ``recent`` are (time, estimate) pairs of the trailing ``SETTLE_SECONDS``.
    """

    total: float = 0.0
    carried: float = 0.0
    by_http: bool | None = None
    many_each: bool = False
    floor: float = 0.0
    since: float = 0.0
    recent: tuple[tuple[float, float], ...] = ()

    @property
    def known(self) -> bool:
        """Whether aborts could ever be told."""
        return self.by_http is not None or self.total > 0


def fed_aborts(window: Window[EngineSample], state: AbortState) -> AbortState:
    """The state after the window's newest sample."""
    now = window.newest
    if window.restarted():
        state = AbortState(state.total, state.total)
    answered, finished = now.http_ok_total, _finished(now)
    if answered is not None and not counts_each(answered, finished, _running(now)):
        state = replace(state, many_each=True)
    by_http, raw = False, _by_sequences(now)
    if answered is not None and finished is not None and not state.many_each:
        by_http, raw = True, answered - finished
    if raw is None:
        return state
    if by_http != state.by_http:
        # two estimators don't share a floor. The front end's counters show up with the first request:
        # until then they stood at 0, and so did what was finished
        from_nothing = by_http and state.by_http is False and not _finished_before(window)
        floor = 0.0 if from_nothing else raw
        state = replace(state, carried=state.total, by_http=by_http, floor=floor, since=now.at, recent=())
    if by_http:
        return replace(state, total=max(state.total, state.carried + raw - state.floor))
    recent = (*(each for each in state.recent if each[0] >= now.at - SETTLE_SECONDS), (now.at, raw))
    if now.at - state.since <= SETTLE_SECONDS:
        # whoever looked like an abort at the start and came back was none
        state = replace(state, floor=min(state.floor, raw))
    settled = raw
    if any(rank.waiting or rank.swapped for rank in now.ranks):
        # aborts only add up, what looks like one and comes back does not: the least is the truth
        settled = min(value for _, value in recent)
    return replace(state, total=max(state.total, state.carried + settled - state.floor), recent=recent)


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
    counts = [count for rank in sample.ranks for reason, count in rank.finished_total if reason != "abort"]
    return sum(counts) if sample.ranks else None


def _finished_before(window: Window[EngineSample]) -> float:
    return (_finished(window.samples[-2]) or 0.0) if len(window.samples) > 1 else 0.0


def _running(sample: EngineSample) -> float:
    return sum(rank.running or 0.0 for rank in sample.ranks)


def _by_sequences(sample: EngineSample) -> float | None:
    """Sequences that got a first token, have not finished, and are not there any more."""
    each = [_missing(rank) for rank in sample.ranks]
    known = [missing for missing in each if missing is not None]
    return sum(known) if known and len(known) == len(each) else None


def _missing(rank: RankSample) -> float | None:
    first = rank.time_to_first_token
    if first is None or rank.running is None:
        return None
    ended = rank.end_to_end_latency.count if rank.end_to_end_latency is not None else rank.finished
    if ended is None:
        return None
    return first.count - ended - rank.running - (rank.swapped or 0.0)


def _derive(
    window: Window[EngineSample], _facts: EngineFacts, state: AbortState
) -> tuple[AbortState, list[Point]]:
    state = fed_aborts(window, state)
    return state, [Point(CLIENT_ABORTS, (), state.total)] if state.known else []


ABORTS = Phenomenon("aborts", (CLIENT_ABORTS,), _derive, AbortState())
