"""What adds up in every scrape of the recorded engines adds up in every one of the drill's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from drill.serving.config import EngineConfig
from exporter.dialects.vllm import VllmDialect
from exporter.exposition import Reader
from exporter.sample import Histogram, RankSample
from tests.drill.exposing import EPOCH, OFFLOAD, V0_RECOMPUTE, V0_SWAP, V1, play
from tests.support.captures import recording


def recorded(name: str) -> Iterator[RankSample]:
    """Every rank of every scrape."""
    dialect = VllmDialect()
    reader = Reader(dialect.interpret)
    for entry, body in recording(name).scrapes():
        yield from dialect.sample(reader.read(body), engine="e", at=entry["t"], read_seconds=0).ranks


def drilled(config: EngineConfig) -> Iterator[RankSample]:
    played = play(config)
    for second in played.seconds(80):
        yield from played.server.sample("e", EPOCH + second).ranks


def count(histogram: Histogram | None) -> float:
    assert histogram is not None
    return histogram.count


def total(histogram: Histogram | None) -> float:
    assert histogram is not None
    assert histogram.total is not None
    return histogram.total


def sums(rank: RankSample) -> dict[str, tuple[float, float]]:
    """Pairs of numbers that are equal."""
    tokens, prompts = rank.generation_tokens_total or 0.0, rank.prompt_tokens_total or 0.0
    finished = rank.finished or 0.0
    whole = (rank.kv_usage_ratio or 0.0) * (rank.blocks or 0.0)
    pairs = {
        "gaps and first tokens are all tokens": (
            count(rank.inter_token_latency) + count(rank.time_to_first_token),
            tokens,
        ),
        "usage is of whole blocks": (whole, float(round(whole))),
    }
    for name in (
        "end_to_end_latency",
        "queue_time",
        "prefill_time",
        "request_prompt_tokens",
        "request_generation_tokens",
    ):
        pairs[f"{name} of all that finished"] = (count(getattr(rank, name)), finished)
    if rank.generation == "v0":
        return pairs | {"iterations hold all tokens": (total(rank.iteration_tokens), tokens + prompts)}
    computed = rank.prompt_tokens_computed_total or 0.0
    return pairs | {
        "iterations hold what was computed": (total(rank.iteration_tokens), tokens + computed),
        "who waits has a reason": (sum(each for _, each in rank.waiting_by_reason), rank.waiting or 0.0),
    }


@pytest.mark.parametrize(
    "name", ["vllm-0.32.0", "vllm-0.32.0-offload", "vllm-0.32.0-oracle", "vllm-0.8.5-v0-swap"]
)
def test_so_it_was_with_the_recorded_engines(name: str) -> None:
    ranks = list(recorded(name))
    off = [pair for rank in ranks for pair in sums(rank).values() if pair[0] != pytest.approx(pair[1])]
    # some scrapes came between two counters of the same iterations
    assert len(off) < 0.1 * len(ranks)
    assert all(left == pytest.approx(right, rel=0.02) for left, right in off)


@pytest.mark.parametrize("config", [V1, OFFLOAD, V0_SWAP, V0_RECOMPUTE], ids=["V1", "offload", "swap", "V0"])
def test_so_it_is_with_the_drills(config: EngineConfig) -> None:
    told = 0
    for rank in drilled(config):
        for what, (left, right) in sums(rank).items():
            assert left == pytest.approx(right), what
            told += left > 0
    assert told > 500


def test_the_tier_is_asked_for_what_the_gpu_had_not() -> None:
    for ranks in (recorded("vllm-0.32.0-offload"), drilled(OFFLOAD)):
        asked = 0.0
        for rank in ranks:
            asked = rank.external_queries_total or 0.0
            assert asked == (rank.prefix_queries_total or 0.0) - (rank.prefix_hits_total or 0.0)
        assert asked > 1e5


@pytest.mark.parametrize("name", ["vllm-0.32.0", "vllm-0.32.0-offload"])
def test_requests_that_finished_were_preempted_no_more_often_than_all(name: str) -> None:
    config = OFFLOAD if name.endswith("offload") else V1
    for ranks in (recorded(name), drilled(config)):
        fewer = False
        for rank in ranks:
            known = total(rank.request_preemptions)
            assert known <= (rank.preemptions_total or 0.0)
            fewer = known < (rank.preemptions_total or 0.0)
        assert fewer  # to the end: clients that left never report theirs
