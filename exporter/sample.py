"""Numbers at one instant, as a source read them. ``None`` means not known, never zero.

Times are seconds since the epoch on a clock that never jumps: a source stamps a sample with the
start of its request. Counters are the engine's own running totals, as read.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Protocol

ALL_RANKS = "all"
"""The name of the rank under which a front end tells what it doesn't tell apart by rank."""

MOST_RANKS = 256
"""Ranks remembered an engine; the largest data-parallel deployments have some dozens."""

STALE_AFTER_SECONDS = 15.0
"""How long numbers hold: real engines stall their own /metrics for up to 14 s under overload."""


class Sample(Protocol):
    """What a window keeps: anything with a time and a word on whether it follows a restart."""

    @property
    def at(self) -> float:
        """Seconds since the epoch."""

    @property
    def read_seconds(self) -> float:
        """How long after ``at`` the numbers can be of: a server that is held up counts on before it answers."""

    def restarted_since(self, earlier: Sample) -> bool | None:
        """Whether what was read started anew between ``earlier`` and this sample; None: can't be told."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """A cumulative histogram: ``counts[i]`` observations were at or below ``bounds[i]``.

    ``bounds`` rise strictly; the last is infinite where the engine exposes it. ``total`` is the sum
    of what was observed, in the unit of the bounds.
    """

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    total: float | None = None

    @property
    def count(self) -> float:
        """All observations."""
        return self.counts[-1] if self.counts else 0.0

    @property
    def mean(self) -> float | None:
        """Mean observation, or None without any."""
        if self.total is None or self.count <= 0:
            return None
        return self.total / self.count

    def minus(self, earlier: Histogram) -> Histogram | None:
        """What was observed since ``earlier``; None when the buckets differ, or a count or the sum fell.

        Buckets read while an engine was counting may not add up by one: each is taken to hold at
        least what lies below it.
        """
        if self.bounds != earlier.bounds:
            return None
        rises = [now - then for now, then in zip(self.counts, earlier.counts, strict=True)]
        if any(rise < 0 for rise in rises):
            return None
        total = None
        if self.total is not None and earlier.total is not None:
            total = self.total - earlier.total
            if total < 0:
                return None
        return Histogram(self.bounds, tuple(itertools.accumulate(rises, max)), total)

    def plus(self, other: Histogram) -> Histogram | None:
        """Both together; None when the buckets differ."""
        if self.bounds != other.bounds:
            return None
        counts = tuple(a + b for a, b in zip(self.counts, other.counts, strict=True))
        known = self.total is not None and other.total is not None
        return Histogram(self.bounds, counts, self.total + other.total if known else None)  # type: ignore[operator]

    def quantile(self, q: float) -> tuple[float, bool] | None:
        """The ``q`` quantile, interpolated inside its bucket as PromQL does, and whether it is saturated.

        Saturated: it fell past the last finite bound, which is then what is returned. None without
        observations or without a finite bound.
        """
        if self.count <= 0:
            return None
        wanted = q * self.count
        floor, before = 0.0, 0.0
        for bound, count in zip(self.bounds, self.counts, strict=True):
            if count >= wanted and count > before:
                if math.isinf(bound):
                    break
                return floor + (bound - floor) * (wanted - before) / (count - before), False
            if not math.isinf(bound):
                floor = bound
            before = count
        finite = [bound for bound in self.bounds if not math.isinf(bound)]
        return (finite[-1], True) if finite else None

    def at_most(self, bound: float) -> tuple[float, float] | None:
        """``(real bound, count)``: what was observed at or below the largest real bound up to ``bound``.

        None when even the first bucket is wider.
        """
        found = None
        for edge, count in zip(self.bounds, self.counts, strict=True):
            if edge > bound:
                break
            found = (edge, count)
        return found


@dataclass(frozen=True, slots=True)
class RankSample:
    """One data-parallel rank of an engine. Field names are the house's; a dialect fills them.

    ``blocks`` are usable KV blocks of this rank: the null block that vLLM V1 keeps is taken off and
    a capacity that an engine repeats as the sum over its ranks is divided. ``pool_blocks`` are those that
    ``kv_pool_bytes`` pays for, the null block included. ``block_group_tokens``
    holds the block size of each KV group where it is known (one group: the block size alone).
    ``external_queries_total`` counts tokens looked up in a tier beyond the GPU (a KV connector), and
    ``http_ok_total`` is the front end's (see ``EngineSample``), set where it serves this rank alone.
    ``kv_capacity_tokens`` is what the usable blocks hold as the engine reckons it, all KV groups in
    (vLLM 0.24 and later). ``prefix_hit_ratio`` is the engine's own where it counts no lookups (V0).
    ``swap_mode`` says what the tier below the GPU is: ``swap``, a pool for preempted sequences (vLLM
    V0, which may still prefer to recompute), ``offload``, a cache behind a connector; None: none told.
    ``generation`` is the engine's, in the dialect's words (vLLM: ``v0``, ``v1``).

    Engines differ in what they tell of a request that is still under way. ``told_at_end`` names fields
    of this class that move only when a request ends, or later than it happens, or that the engine never tells: their
    totals are right, but that they stand still means nothing. ``heartbeat`` is any number that changes with the
    engine's steps, for engines whose token counters stand still for that reason. ``gauges_hold_seconds`` is how long
    the engine may go on showing gauges of a moment that has passed; infinite where it does so until it has work again.
    ``paused`` are sequences put aside to make room, whose blocks were given back.
    """

    at: float
    rank: str
    model_name: str
    read_seconds: float = 0.0
    # sequences now
    running: float | None = None
    waiting: float | None = None
    swapped: float | None = None
    paused: float | None = None
    waiting_by_reason: tuple[tuple[str, float], ...] = ()
    # KV cache
    kv_usage_ratio: float | None = None
    kv_token_usage_ratio: float | None = None
    blocks: float | None = None
    pool_blocks: float | None = None
    block_tokens: float | None = None
    block_group_tokens: tuple[float, ...] = ()
    kv_pool_bytes: float | None = None
    kv_capacity_tokens: float | None = None
    # the tier below the GPU: V0's swap pool, or the offload of later engines
    swap_mode: str | None = None
    swap_tier_bytes: float | None = None
    swap_tier_blocks: float | None = None
    swap_tier_usage_ratio: float | None = None
    swap_in_bytes_total: float | None = None
    swap_out_bytes_total: float | None = None
    swap_in_blocks_total: float | None = None
    swap_out_blocks_total: float | None = None
    # work done, running totals
    preemptions_total: float | None = None
    prompt_tokens_total: float | None = None
    prompt_tokens_computed_total: float | None = None
    generation_tokens_total: float | None = None
    prefix_queries_total: float | None = None
    prefix_hits_total: float | None = None
    prefix_hit_ratio: float | None = None
    external_queries_total: float | None = None
    http_ok_total: float | None = None
    finished_total: tuple[tuple[str, float], ...] = ()
    # distributions since the engine started
    time_to_first_token: Histogram | None = None
    inter_token_latency: Histogram | None = None
    request_time_per_output_token: Histogram | None = None
    end_to_end_latency: Histogram | None = None
    queue_time: Histogram | None = None
    prefill_time: Histogram | None = None
    request_prompt_tokens: Histogram | None = None
    request_generation_tokens: Histogram | None = None
    request_preemptions: Histogram | None = None
    iteration_tokens: Histogram | None = None
    # the process behind this rank, where it says when it started
    started_at: float | None = None
    generation: str = ""
    # how far what is told keeps up with what happens
    told_at_end: frozenset[str] = frozenset()
    heartbeat: float | None = None
    gauges_hold_seconds: float = 0.0

    def restarted_since(self, earlier: Sample) -> bool | None:
        """Another start time, or, where the engine tells none, a token counter that fell."""
        if not isinstance(earlier, RankSample):
            return None
        if self.started_at is not None and earlier.started_at is not None:
            return _differ(self.started_at, earlier.started_at)
        fell = [
            _fell(self.generation_tokens_total, earlier.generation_tokens_total),
            _fell(self.prompt_tokens_total, earlier.prompt_tokens_total),
        ]
        return any(fell) if any(each is not None for each in fell) else None

    @property
    def tokens_so_far(self) -> float | None:
        """Generated tokens, those of requests still under way included; None where those aren't told."""
        return None if "generation_tokens_total" in self.told_at_end else self.generation_tokens_total

    @property
    def prompt_tokens_so_far(self) -> float | None:
        """Prompt tokens taken in, by requests still under way too; None where those aren't told."""
        return None if "prompt_tokens_total" in self.told_at_end else self.prompt_tokens_total

    @property
    def first_tokens_so_far(self) -> Histogram | None:
        """First tokens as they come; None where an engine tells of one only when its request ends."""
        return None if "time_to_first_token" in self.told_at_end else self.time_to_first_token

    @property
    def gauges_are_fresh(self) -> bool:
        """Whether gauges speak of the moment they were read."""
        return self.gauges_hold_seconds == 0

    @property
    def gauges_stand_when_idle(self) -> bool:
        """Whether an idle engine shows gauges of its last step, so that none of them says that it stands."""
        return math.isinf(self.gauges_hold_seconds)

    @property
    def waiting_for_capacity(self) -> float | None:
        """Sequences that wait for KV blocks or a place in the batch; all that wait, where none tells why."""
        if self.waiting_by_reason:
            return dict(self.waiting_by_reason).get("capacity", 0.0)
        return self.waiting

    @property
    def finished(self) -> float | None:
        """All requests the engine counts as finished, whatever the reason."""
        return sum([count for _, count in self.finished_total]) if self.finished_total else None


@dataclass(frozen=True, slots=True)
class EngineSample:
    """One read of one engine: what its front end says of itself, and its ranks.

    ``http_ok_total`` counts completion requests answered 2xx (an answer broken off by the client
    ends as 2xx too). ``aborted_total`` counts requests whose client left, where the engine does so
    itself. ``notes`` are oddities met while reading, by a fixed word each (``usage_above_1``,
    ``block_size_unknown``, ...): ``source_oddity`` shows them.
    """

    at: float
    engine: str
    kind: str
    ranks: tuple[RankSample, ...]
    read_seconds: float = 0.0
    generation: str = ""
    started_at: float | None = None
    http_ok_total: float | None = None
    aborted_total: float | None = None
    admission_rejections_total: tuple[tuple[str, float], ...] = ()
    config: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = field(default=())

    def restarted_since(self, earlier: Sample) -> bool | None:
        """Another start of the front end, or any rank that started anew."""
        if not isinstance(earlier, EngineSample):
            return None
        if self.started_at is not None and earlier.started_at is not None:
            return _differ(self.started_at, earlier.started_at)
        before = {(rank.rank, rank.model_name): rank for rank in earlier.ranks}
        if self.ranks and before and not any((rank.rank, rank.model_name) in before for rank in self.ranks):
            return True  # another model serves at the same URL
        told = [
            rank.restarted_since(before[key])
            for rank in self.ranks
            if (key := (rank.rank, rank.model_name)) in before
        ]
        return any(told) if any(each is not None for each in told) else None


def _differ(one: float, other: float) -> bool:
    """Whether two start times are of two processes. One that goes back is a replica behind the same URL."""
    return abs(one - other) > 1.0


def _fell(now: float | None, then: float | None) -> bool | None:
    return None if now is None or then is None else now < then
