"""How long clients wait: for a first token, for the next, and against the service's objectives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from exporter.derive.aborts import AbortState, fed_aborts
from exporter.derive.phenomenon import EngineFacts, Phenomenon, stateless
from exporter.sample import EngineSample, Histogram, RankSample
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import Window

QUANTILE_SECONDS = 60.0
INTERVAL_SECONDS = 30.0

TOKEN_INTERVAL = Signal(
    "token_interval_seconds",
    Kind.GAUGE,
    Scope.RANK,
    "Mean time between two tokens of one sequence over the trailing 30 s, stopped sequences included. Absent when no "
    "token came.",
    Confidence.MEASURED,
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
)
_QUANTILE_HELP = (
    "{what}, {which} over the trailing 60 s, interpolated in the engine's own buckets. Above the top bucket it shows "
    "that bucket's bound and quantile_saturated is 1."
)


def _quantile_signal(name: str, what: str, which: str, field: str) -> Signal:
    return Signal(
        name,
        Kind.GAUGE,
        Scope.RANK,
        _QUANTILE_HELP.format(what=what, which=which),
        Confidence.MEASURED,
        "rise of the engine's histogram, interpolated as PromQL does",
        (field,),
        window_seconds=QUANTILE_SECONDS,
    )


_GAP, _FIRST = "Time between two tokens of a request", "Time to the first token"
TPOT_P50 = _quantile_signal("tpot_p50_seconds", _GAP, "median", "inter_token_latency")
TPOT_P99 = _quantile_signal("tpot_p99_seconds", _GAP, "99th percentile", "inter_token_latency")
TTFT_P50 = _quantile_signal("ttft_p50_seconds", _FIRST, "median", "time_to_first_token")
TTFT_P99 = _quantile_signal("ttft_p99_seconds", _FIRST, "99th percentile", "time_to_first_token")
SATURATED = Signal(
    "quantile_saturated",
    Kind.GAUGE,
    Scope.RANK,
    "1 when the quantile named by `of` lies above the engine's top bucket, so that its value is a floor.",
    Confidence.MEASURED,
    "the quantile fell into the +Inf bucket",
    ("inter_token_latency", "time_to_first_token"),
    labels=("of",),
    window_seconds=QUANTILE_SECONDS,
    source="vLLM to 0.8.3 ends its token buckets at 2.5 s, its first-token buckets at 10 s",
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
)

Read = Callable[[RankSample], Histogram | None]


def _first_token(sample: RankSample) -> Histogram | None:
    return sample.time_to_first_token


def _gap(sample: RankSample) -> Histogram | None:
    return sample.inter_token_latency


QUANTILES: tuple[tuple[Signal, Read, float], ...] = (
    (TPOT_P50, _gap, 0.5),
    (TPOT_P99, _gap, 0.99),
    (TTFT_P50, _first_token, 0.5),
    (TTFT_P99, _first_token, 0.99),
)


def _derive(window: Window[RankSample], _facts: EngineFacts) -> Iterator[Point]:
    interval = _token_interval(window)
    if interval is not None:
        yield Point(TOKEN_INTERVAL, (), interval)
    reads: tuple[Read, ...] = (_gap, _first_token)
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
    for before, after in window.intervals(INTERVAL_SECONDS):
        then, now = before.generation_tokens_total, after.generation_tokens_total
        held, holds = _open_sequences(before), _open_sequences(after)
        if then is None or now is None or held is None or holds is None or now < then:
            continue
        sequence_seconds += (held + holds) / 2 * (after.at - before.at)
        tokens += now - then
    if tokens <= 0:
        return None
    # time before a first token is no gap between tokens
    prefill = window.observed(lambda sample: sample.prefill_time, INTERVAL_SECONDS)
    in_prefill = prefill.observed.total or 0.0 if prefill is not None else 0.0
    return max(0.0, sequence_seconds - in_prefill) / tokens


def _open_sequences(sample: RankSample) -> float | None:
    """Sequences whose client waits for a next token: running, swapped, or begun and waiting again."""
    if sample.running is None:
        return None
    present = sample.running + (sample.swapped or 0.0)
    if sample.time_to_first_token is None or sample.http_ok_total is None:
        return present
    begun = sample.time_to_first_token.count - sample.http_ok_total
    return min(max(present, begun), present + (sample.waiting or 0.0))


@dataclass(frozen=True, slots=True)
class SloState:
    """Good and bad events so far, by objective, and the sample's histograms before."""

    counts: tuple[tuple[str, float, float], ...] = ()
    aborts: AbortState = AbortState()


def _slo(window: Window[EngineSample], facts: EngineFacts, state: SloState) -> tuple[SloState, list[Point]]:
    aborts = fed_aborts(window, state.aborts)
    left = aborts.total - state.aborts.total
    objectives: tuple[tuple[str, Read, float], ...] = (
        ("ttft", _first_token, facts.time_to_first_token_slo_seconds),
        ("tpot", _per_token(window.newest), facts.time_per_output_token_slo_seconds),
    )
    before = {name: (good, bad) for name, good, bad in state.counts}
    counts = []
    for name, read, objective in objectives:
        cut = _cut(window, read, objective)
        if cut is None and name not in before:
            continue
        good, bad = before.get(name, (0.0, 0.0))
        rise_good, rise_bad = cut or (0.0, 0.0)
        counts.append((name, good + rise_good, bad + rise_bad + left))
    points = [
        Point(SLO_EVENTS, (name, label), value)
        for name, good, bad in counts
        for label, value in (("true", good), ("false", bad))
    ]
    return SloState(tuple(counts), aborts), points


def _per_token(sample: EngineSample) -> Read:
    if any(rank.request_time_per_output_token is not None for rank in sample.ranks):
        return lambda rank: rank.request_time_per_output_token
    return _gap


def _cut(window: Window[EngineSample], read: Read, objective: float) -> tuple[float, float] | None:
    """Events since the sample before, over all ranks: (within the objective, beyond it).

    None where no rank has the histogram or its first bucket is already wider than the objective.
    """
    now = window.newest
    earlier = window.samples[-2] if len(window.samples) > 1 and not window.restarted() else None
    then = {(rank.rank, rank.model_name): read(rank) for rank in earlier.ranks} if earlier else {}
    good = bad = 0.0
    known = False
    for rank in now.ranks:
        histogram = read(rank)
        if histogram is None or histogram.at_most(objective) is None:
            continue
        known = True
        previous = then.get((rank.rank, rank.model_name))
        rise = histogram.minus(previous) if previous is not None else None
        within = rise.at_most(objective) if rise is not None else None
        if rise is not None and within is not None:
            good += within[1]
            bad += rise.count - within[1]
    return (good, bad) if known else None


LATENCY = stateless("latency", (TOKEN_INTERVAL, TPOT_P50, TPOT_P99, TTFT_P50, TTFT_P99, SATURATED), _derive)
SLO = Phenomenon("slo", (SLO_EVENTS,), _slo, SloState())
