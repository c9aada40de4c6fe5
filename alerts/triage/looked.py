"""What is found that no tree says: by counters over the look, by what is absent, by the sidecar's word."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.alert import Alert
from alerts.conditions import Reading
from alerts.pack.engine import ENGINE_DOWN, ENGINE_RESTARTING, SIGNAL_ABSENT
from alerts.pack.gateway import GATEWAY_BREAKER_OPEN, GATEWAY_REJECTING, GATEWAY_TOO_TIGHT, RETRY_STORM
from alerts.pack.latency import HEAD_OF_LINE_BLOCKING, PREFIX_HITS_COLLAPSED
from alerts.pack.swap import KV_SEQUENCES_SWAPPED
from alerts.pack.watching import SIDECAR_BLIND, SIDECAR_DOWN
from alerts.thresholds import Thresholds
from alerts.triage.findings import Certainty, Evidence, Finding, certainty
from alerts.triage.known import Known, Origin, Told, Witness
from alerts.triage.look import Look
from exporter.derive.amplification import AMPLIFICATION
from exporter.derive.blocks import KV_USAGE
from exporter.derive.gateway import REQUESTS
from exporter.derive.latency import TPOT_P50, TPOT_P99
from exporter.derive.phenomenon import TIME_PER_OUTPUT_TOKEN_SLO_SECONDS
from exporter.derive.preemption import PREEMPTION_RATE
from exporter.derive.prefill import PREFIX_HITS
from exporter.derive.ranks import RESTARTS
from exporter.derive.swap import SWAPPED
from exporter.derive.traffic import SEQUENCES
from exporter.dialects.registry import of_kind
from exporter.gateway_sample import Outcome
from exporter.sample import RankSample
from exporter.signal import PEAK_SUFFIX, Confidence
from exporter.source_signals import SOURCE_AGE, SOURCE_UP

ENOUGH_ENDED = 5.0
"""Requests that ended within the look; of fewer no share is taken."""
ENOUGH_TOKENS = 500.0
"""Prompt tokens looked up within the look; of fewer no share of hits is taken."""
YOUNG_SECONDS = 1800.0
TAIL_SECONDS, TAIL_RATIO = 2 * TIME_PER_OUTPUT_TOKEN_SLO_SECONDS, 10.0
"""Twice what users may expect of a token, and of the median: of twenty scenarios of the drill those with whole prefills
reach 17 times, contention, swapping apart, 7."""
STALLED_SECONDS = 60.0
"""Overloaded engines have been seen to hold their page up for 14 s: one that is silent for longer is down."""
_GAVE_UP = (Outcome.CLIENT_LEFT, Outcome.TIMEOUT)
_TURNED_AWAY = (Outcome.REJECTED, Outcome.OVERFLOW)


def looked(look: Look, thresholds: Thresholds) -> Iterator[Finding]:
    """All of them."""
    subjects = look.subjects()
    yield from _of_sidecar(look)
    yield from _absent(look)
    for known in subjects.ranks:
        yield from _restarting(look, known, thresholds)
        yield from _collapsed(look, known, thresholds)
        yield from _swapped_lately(known, thresholds)
        yield from _blocked(known, thresholds)
    readings = (Reading(KV_USAGE), Reading(KV_USAGE, peak=True))
    usages = [known.told(each) for known in subjects.ranks for each in readings]
    fullest = max((usage for usage in usages if usage is not None), key=_value, default=None)
    for known in subjects.gateways:
        yield from _gateway(known, fullest, thresholds)


def _value(told: Told) -> float:
    return told.value


def _measured(value: float, seconds: float = 0.0, origin: Origin = Origin.LOOK) -> Told:
    return Told(value, Confidence.MEASURED, origin, seconds)


def _found(alert: Alert, evidence: tuple[Evidence, ...], says: str = "") -> Finding:
    return Finding(alert, certainty(evidence), evidence, says)


def _of_sidecar(look: Look) -> Iterator[Finding]:
    """The engine down, and other sources that can't be read, as the sidecar has it."""
    beside = look.beside
    if beside is not None and beside.failed:
        yield Finding(SIDECAR_DOWN, Certainty.CERTAIN, (), beside.problem)
    witness = look.sidecar
    if witness is None:
        return
    for row in witness.last.of(SOURCE_UP):
        if row.value:
            continue
        source = row.labels[0]
        evidence = (
            Evidence(
                f'{SOURCE_UP.name}{{source="{source}"}}', _measured(0.0, origin=Origin.SIDECAR), "==", 0.0
            ),
        )
        if source == witness.engine:
            if look.failure:
                yield _down(look, witness, evidence)
        elif source not in look.other_engines:  # a neighbour that is down is no blindness
            yield _found(SIDECAR_BLIND, evidence)


def _down(look: Look, witness: Witness, evidence: tuple[Evidence, ...]) -> Finding:
    ages = [row.value for row in witness.last.of(SOURCE_AGE) if row.labels[0] == witness.engine]
    if ages and ages[0] < STALLED_SECONDS:
        told = Evidence(SOURCE_AGE.name, _measured(ages[0], origin=Origin.SIDECAR), ">=", STALLED_SECONDS)
        says = f"{look.failure}; overload holds pages up for 14 s"
        return Finding(
            ENGINE_DOWN, Certainty.POSSIBLE, (*evidence, told), says, round(STALLED_SECONDS - ages[0])
        )
    return _found(ENGINE_DOWN, evidence, look.failure)


def _absent(look: Look) -> Iterator[Finding]:
    """An engine that tells who runs and, against its kind, not how full its pool is."""
    sample = look.newest
    if sample is None or not sample.ranks or "kv_usage_ratio" in dict(of_kind(sample.kind).absences):
        return
    if all(rank.kv_usage_ratio is None and rank.running is not None for rank in sample.ranks):
        title = f"{of_kind(sample.kind).title} {sample.generation}".rstrip()
        says = f"{title} has it under a name that this release knows; this page has none of them"
        running = _measured(sum(rank.running or 0.0 for rank in sample.ranks))
        yield Finding(
            SIGNAL_ABSENT,
            Certainty.LIKELY,
            (Evidence(f'{SEQUENCES.name}{{state="running"}}', running),),
            says,
        )


def _restarting(look: Look, known: Known, thresholds: Thresholds) -> Iterator[Finding]:
    """Often begun anew under the sidecar's eyes, and young again."""
    restarts, sample = known.total(RESTARTS), look.newest
    if restarts is None or restarts < thresholds.engine_restarts or sample is None:
        return
    age = None if sample.started_at is None else sample.at - sample.started_at
    if age is not None and age < YOUNG_SECONDS:
        told = _measured(restarts, origin=Origin.SIDECAR)
        evidence = Evidence(RESTARTS.name, told, ">=", thresholds.engine_restarts)
        yield Finding(ENGINE_RESTARTING, Certainty.LIKELY, (evidence,), f"it was started {age:.0f} s ago")


def _collapsed(look: Look, known: Known, thresholds: Thresholds) -> Iterator[Finding]:
    """Hits that are low now and, by all lookups since the engine started, were twice the line."""
    sample, low = look.sample_of(known), thresholds.prefix_hit_ratio
    if sample is None or not sample.prefix_queries_total or sample.prefix_hits_total is None:
        return
    ever = sample.prefix_hits_total / sample.prefix_queries_total
    told = known.told_of(PREFIX_HITS) or _hits_within(look, sample)
    if told is not None and told.value < low and ever > 2 * low:
        evidence = (
            Evidence(PREFIX_HITS.name, told, "<", low),
            Evidence("prefix hits since the start", _measured(ever), ">", 2 * low),
        )
        yield _found(PREFIX_HITS_COLLAPSED, evidence)


def _hits_within(look: Look, now: RankSample) -> Told | None:
    first = next(
        (
            each
            for each in look.samples[0].ranks
            if (each.rank, each.model_name) == (now.rank, now.model_name)
        ),
        None,
    )
    if first is None or first.prefix_queries_total is None or first.prefix_hits_total is None:
        return None
    asked = (now.prefix_queries_total or 0.0) - first.prefix_queries_total
    hit = (now.prefix_hits_total or 0.0) - first.prefix_hits_total
    if asked < ENOUGH_TOKENS or hit < 0:
        return None
    return Told(hit / asked, Confidence.MEASURED, Origin.LOOK, now.at - first.at, short=True)


def _swapped_lately(known: Known, thresholds: Thresholds) -> Iterator[Finding]:
    """None now, and some within the minute: the invariant is that there are none."""
    peak = known.told(Reading(SWAPPED, peak=True))
    if peak is not None and peak.value > thresholds.swapped_sequences:
        evidence = Evidence(SWAPPED.name + PEAK_SUFFIX, peak, ">", thresholds.swapped_sequences)
        yield _found(KV_SEQUENCES_SWAPPED, (evidence,))


def _blocked(known: Known, thresholds: Thresholds) -> Iterator[Finding]:
    """Gaps between tokens with a long tail and a median as ever, while nobody is thrown out: a prefill is in between.

    Sees stalls under 2 s, for which ``head_of_line_ratio`` is too coarse.
    """
    median, tail = known.told_of(TPOT_P50), known.told_of(TPOT_P99)
    if median is None or tail is None or (known.value(SWAPPED) or 0.0) > thresholds.swapped_sequences:
        return
    preempting = (known.value(PREEMPTION_RATE) or 0.0) > thresholds.preemptions_per_second
    if preempting or tail.value < TAIL_SECONDS or tail.value < TAIL_RATIO * median.value:
        return
    evidence = (
        Evidence(TPOT_P99.name, tail, ">=", TAIL_SECONDS),
        Evidence(TPOT_P50.name, median, "<=", tail.value / TAIL_RATIO),
    )
    yield Finding(
        HEAD_OF_LINE_BLOCKING, Certainty.LIKELY, evidence, "few tokens wait long, and most as long as ever"
    )


def _rises(known: Known) -> dict[str, float]:
    """How requests of clients ended within the look, by outcome."""
    rises = {outcome.value: known.rise(REQUESTS, outcome.value) for outcome in Outcome}
    return {name: rise.increase for name, rise in rises.items() if rise is not None}


def _totals(known: Known) -> dict[str, float]:
    """The same since the sidecar, or the look, began."""
    totals = {outcome.value: known.total(REQUESTS, outcome.value) for outcome in Outcome}
    return {name: total for name, total in totals.items() if total is not None}


def _amplified(known: Known) -> Told | None:
    """Attempts for each answer, over the minute that the signal takes, else over the look."""
    told = known.told_of(AMPLIFICATION)
    if told is not None:
        return told
    ended, rise = _rises(known), known.rise(REQUESTS)
    every = sum(ended.values()) - ended.get(Outcome.CLIENT_ERROR.value, 0.0)
    if rise is None or every < ENOUGH_ENDED:
        return None
    attempts = every / max(1.0, ended.get(Outcome.OK.value, 0.0))
    return Told(attempts, Confidence.MEASURED, Origin.LOOK, rise.seconds, short=True)


def _gateway(known: Known, fullest: Told | None, thresholds: Thresholds) -> Iterator[Finding]:
    """Attempts in vain: by those that gave up waiting, or by those that are turned away from engines with room.

    A gateway that turns some away while its engines are busy does what it is there for.
    """
    told, line = _amplified(known), thresholds.retry_amplification_ratio
    if told is None or told.value <= line:
        return
    ended = _rises(known)
    if not any(ended.get(each.value) for each in (*_GAVE_UP, *_TURNED_AWAY)):
        ended = _totals(known)
    gave_up, turned_away = (
        sum(ended.get(each.value, 0.0) for each in outcomes) for outcomes in (_GAVE_UP, _TURNED_AWAY)
    )
    amplified = Evidence(AMPLIFICATION.name, told, ">", line)
    if gave_up > turned_away:
        yield _found(RETRY_STORM, (amplified,))
    elif fullest is not None and fullest.value < thresholds.kv_usage_calm_ratio:
        broken = ended.get(Outcome.OVERFLOW.value, 0.0) > ended.get(Outcome.REJECTED.value, 0.0)
        usage = Evidence(KV_USAGE.name + PEAK_SUFFIX, fullest, "<", thresholds.kv_usage_calm_ratio)
        yield _found(GATEWAY_BREAKER_OPEN if broken else GATEWAY_TOO_TIGHT, (amplified, usage))
    elif fullest is not None and fullest.value >= thresholds.kv_usage_full_ratio:
        yield _found(GATEWAY_REJECTING, (amplified,))
