"""How long clients wait: for a first token, for the next, and against the service's objectives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from exporter.derive.aborts import AbortState, counts_each, fed_aborts
from exporter.derive.phenomenon import TIME_TO_FIRST_TOKEN_SLO_SECONDS, EngineFacts, Phenomenon, stateless
from exporter.sample import MOST_RANKS, EngineSample, Histogram, RankSample
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import Window

QUANTILE_SECONDS = 60.0
INTERVAL_SECONDS = 30.0
_WAIT = TIME_TO_FIRST_TOKEN_SLO_SECONDS / 4
"""Nobody minds to wait so much longer for an answer to begin: a quarter of the objective, the median half as long."""

TOKEN_INTERVAL = Signal(
    "token_interval_seconds",
    Kind.GAUGE,
    Scope.RANK,
    "Mean time between two tokens of one sequence over the trailing 30 s, stopped sequences included. Absent when no "
    "token came.",
    Confidence.ESTIMATE,
    "the larger of the mean gap that ended, by the engine's histogram, and of sequence seconds (running, swapped, and "
    "begun but waiting again, less prefill) over generated tokens, which sees standing sequences at once",
    (
        "inter_token_latency",
        "running",
        "swapped",
        "generation_tokens_total",
        "time_to_first_token",
        "http_ok_total",
        "prefill_time",
    ),
    window_seconds=INTERVAL_SECONDS,
    source="0.97 to 0.98 of the clients' own mean on two real engines",
    follows_reads=True,
)
_QUANTILE_HELP = (
    "{what}, {which} over the trailing 60 s, interpolated in the engine's own buckets. Above the top bucket it shows "
    "that bucket's bound and quantile_saturated is 1."
)


def _quantile_signal(name: str, what: str, which: str, field: str) -> Signal:
    is_first, is_middle = field == "time_to_first_token", which == _MIDDLE
    return Signal(
        name,
        Kind.GAUGE,
        Scope.RANK,
        _QUANTILE_HELP.format(what=what, which=which),
        Confidence.MEASURED,
        "rise of the engine's histogram, interpolated as PromQL does",
        (field,),
        window_seconds=QUANTILE_SECONDS,
        by_request=is_first and not is_middle,
        least_change=_WAIT / (2 if is_middle else 1) if is_first else 0.0,
    )


_MIDDLE = "median"
_GAP, _FIRST = "Time between two tokens of a request", "Time to the first token"
TPOT_P50 = _quantile_signal("tpot_p50_seconds", _GAP, _MIDDLE, "inter_token_latency")
TPOT_P99 = _quantile_signal("tpot_p99_seconds", _GAP, "99th percentile", "inter_token_latency")
TTFT_P50 = _quantile_signal("ttft_p50_seconds", _FIRST, _MIDDLE, "time_to_first_token")
TTFT_P99 = _quantile_signal("ttft_p99_seconds", _FIRST, "99th percentile", "time_to_first_token")
QUEUE_P99 = Signal(
    "queue_p99_seconds",
    Kind.GAUGE,
    Scope.RANK,
    "99th percentile of the time requests waited for their first step, over those that finished in the trailing 60 s; "
    "a preempted request's second wait is not in it. Above the top bucket it shows that bucket's bound.",
    Confidence.MEASURED,
    "rise of the engine's histogram, interpolated as PromQL does",
    ("queue_time",),
    window_seconds=QUANTILE_SECONDS,
    by_request=True,
    least_change=_WAIT,
)
SATURATED = Signal(
    "quantile_saturated",
    Kind.GAUGE,
    Scope.RANK,
    "1 when the quantile named by `of` lies above the engine's top bucket, so that its value is a floor.",
    Confidence.MEASURED,
    "the quantile fell into the +Inf bucket",
    ("inter_token_latency", "time_to_first_token", "queue_time"),
    labels=("of",),
    window_seconds=QUANTILE_SECONDS,
    source="vLLM to 0.8.3 ends its token buckets at 2.5 s, its first-token buckets at 10 s",
    is_state=True,
)
SLO_EVENTS = Signal(
    "slo_events_total",
    Kind.COUNTER,
    Scope.ENGINE,
    "Events that met (good=true) or missed (good=false) an objective: slo=ttft a first token, slo=tpot a request's "
    "mean time per token (a single gap where the engine has no such histogram). A client that left is a miss of both.",
    Confidence.ESTIMATE,
    "rises of the engine's histogram, cut at the largest real bucket bound within the objective, plus client aborts",
    ("time_to_first_token", "request_time_per_output_token", "inter_token_latency", "http_ok_total"),
    labels=("slo", "good"),
    misses_between_reads=True,
    by_request=True,
)

Read = Callable[[RankSample], Histogram | None]


def _first_token(sample: RankSample) -> Histogram | None:
    return sample.time_to_first_token


def _gap(sample: RankSample) -> Histogram | None:
    return sample.inter_token_latency


def _queue(sample: RankSample) -> Histogram | None:
    return sample.queue_time


QUANTILES: tuple[tuple[Signal, Read, float], ...] = (
    (TPOT_P50, _gap, 0.5),
    (TPOT_P99, _gap, 0.99),
    (TTFT_P50, _first_token, 0.5),
    (TTFT_P99, _first_token, 0.99),
    (QUEUE_P99, _queue, 0.99),
)


def _derive(window: Window[RankSample], _facts: EngineFacts) -> Iterator[Point]:
    interval = _token_interval(window)
    if interval is not None:
        yield Point(TOKEN_INTERVAL, (), interval)
    reads: tuple[Read, ...] = (_gap, _first_token, _queue)
    recent = {read: window.observed(read, QUANTILE_SECONDS) for read in reads}
    for signal, read, q in QUANTILES:
        delta = recent[read]
        found = delta.observed.quantile(q) if delta is not None else None
        if found is not None:
            value, saturated = found
            yield Point(signal, (), value)
            yield Point(SATURATED, (signal.name.removesuffix("_seconds"),), float(saturated))


def _token_interval(window: Window[RankSample]) -> float | None:
    """The larger of what the gaps that ended tell and what open sequences had to wait for."""
    known = [mean for mean in (_gap_by_histogram(window), _gap_by_sequences(window)) if mean is not None]
    return max(known) if known else None


def _gap_by_histogram(window: Window[RankSample]) -> float | None:
    """Mean gap that ended: exact, but a sequence that stands still is not in it before it goes on."""
    ended = window.observed(_gap, INTERVAL_SECONDS)
    return ended.observed.mean if ended is not None else None


def _gap_by_sequences(window: Window[RankSample]) -> float | None:
    """Sequence seconds over tokens (Little's law): sees who stands still at once."""
    sequence_seconds = tokens = 0.0
    last: RankSample | None = None
    holds: float | None = None
    for before, after in window.intervals(INTERVAL_SECONDS):
        then, now = before.tokens_so_far, after.tokens_so_far
        # where one interval ends the next begins
        held = holds if before is last else _open_sequences(before)
        last, holds = after, _open_sequences(after)
        if then is None or now is None or held is None or holds is None or now < then:
            continue
        sequence_seconds += (held + holds) / 2 * (after.at - before.at)
        tokens += now - then
    if tokens <= 0:
        return None
    # time before a first token is no gap between tokens
    prefill = window.observed(lambda sample: sample.prefill_time, INTERVAL_SECONDS)
    in_prefill = prefill.observed.total or 0.0 if prefill is not None else 0.0
    # all of it was prefill: no sequence waited for a second token
    return (sequence_seconds - in_prefill) / tokens if sequence_seconds > in_prefill else None


def _open_sequences(sample: RankSample) -> float | None:
    """Sequences whose client waits for a next token: running, swapped, or begun and waiting again."""
    if sample.running is None or not sample.gauges_are_fresh:
        return None
    present = sample.running + (sample.swapped or 0.0)
    first = sample.first_tokens_so_far
    if first is None or sample.http_ok_total is None:
        return present
    if not counts_each(sample.http_ok_total, sample.finished, sample.running):
        return present
    begun = first.count - sample.http_ok_total
    return min(max(present, begun), present + (sample.waiting or 0.0))


@dataclass(frozen=True, slots=True)
class SloState:
    """Good and bad events so far by objective, each rank as last seen, and what TPOT is judged by.

    ``per_request`` is None until a finished request has shown whether the engine tells its mean.
    """

    counts: tuple[tuple[str, float, float], ...] = ()
    ranks: Mapping[tuple[str, str], RankSample] = field(default_factory=dict)
    aborts: AbortState = AbortState()
    per_request: bool | None = None


def _slo(window: Window[EngineSample], facts: EngineFacts, state: SloState) -> tuple[SloState, list[Point]]:
    now = window.newest
    aborts = fed_aborts(window, state.aborts)
    left = aborts.total - state.aborts.total
    per_request = None if window.restarted() else state.per_request
    if per_request is None:
        per_request = _tells_requests(now)
    objectives: list[tuple[str, Read, float]] = [
        ("ttft", _first_token, facts.time_to_first_token_slo_seconds)
    ]
    if per_request is not None:
        read: Read = _per_request if per_request else _gap
        objectives.append(("tpot", read, facts.time_per_output_token_slo_seconds))
    counts = {name: (good, bad) for name, good, bad in state.counts}
    for name, read, objective in objectives:
        rises = [_cut(rank, state.ranks.get(key), read, objective) for key, rank in _by_key(now)]
        known = [rise for rise in rises if rise is not None]
        if known:
            good, bad = counts.get(name, (0.0, 0.0))
            counts[name] = (
                good + sum(rise[0] for rise in known),
                bad + sum(rise[1] for rise in known) + left,
            )
    points = [
        Point(SLO_EVENTS, (name, label), value)
        for name, (good, bad) in counts.items()
        for label, value in (("true", good), ("false", bad))
    ]
    told = tuple((name, good, bad) for name, (good, bad) in counts.items())
    return SloState(told, _remembered(state.ranks, now), aborts, per_request), points


def _remembered(
    ranks: Mapping[tuple[str, str], RankSample], now: EngineSample
) -> dict[tuple[str, str], RankSample]:
    """Each rank as last seen; beyond ``MOST_RANKS``, which only labels that keep changing can reach, the latest."""
    last = {**ranks, **dict(_by_key(now))}
    if len(last) <= MOST_RANKS:
        return last
    return dict(sorted(last.items(), key=lambda item: item[1].at)[-MOST_RANKS:])


def _by_key(sample: EngineSample) -> list[tuple[tuple[str, str], RankSample]]:
    return [((rank.rank, rank.model_name), rank) for rank in sample.ranks]


def _per_request(sample: RankSample) -> Histogram | None:
    return sample.request_time_per_output_token


def _tells_requests(sample: EngineSample) -> bool | None:
    """Whether the engine has a mean a request: series may show up only with the first that finished."""
    if any(rank.request_time_per_output_token is not None for rank in sample.ranks):
        return True
    finished = any(rank.end_to_end_latency and rank.end_to_end_latency.count > 0 for rank in sample.ranks)
    return False if finished else None


def _cut(
    now: RankSample, before: RankSample | None, read: Read, objective: float
) -> tuple[float, float] | None:
    """A rank's events since it was last seen: (within the objective, beyond it).

    None where it has no such histogram, or its first bucket is already wider than the objective.
    """
    histogram = read(now)
    if histogram is None or histogram.at_most(objective) is None:
        return None
    if before is None or now.restarted_since(before):
        return (0.0, 0.0)
    previous = read(before)
    # a histogram that shows up with its first observation counts from nothing
    rise = histogram.minus(previous) if previous is not None else histogram
    within = rise.at_most(objective) if rise is not None else None
    if rise is None or within is None:
        return (0.0, 0.0)
    return within[1], rise.count - within[1]


LATENCY = stateless(
    "latency", (TOKEN_INTERVAL, TPOT_P50, TPOT_P99, TTFT_P50, TTFT_P99, QUEUE_P99, SATURATED), _derive
)
SLO = Phenomenon("slo", (SLO_EVENTS,), _slo, SloState())
