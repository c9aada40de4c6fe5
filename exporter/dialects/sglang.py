"""Reads SGLang's own metrics (``--enable-metrics``).

Read at sgl-project/sglang, 0.4.9, 0.5.10 and its main branch of autumn 2026. Traps:

- Schedulers label what they tell with tp_rank, pp_rank and moe_ep_rank and all repeat the same requests
  (``--enable-metrics-for-all-schedulers``): the highest counts. ``dp_rank`` tells engines with a cache each apart.
  With ``priority`` the total stands beside its parts, under an empty label: again the highest.
- The front end tells no rank. Where there are several, what it tells stands under the rank ``all``.
- Gauges are refreshed every 40 decode steps, or with a prefill; after work has ended up to 30 s later.
- ``token_usage`` is the fullest of a hybrid model's pools; ``num_paused_reqs`` are those that wait for new weights.
- ``num_used_tokens`` less ``decode_sum_seq_lens`` isn't what tails waste: a shared prefix is in the one once and in the
  other for each sequence, and a prefill renews the one alone. Nothing says when: ``cache_hit_rate`` is the newest
  batch's, so 0 after each decode step that is reported.
- Evicted and loaded tokens are counted by every process and added up without a label: bytes alone are read.
- Through OpenMetrics the prefix reads ``sglang_``; under Ray ``ray_sglang_``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from exporter.dialects.cells import (
    NAMES_HALF_THERE,
    Cells,
    Facts,
    Slot,
    facts_of,
    gathered,
    in_order,
    one,
    read_as,
    share,
    slot_of,
    told_by,
    total_of,
)
from exporter.dialects.sglang_names import (
    ABORTED,
    ABSENCES,
    CACHED,
    CAPACITY,
    DEFERRED,
    FINISHED,
    FULL_USAGE,
    HELD_TOKENS,
    HOST_TOTAL,
    HOST_USED,
    OF_A_RANK,
    OF_THE_FRONT,
    OTHER_POOLS,
    PAGE_SIZE,
    PAGE_SIZE_INFO,
    PAGES,
    PREFILL,
    QUEUED,
    REALTIME,
    USED_TOKENS,
)
from exporter.exposition import Series
from exporter.sample import ALL_RANKS, EngineSample, RankSample

GAUGES_HOLD_SECONDS = 30.0
"""Idle schedulers refresh their gauges this late; only the newest do it at once."""
DEFAULT_RANK = "0"


class Owner(NamedTuple):
    """Whose a series is: a model on one data-parallel rank, or, without a rank, of the front end."""

    model_name: str
    rank: str | None


class SglangDialect:
    """SGLang from 0.4.9: one rank a ``dp_rank`` (``0`` where there is none), and ``all`` beside several."""

    kind = "sglang"
    title = "SGLang"
    absences = ABSENCES

    def recognises(self, names: Collection[str]) -> bool:
        """Whether any of the names is one we read under SGLang's prefix."""
        return any(OF_A_RANK.spellings(name) or OF_THE_FRONT.spellings(name) for name in names)

    def interpret(self, series: Series) -> Slot | None:
        """What one series means; None for the many we have no use for."""
        found = read_as(OF_A_RANK, series)
        if found is not None:
            name, detail, labels = found
            owner = Owner(labels.get("model_name", ""), labels.get("dp_rank") or DEFAULT_RANK)
            return Slot(owner, name, detail, highest=True)
        found = read_as(OF_THE_FRONT, series)
        if found is None:
            return None
        name, detail, labels = found
        return slot_of(Owner(labels.get("model_name", ""), None), name, detail, labels)

    def sample(
        self, readings: Sequence[tuple[Slot, float]], *, engine: str, at: float, read_seconds: float
    ) -> EngineSample:
        """One read. No reading costs more than its own field: what can't be is left out and noted."""
        notes: set[str] = set()
        tables = gathered(readings, notes)
        by_model: dict[str, list[str]] = {}
        for owner in tables:
            by_model.setdefault(owner.model_name, [])
            if owner.rank is not None:
                by_model[owner.model_name].append(owner.rank)
        # caches don't say whose model they serve: where there is one, its
        nameless = Owner("", None)
        if "" in by_model and not by_model[""] and len(by_model) == 2:  # noqa: PLR2004 -- it and one more
            del by_model[""]
            model = next(iter(by_model))
            for name, cells in tables[nameless].items():
                tables[Owner(model, None)].setdefault(name, cells)
        ranks: list[RankSample] = []
        aborted = None
        for model, names in sorted(by_model.items()):
            front: Cells = tables.get(Owner(model, None), {})
            aborted = total_of(aborted, one(front, ABORTED))
            ranks.extend(
                _ranks(model, {name: tables[Owner(model, name)] for name in names}, front, at, notes)
            )
        return EngineSample(
            at,
            engine,
            self.kind,
            tuple(ranks),
            read_seconds=read_seconds,
            aborted_total=aborted,
            notes=tuple(sorted(notes)),
        )


def _ranks(
    model: str, schedulers: Mapping[str, Cells], front: Cells, at: float, notes: set[str]
) -> list[RankSample]:
    told = {name: _scheduler_facts(schedulers[name], notes) for name in in_order(schedulers)}
    live = any("generation_tokens_total" in facts for facts in told.values())
    whole = _front_facts(front, notes, live=live)
    if not told:
        notes.add(NAMES_HALF_THERE)
        told = {DEFAULT_RANK: {}}
    if len(told) == 1:
        ((name, facts),) = told.items()
        return [RankSample(at, name, model, **_with_lookups(whole | facts, front))]
    ranks = [RankSample(at, name, model, **facts) for name, facts in told.items()]
    if whole.keys() - {"told_at_end"}:
        ranks.append(RankSample(at, ALL_RANKS, model, **whole))
    return ranks


def _front_facts(cells: Cells, notes: set[str], *, live: bool) -> Facts:
    """What the front end tells. ``live``: schedulers count tokens as they come, so its own counts are not used."""
    facts = facts_of(OF_THE_FRONT, cells, notes)
    finished = one(cells, FINISHED)
    if finished is not None:
        facts["finished_total"] = (("finished", finished),)
    if "swap_in_bytes_total" in facts or "swap_out_bytes_total" in facts:
        facts["swap_mode"] = "offload"
    if live:
        facts.pop("generation_tokens_total", None)
        facts.pop("prompt_tokens_total", None)
    else:
        facts["told_at_end"] = frozenset({"generation_tokens_total", "prompt_tokens_total"})
    return facts


def _with_lookups(facts: Facts, front: Cells) -> Facts:
    """Prefix hits of finished requests, where no scheduler counts lookups as they happen."""
    cached = told_by(front, CACHED)
    if cached and "prefix_queries_total" not in facts and "prompt_tokens_total" in facts:
        by_source = dict(cached)
        hits = by_source.get("device", total_of(by_source.get("total"), by_source.get("")))
        if hits is not None:
            facts["prefix_hits_total"] = hits
            facts["prefix_queries_total"] = facts["prompt_tokens_total"]
    return facts


def _scheduler_facts(cells: Cells, notes: set[str]) -> Facts:
    facts = facts_of(OF_A_RANK, cells, notes)
    facts["gauges_hold_seconds"] = GAUGES_HOLD_SECONDS
    if "running" not in facts:
        notes.add(NAMES_HALF_THERE)
    full = one(cells, FULL_USAGE)
    if full is not None:
        facts.setdefault("kv_usage_ratio", share(full, notes))
    held = one(cells, HELD_TOKENS)
    facts["heartbeat"] = one(cells, USED_TOKENS) if held is None else held
    _add_queues(facts, cells)
    _add_tokens(facts, cells)
    _add_pool(facts, cells)
    _add_host(facts, cells, notes)
    return facts


def _add_queues(facts: Facts, cells: Cells) -> None:
    queued = one(cells, QUEUED)
    deferred = total_of(*(one(cells, name) for name in DEFERRED))
    facts["waiting"] = total_of(queued, deferred)
    if queued is not None and deferred is not None:
        facts["waiting_by_reason"] = (("capacity", queued), ("deferred", deferred))


def _add_tokens(facts: Facts, cells: Cells) -> None:
    """Tokens as they come. A mode's series shows up with its first token."""
    modes = dict(told_by(cells, REALTIME) or ())
    if modes:
        computed = modes.get("prefill_compute", 0.0)
        facts["generation_tokens_total"] = modes.get("decode", 0.0)
        facts["prompt_tokens_computed_total"] = computed
        facts["prompt_tokens_total"] = computed + modes.get("prefill_cache", 0.0)
    looked_up = dict(told_by(cells, PREFILL) or ())  # without what a retracted request looks up again
    if looked_up:
        facts["prefix_hits_total"] = looked_up.get("device_hit", 0.0)
        facts["prefix_queries_total"] = sum(looked_up.values())
    elif modes:
        facts["prefix_hits_total"] = modes.get("prefill_cache", 0.0)
        facts["prefix_queries_total"] = facts["prompt_tokens_total"]


def _add_pool(facts: Facts, cells: Cells) -> None:
    capacity = one(cells, CAPACITY) or None
    facts["kv_capacity_tokens"] = capacity
    size = one(cells, PAGE_SIZE) or max(cells.get(PAGE_SIZE_INFO) or {}, default=None)
    if not size or capacity is None or any(one(cells, name) for name in OTHER_POOLS):
        return  # a hybrid model's usage is its fullest pool's, which need not be the one of this capacity
    facts["blocks"] = facts["pool_blocks"] = one(cells, PAGES) or capacity // size or None
    facts["block_tokens"] = size
    facts["block_group_tokens"] = (size,)


def _add_host(facts: Facts, cells: Cells, notes: set[str]) -> None:
    used, total = one(cells, HOST_USED), one(cells, HOST_TOTAL)
    if total:
        facts["swap_mode"] = "offload"
        facts["swap_tier_usage_ratio"] = share(used / total, notes) if used is not None else None
