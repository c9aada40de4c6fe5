import csv
import itertools
import math
from pathlib import Path

import pytest

from exporter.dialects.vllm import VllmDialect
from exporter.exposition import Reader
from exporter.sample import Histogram
from tests.exporter.dialects.vllm_text import AT, engine, rank
from tests.support.captures import fixture, recording

# What the captures' texts say, taken out line by line without any of our code.
TRUTH = list(csv.DictReader(Path(__file__).with_name("vllm_truth.csv").read_text().splitlines()))
PLAIN = (
    "running",
    "waiting",
    "swapped",
    "swap_tier_usage_ratio",
    "swap_in_bytes_total",
    "swap_out_bytes_total",
    "preemptions_total",
    "prompt_tokens_total",
    "prompt_tokens_computed_total",
    "generation_tokens_total",
    "prefix_queries_total",
    "prefix_hits_total",
    "external_queries_total",
    "finished",
)
HISTOGRAMS = tuple(name.removesuffix("_count") for name in TRUTH[0] if name.endswith("_count"))
V1_SCRAPES = [
    "vllm-0.32.0/000.prom",
    "vllm-0.32.0/112.prom",
    "vllm-0.32.0-oracle/057.prom",
    "vllm-0.32.0-offload/097.prom",
    "vllm-0.32.0-dp2-api2/030.prom",
]


def number(text: str) -> float | None:
    return float(text) if text else None


@pytest.mark.parametrize("row", TRUTH, ids=lambda row: f"{row['capture']}-{row['scrape']}-{row['rank']}")
def test_every_field_of_a_real_scrape(row: dict[str, str]) -> None:
    sample = engine(fixture(f"{row['capture']}/{int(row['scrape']):03d}.prom"))
    found = next(rank for rank in sample.ranks if rank.rank == row["rank"])
    assert {name: getattr(found, name) for name in PLAIN} == {name: number(row[name]) for name in PLAIN}
    assert sample.http_ok_total == number(row["http_ok_total"])
    reasons = dict(found.waiting_by_reason)
    assert reasons.get("capacity") == number(row["waiting_capacity"])
    assert reasons.get("deferred") == number(row["waiting_deferred"])
    used = number(row["used_blocks"])
    if used is None:
        assert found.kv_usage_ratio is None
    else:
        assert found.kv_usage_ratio * found.blocks == pytest.approx(used, abs=1e-9)
    for name in HISTOGRAMS:
        histogram = getattr(found, name)
        told = (number(row[f"{name}_count"]), number(row[f"{name}_total"]))
        assert (histogram and (histogram.count, histogram.total)) == (told if told[0] is not None else None)
    assert sample.notes == ()


@pytest.mark.parametrize("path", V1_SCRAPES)
def test_v1_geometry_and_identity(path: str) -> None:
    sample = engine(fixture(path))
    assert (sample.kind, sample.engine, sample.at, sample.read_seconds) == ("vllm", "worker", AT, 0.04)
    assert [rank.rank for rank in sample.ranks] == (["0", "1"] if "dp2" in path else ["0"])
    for found in sample.ranks:
        assert (found.at, found.model_name, found.generation) == (AT, "tiny", "v1")
        assert (found.blocks, found.pool_blocks, found.block_tokens) == (255, 256, 32)
        assert (found.block_group_tokens, found.kv_pool_bytes) == ((32,), 4 << 20)
        assert found.kv_capacity_tokens == 255 * 32
        assert found.swap_mode == ("offload" if "offload" in path else None)
        assert (found.swapped, found.swap_tier_bytes, found.swap_tier_blocks) == (None, None, None)
    assert dict(sample.config)["enable_prefix_caching"] == "True"
    assert "num_cpu_blocks" not in dict(sample.config)
    assert sample.admission_rejections_total == (("max_num_queued_reqs", 0), ("max_num_queued_tokens", 0))


def test_v0_geometry_and_swap_pool() -> None:
    found = rank(fixture("vllm-0.8.5-v0-swap/092.prom"))
    assert (found.rank, found.generation, found.started_at, found.http_ok_total) == ("0", "v0", None, None)
    assert (found.blocks, found.pool_blocks, found.block_tokens, found.block_group_tokens) == (
        512,
        512,
        16,
        (16,),
    )
    assert (found.swap_mode, found.swap_tier_blocks, found.swap_tier_bytes) == ("swap", 1024, 1 << 30)
    assert (found.prefix_hit_ratio, found.kv_pool_bytes, found.kv_capacity_tokens) == (None, None, None)
    assert found.finished_total == (("length", 346),)


def test_buckets_of_a_real_histogram() -> None:
    found = rank(fixture("vllm-0.32.0-oracle/057.prom"))
    assert found.request_preemptions == Histogram(
        (1, 2, 3, 4, 5, 10, 20, math.inf), (297, 311, 319, 319, 319, 319, 319, 319), 131
    )


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_real_buckets_rise_from_bound_to_bound(name: str) -> None:
    found = getattr(rank(fixture("vllm-0.32.0/112.prom")), name)
    assert all(low < high for low, high in itertools.pairwise(found.bounds))
    assert all(below <= above for below, above in itertools.pairwise(found.counts))
    assert found.bounds[-1] == math.inf


@pytest.mark.parametrize(
    "name", ["vllm-0.32.0", "vllm-0.32.0-oracle", "vllm-0.32.0-offload", "vllm-0.32.0-dp2-api2"]
)
def test_usage_times_usable_blocks_is_whole_in_every_scrape(name: str) -> None:
    dialect = VllmDialect()
    reader = Reader(dialect.interpret)
    seen = 0
    for entry, body in recording(name).scrapes():
        for found in dialect.sample(reader.read(body), engine="e", at=entry["t"], read_seconds=0).ranks:
            if found.kv_usage_ratio is not None:
                used = found.kv_usage_ratio * found.blocks
                assert used == pytest.approx(round(used), abs=1e-9)
                seen += used > 0
    assert seen > 30


def test_process_start_is_the_start_of_front_end_and_rank() -> None:
    sample = engine(fixture("vllm-0.32.0/112.prom"))
    assert sample.started_at == sample.ranks[0].started_at == 1796003567.87
    assert engine(fixture("vllm-0.32.0-dp2-api2/029.prom")).started_at is None


def test_completions_are_a_ranks_own_only_where_it_is_alone() -> None:
    assert engine(fixture("vllm-0.32.0/112.prom")).ranks[0].http_ok_total == 422
    both = engine(fixture("vllm-0.32.0-dp2-api2/029.prom"))
    assert both.http_ok_total == 180
    assert [found.http_ok_total for found in both.ranks] == [None, None]


def test_order_of_the_text_does_not_matter() -> None:
    body = fixture("vllm-0.32.0-dp2-api2/030.prom").decode().splitlines(keepends=True)
    assert engine("".join(reversed(body))) == engine("".join(body)) == engine("".join(sorted(body)))
