"""Samples that the drill hands over are those that the sidecar reads in the text, in every field."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from drill.expose.release import Release
from drill.serving.config import EngineConfig
from exporter.dialects.vllm import VllmDialect
from exporter.exposition import Reader
from exporter.sample import EngineSample, RankSample
from tests.drill.exposing import EPOCH, OFFLOAD, V0_RECOMPUTE, V0_SWAP, V1, differing, play

ONSET_SECONDS = 12
NEVER_TOLD = {
    "kv_token_usage_ratio",  # proposed, in no release
    "swap_in_blocks_total",  # of another connector
    "swap_out_blocks_total",
    "kv_pool_bytes",  # where a user set it only
    "paused",  # of other engines
    "heartbeat",
}


CASES = {
    "V0, swapping": (V0_SWAP, "0.8.5", 1, False),
    "V0, recomputing": (V0_RECOMPUTE, "0.8.5", 1, False),
    "V0 before wide buckets": (V0_SWAP, "0.7.3", 1, False),
    "V1": (V1, "0.32.0", 1, False),
    "V1 with offload": (OFFLOAD, "0.32.0", 1, False),
    "V1, ranks": (V1, "0.32.0", 2, False),
    "V1, ranks, several servers": (V1, "0.32.0", 2, True),
    "V1, several servers": (OFFLOAD, "0.32.0", 1, True),
    **{f"V1 {release}": (OFFLOAD, release, 1, False) for release in ("0.11.2", "0.16.0", "0.24.0", "0.33.0")},
    **{
        f"V1 {release}": (V1, release, 2, False)
        for release in ("0.8.5", "0.9.2", "0.10.2", "0.13.0", "0.20.2")
    },
}


@pytest.mark.parametrize("case", CASES)
def test_samples_read_from_the_text_are_those_handed_over(case: str) -> None:
    config, release, ranks, several = CASES[case]
    played = play(config, Release.of(release), ranks=ranks, several_servers=several)
    dialect = VllmDialect()
    reader = Reader(dialect.interpret)

    def compare(second: int) -> EngineSample:
        at = EPOCH + second
        readings = reader.read(played.server.page().encode())
        read = dialect.sample(readings, engine="worker", at=at, read_seconds=0.04)
        handed = played.server.sample("worker", at, 0.04)
        assert differing(read, handed) == {}, second
        return handed

    compare(0)
    # each second of the onset, every 100th cycle, and the end
    for second in played.seconds(100 if release in {"0.8.5", "0.32.0"} else 25):
        if second < ONSET_SECONDS or second % 100 == 0:
            compare(second)
    last = compare(played.second)
    (rank, *_) = last.ranks
    told = {field.name for field in fields(RankSample) if getattr(rank, field.name) not in (None, ())}
    assert rank.preemptions_total
    assert not told & NEVER_TOLD


def test_most_fields_of_a_sample_are_filled_by_one_generation_or_another() -> None:
    told = set()
    for config in (V0_RECOMPUTE, V0_SWAP, OFFLOAD):
        played = play(config)
        list(played.seconds(20))
        (rank,) = played.server.sample("worker", EPOCH + 20).ranks
        told |= {field.name for field in fields(RankSample) if getattr(rank, field.name) not in (None, ())}
    assert {field.name for field in fields(RankSample)} - told == NEVER_TOLD


def test_the_pages_example_runs() -> None:
    names: dict[str, Any] = {}
    _, first, _, second = (Path(__file__).parents[2] / "docs" / "drill.md").read_text().split("```python")
    for example in (first, second):
        exec(example.split("```")[0], names)  # noqa: S102 -- our own page
    sample = names["server"].sample("worker-0", EPOCH)
    assert sample.ranks[0].finished == 1
    assert len(names["gpus"].samples()) == 8
    assert names["gpus"].samples()[0].nvlink.out_bytes_total > 1e9


def test_a_play_repeats_itself_to_the_byte() -> None:
    pages = []
    for _ in range(2):
        played = play(OFFLOAD)
        list(played.seconds(30))
        pages.append(played.server.page())
    assert pages[0] == pages[1]


@pytest.mark.parametrize("config", [V1, V0_SWAP], ids=["V1", "V0"])
def test_how_often_it_is_looked_at_changes_nothing(config: EngineConfig) -> None:
    often, rarely = play(config), play(config)
    for second in often.seconds(40):
        often.server.sample("worker", EPOCH + second)
        often.server.page()
    list(rarely.seconds(40))
    assert often.server.page() == rarely.server.page()
