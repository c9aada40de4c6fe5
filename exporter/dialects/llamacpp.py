"""Reads the llama.cpp server's own metrics (``--metrics``).

Read at ggml-org/llama.cpp, ``tools/server``, and checked on a recording of the real server. Traps:

- A request's generated tokens are counted when its slot is given back; ``n_decode_total`` moves with every step.
- ``prompt_tokens_total`` leaves out what the prompt cache gave, which is counted apart since August 2026.
- ``prompt_tokens_seconds`` and ``predicted_tokens_seconds`` begin anew with each scrape: two readers rob one another,
  so neither is read. ``n_tokens_max`` is typed counter and is a gauge.
- ``kv_cache_usage_ratio`` is gone (#13660); nothing has taken its place.
- The page is made by the loop that computes: a long prefill holds it up (#29104), and reading it keeps a server
  awake that would go to sleep when idle (#20227).
- A request holds an HTTP thread until it is answered: what waits for one (``--threads-http``, by default at least
  the slots and four) is in no number. 12 that waited have been seen as 3.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain

from exporter.dialects.cells import Slot, facts_of, gathered, read_as, slot_of, total_of
from exporter.dialects.names import Kind, Table, names
from exporter.exposition import Series
from exporter.sample import EngineSample, RankSample

TABLE = Table.of(
    r"^llamacpp[:_]",
    chain(
        names("running", Kind.COUNT, "requests_processing"),
        names("waiting", Kind.COUNT, "requests_deferred"),
        names("kv_usage_ratio", Kind.RATIO, "kv_cache_usage_ratio"),
        names("prompt_tokens_computed_total", Kind.COUNTER, "prompt_tokens"),
        names("prefix_hits_total", Kind.COUNTER, "prompt_tokens_cached"),
        names("generation_tokens_total", Kind.COUNTER, "tokens_predicted"),
        names("heartbeat", Kind.COUNTER, "n_decode"),
    ),
)

ABSENCES = (
    ("kv_usage_ratio", "llama.cpp tells no KV usage any more (#13660)"),
    ("blocks", "its KV cache is a range of cells a slot, not a pool of blocks"),
    ("block_tokens", "its KV cache is a range of cells a slot, not a pool of blocks"),
    ("generation_tokens_total", "a request's tokens are counted when it ends"),
    ("time_to_first_token", "it has no histograms"),
    ("inter_token_latency", "it has no histograms"),
    ("request_time_per_output_token", "it has no histograms"),
    ("end_to_end_latency", "it has no histograms"),
    ("queue_time", "it has no histograms"),
    ("request_prompt_tokens", "it has no histograms"),
    ("request_generation_tokens", "it has no histograms"),
    ("request_preemptions", "it never preempts: a slot is a request's until it ends"),
    ("preemptions_total", "it never preempts: a slot is a request's until it ends"),
    ("swapped", "it never swaps"),
    ("swap_mode", "it never swaps"),
    ("swap_tier_bytes", "it never swaps"),
    ("swap_in_bytes_total", "it never swaps"),
    ("swap_in_blocks_total", "it never swaps"),
    ("swap_tier_usage_ratio", "it never swaps"),
    ("finished_total", "it counts no requests"),
    ("aborted_total", "it counts no requests"),
    ("http_ok_total", "it counts no requests"),
    ("admission_rejections_total", "it counts no requests"),
    ("waiting_by_reason", "what waits, waits for a slot"),
    ("prefix_hits_total", "counted since August 2026"),
    ("prompt_tokens_total", "what the prompt cache gave is counted since August 2026"),
)


class LlamacppDialect:
    """One server, one rank; some builds label it with ``model``, upstream has no labels."""

    kind = "llamacpp"
    title = "llama.cpp"
    absences = ABSENCES

    def recognises(self, names: Collection[str]) -> bool:
        """Whether any of the names is one we read under llama.cpp's prefix."""
        return any(TABLE.spellings(name) for name in names)

    def interpret(self, series: Series) -> Slot | None:
        """What one series means; whose it is, is its model's name."""
        found = read_as(TABLE, series)
        if found is None:
            return None
        name, detail, labels = found
        return slot_of(labels.get("model", ""), name, detail, labels)

    def sample(
        self, readings: Sequence[tuple[Slot, float]], *, engine: str, at: float, read_seconds: float
    ) -> EngineSample:
        """One read."""
        notes: set[str] = set()
        ranks = []
        for model, cells in sorted(gathered(readings, notes).items()):
            facts = facts_of(TABLE, cells, notes)
            if "prefix_hits_total" in facts:
                looked_up = total_of(
                    facts.get("prompt_tokens_computed_total"), facts.get("prefix_hits_total")
                )
                facts["prompt_tokens_total"] = facts["prefix_queries_total"] = looked_up
            told_at_end = frozenset({"generation_tokens_total", "time_to_first_token"})
            ranks.append(RankSample(at, "0", model, told_at_end=told_at_end, **facts))
        return EngineSample(
            at, engine, self.kind, tuple(ranks), read_seconds=read_seconds, notes=tuple(sorted(notes))
        )
