"""Orphans: sequences that an engine still works on though the gateway waits for them no more.

A client that left, or a timeout, ends a request at the gateway at once. Where something in between
doesn't pass that on, the engine goes on to the last token, and holds the KV blocks till then.

The two are read at different instants, and requests come and go in between. So what an engine has is
compared with the *most* that the gateway can have had in flight then, by its reads before and after, and
only what is above that in all reads of about a second counts. Both are read on the same ticks, so that before
and after are mostly one read.

What the engine frees within a second is no orphan. In a retry storm each read finds some of those that the
gateway has just given up, others each time; so of each later surplus all are taken off that were given up
since the first read. Be H(t) what engines hold, W(t) what the gateway waits for and G(s, t) what it gave up
from s to t: those given up before s and still held at t are at least H(t) - W(t) - G(s, t).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from exporter.derive.aborts import counts_each
from exporter.derive.phenomenon import EngineFacts, stateless
from exporter.gateway_join import GatewayJoin
from exporter.gateway_sample import GatewaySample
from exporter.sample import STALE_AFTER_SECONDS, EngineSample, RankSample
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import Window

HELD_SECONDS = 0.9
"""A surplus must stand at all reads of this time, two of them at least."""
SAME_INSTANT_SECONDS = 0.1
QUICK_SECONDS = 0.5
"""A read of an engine that takes longer waits for the gateway's next one to be compared."""
_STILL = 0.25
"""Reads so close, and in so short a time that fewer requests than this come or end in it, are of one instant.
Where any do, one more is reckoned with: two in that time at two reads in a row are a case in a thousand."""

ORPHANS = Signal(
    "orphan_sequences",
    Kind.GAUGE,
    Scope.GATEWAY,
    "Sequences that the engines behind the gateway hold and that it waits for no more. What comes to an engine past "
    "the gateway looks the same. Of several gateways before the same engines the first in settings bears the value.",
    Confidence.ESTIMATE,
    "running + waiting + swapped + paused of all its engines less the most that can have been in flight upstream then "
    "(LiteLLM: in flight at all), by the reads around, and less those given up since (where the gateway doesn't count "
    "these: all that ended since); the least of a second. Absent where an engine is stale or shows gauges of a moment "
    "ago (SGLang), where other backends stand behind the gateway, and where requests make several sequences each",
    (
        "running",
        "waiting",
        "swapped",
        "upstream_inflight",
        "inflight",
        "upstream_requests_total",
        "given_up_total",
        "backends",
    ),
    source="simulated; a real Envoy and vLLM with a proxy between that swallows disconnects",
)
ORPHAN_KV = Signal(
    "orphan_kv_ratio",
    Kind.GAUGE,
    Scope.GATEWAY,
    "Share of the engines' KV blocks that orphans hold.",
    Confidence.ESTIMATE,
    "KV usage of the engines x orphans / running sequences: an orphan is taken to hold as much as the mean one that "
    "runs, and to run: it came before those whose clients are still there, who wait if anybody does",
    ("running", "waiting", "swapped", "upstream_inflight", "inflight", "kv_usage_ratio", "blocks"),
)


def _derive(join: GatewayJoin, _facts: EngineFacts) -> Iterator[Point]:
    if not _alike(join):
        return
    orphans = orphan_sequences(join)
    if orphans is None:
        return
    yield Point(ORPHANS, (), orphans)
    newest = [window.newest for window in join.engines]
    usage = _usage(newest)
    running = sum(rank.running or 0.0 for sample in newest for rank in sample.ranks)
    if usage is not None:
        share = min(1.0, orphans / running) if running > 0 else 0.0
        yield Point(ORPHAN_KV, (), usage * share)


class _Surplus(NamedTuple):
    """What engines had in reads from ``begin`` to ``end``, the last begun ``at``, above the most waited for then."""

    begin: float
    end: float
    at: float
    sequences: float


def orphan_sequences(join: GatewayJoin) -> float | None:
    """The fewest that were given up before the trailing ``HELD_SECONDS`` and held all through it.

    None where reads are missing for it.
    """
    surpluses: list[_Surplus] = []
    for samples in zip(*(reversed(window.samples) for window in join.engines), strict=False):
        if join.engines[0].newest.at - max(sample.at for sample in samples) > STALE_AFTER_SECONDS:
            return None
        surplus = _surplus(samples, join.gateways)
        if surplus is None:
            if surpluses:
                return None
            continue  # the gateway has yet to be read after this
        if surpluses and surpluses[0].at - surplus.at >= HELD_SECONDS:
            return _fewest(surplus, surpluses, join.gateways)
        surpluses.append(surplus)
    return None


def _fewest(
    first: _Surplus, later: Sequence[_Surplus], gateways: Sequence[Window[GatewaySample]]
) -> float | None:
    found = first.sequences
    for surplus in later:
        given_up = [_given_up(window.samples, first.begin, surplus.end) for window in gateways]
        known = [count for count in given_up if count is not None]
        if len(known) < len(given_up):
            return None
        found = min(found, surplus.sequences - sum(known))
    return max(0.0, found)


def _surplus(samples: Sequence[EngineSample], gateways: Sequence[Window[GatewaySample]]) -> _Surplus | None:
    begin = min(sample.at for sample in samples)
    end = max(sample.at + sample.read_seconds for sample in samples)
    counts = [_inflight(sample) for sample in samples]
    several = len(samples) > 1
    waited_for = [_most_waited_for(window.samples, begin, end, several=several) for window in gateways]
    known = [count for count in (*counts, *waited_for) if count is not None]
    if len(known) < len(counts) + len(waited_for):
        return None
    latest = max(sample.at for sample in samples)
    return _Surplus(begin, end, latest, sum(known[: len(counts)]) - sum(known[len(counts) :]))


def _given_up(samples: Sequence[GatewaySample], begin: float, end: float) -> float | None:
    """What the gateway gave up from ``begin`` to ``end``, by the reads around; None where counters began anew.

    Nothing, where a gateway has no counters at all. What it gives up after its newest read is in that read's in-flight.
    """
    close = _close_seconds(samples)
    before = next((each for each in reversed(samples) if each.at <= begin + close), None)
    after = next((each for each in samples if each.at >= end - close), samples[-1])
    if before is None:
        return None
    then, now = _let_go(before), _let_go(after)
    if then is None or now is None:
        return 0.0
    return now - then if now >= then else None


def _served(before: GatewaySample, after: GatewaySample) -> float:
    """How many requests ended between two reads that the gateway had not given up."""
    ended = [_all_ended(sample) for sample in (before, after)]
    if ended[0] is None or ended[1] is None:
        return 0.0
    given_up = (after.given_up_total or 0.0) - (before.given_up_total or 0.0)
    return max(0.0, ended[1] - ended[0] - given_up)


def _let_go(sample: GatewaySample) -> float | None:
    """A running total of what the gateway waits for no more; where it doesn't tell, of all that ended."""
    return _all_ended(sample) if sample.given_up_total is None else sample.given_up_total


def _all_ended(sample: GatewaySample) -> float | None:
    if sample.upstream_requests_total is None or sample.upstream_inflight is None:
        return sample.ended
    return sample.upstream_requests_total - sample.upstream_inflight


def _most_waited_for(
    samples: Sequence[GatewaySample], begin: float, end: float, *, several: bool
) -> float | None:
    """The most a gateway can have had in flight at any instant from ``begin`` to ``end``.

    Between two reads it can't have had more than at either of them and what came, or ended, in between. Of
    ``several`` engines each tells of an instant of its own, and what ended on one may have come to another since:
    then all that came in between counts, not that of one interval.
    """
    close = _close_seconds(samples)
    if not samples:
        return None
    most, highest, moved, later = 0.0, 0.0, 0.0, None
    if samples[-1].at < end - close:  # not yet read after
        if end - begin > QUICK_SECONDS or samples[-1].at < begin - close:
            return None
        # as many may have come since as came in the second before
        since = _moved(*samples[-2:]) if len(samples) > 1 else None
        return None if since is None else _plus(_waited_for(samples[-1]), since)
    for place in range(len(samples) - 1, -1, -1):
        now = samples[place]
        if place and samples[place - 1].at >= end - close:
            continue  # there is a read after that is nearer
        waited_for = _waited_for(now)
        between = 0.0 if later is None else _moved(now, later)
        if waited_for is None or between is None:
            return None
        highest, moved = max(highest, waited_for), moved + between
        most = max(most, waited_for + between)
        if later is not None:
            most = max(most, (_waited_for(later) or 0.0) + between)
        if now.at <= begin + close:
            most = highest + moved if several else most
            return most + _astir(samples, place) if later is None else most
        later = now
    return None


def _close_seconds(samples: Sequence[GatewaySample]) -> float:
    """How far apart two reads may be that count as one instant; less where many requests come and go."""
    if len(samples) < 2:  # noqa: PLR2004 -- a rate needs two
        return SAME_INSTANT_SECONDS
    before, now = samples[-2:]
    moved = (_moved(before, now) or 0.0) + _served(before, now)
    return min(SAME_INSTANT_SECONDS, _STILL * (now.at - before.at) / moved) if moved else SAME_INSTANT_SECONDS


def _astir(samples: Sequence[GatewaySample], place: int) -> float:
    """1 where requests come or end around a read that stands for both: one may have done so meanwhile."""
    around = itertools.pairwise(samples[max(0, place - 1) : place + 2])
    return float(any(_moved(before, after) or _served(before, after) for before, after in around))


def _plus(count: float | None, moved: float) -> float | None:
    return None if count is None else count + moved


def _waited_for(sample: GatewaySample) -> float | None:
    return sample.inflight if sample.upstream_inflight is None else sample.upstream_inflight


def _moved(before: GatewaySample, after: GatewaySample) -> float | None:
    """How many requests were sent on, or ended, between two reads; None where no counter tells, or it began anew."""
    counts = (before.upstream_requests_total, after.upstream_requests_total)
    if None in counts:
        counts = (before.ended, after.ended)
    then, now = counts
    return now - then if then is not None and now is not None and now >= then else None


def _alike(join: GatewayJoin) -> bool:
    """Whether what the gateways count are the requests of these engines, each one sequence."""
    engines = len(join.engines)
    for window in join.gateways:
        backends = window.newest.backends
        # fewer endpoints than engines: a service's one address, or engines that aren't behind it at all
        if backends is not None and (backends > engines or (backends < engines and not join.told)):
            return False
    return all(_one_sequence_each(window.newest) for window in join.engines)


def _one_sequence_each(sample: EngineSample) -> bool:
    finished = [rank.finished for rank in sample.ranks]
    known = [count for count in finished if count is not None]
    if sample.http_ok_total is None or len(known) < len(finished):
        return True  # nothing speaks against it
    running = sum(rank.running or 0.0 for rank in sample.ranks)
    return counts_each(sample.http_ok_total, sum(known), running)


def _inflight(sample: EngineSample) -> float | None:
    counts = [_of_rank(rank) for rank in sample.ranks]
    known = [count for count in counts if count is not None]
    return sum(known) if counts and len(known) == len(counts) else None


def _of_rank(rank: RankSample) -> float | None:
    if rank.running is None or rank.gauges_hold_seconds > 0:
        return None  # a gauge of an earlier moment can't be set beside anything
    return rank.running + (rank.waiting or 0.0) + (rank.swapped or 0.0) + (rank.paused or 0.0)


def _usage(samples: Sequence[EngineSample]) -> float | None:
    """KV blocks in use over all of them; the mean usage where their numbers aren't known."""
    ranks = [rank for sample in samples for rank in sample.ranks]
    usages = [rank.kv_usage_ratio for rank in ranks]
    known = [usage for usage in usages if usage is not None]
    if not known or len(known) < len(usages):
        return None
    blocks = [rank.blocks or 0.0 for rank in ranks]
    if all(blocks):
        return sum(usage * count for usage, count in zip(known, blocks, strict=True)) / sum(blocks)
    return sum(known) / len(known)


ORPHANS_PHENOMENON = stateless("orphans", (ORPHANS, ORPHAN_KV), _derive)
