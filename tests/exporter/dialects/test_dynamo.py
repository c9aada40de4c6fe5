from __future__ import annotations

import re

import pytest

from exporter.derive.phenomenon import EngineFacts
from exporter.derive.stalls import STALLS
from exporter.sample import ALL_RANKS
from tests.support.derive import run as derived
from tests.support.pages import rank, read, run, written

WORKER = 'dynamo_component="backend",dynamo_namespace="dynamo"'


def test_a_whole_page_of_a_front_end() -> None:
    sample = read(written("dynamo-frontend"))
    (found,) = sample.ranks
    assert (sample.kind, sample.generation, sample.notes) == ("dynamo", "frontend", ())
    assert (found.rank, found.model_name) == (ALL_RANKS, "qwen/qwen3-8b")
    # a request is queued until its first token, and in flight all the while
    assert (found.running, found.waiting) == (24, 10)
    assert (found.generation_tokens_total, found.tokens_so_far) == (934_160, 934_160)
    assert (found.prefix_hits_total, found.prefix_queries_total) == (4160 * 240.0, 4160 * 840.0)
    assert found.finished_total == (("cancelled", 90), ("overload", 20), ("success", 4000))
    assert (sample.aborted_total, sample.admission_rejections_total) == (92, (("overload", 20),))
    assert found.inter_token_latency.count == 930_000
    assert (found.kv_usage_ratio, found.blocks, found.block_tokens) == (None, None, None)


def test_one_long_prompt_alone_is_no_deadlock() -> None:
    """A front end counts a request as queued until its first token, also while its prompt is being taken in."""
    body = written("dynamo-frontend")
    for name in (b"inflight_requests", b"queued_requests"):
        body = re.sub(rb"(\n\S*_" + name + rb"\{\S*) \S+", rb"\1 1", body)
    assert (rank(body).running, rank(body).waiting) == (0, 1)
    told = {value.signal.name for cycle in run([body] * 30, EngineFacts()) for value in cycle.snapshot.values}
    assert "engine_frozen" in told
    assert "engine_deadlocked" not in told


def test_models_are_one_whatever_the_case_of_their_names() -> None:
    body = (
        'dynamo_frontend_inflight_requests{model="qwen/qwen3-8b"} 5\n'
        'dynamo_frontend_queued_requests{model="Qwen/Qwen3-8B"} 2\n'
        'dynamo_frontend_inflight_requests{model="other"} 1\n'
        'dynamo_frontend_queued_requests{model="other"} 1\n'
    )
    found = {each.model_name: (each.running, each.waiting) for each in read(body).ranks}
    assert found == {"qwen/qwen3-8b": (3, 2), "other": (0, 1)}


def test_newer_front_ends_tell_stages() -> None:
    body = 'dynamo_frontend_active_requests{model="m"} 9\ndynamo_frontend_inflight_requests{model="m"} 9\n'
    for stage, count in {"preprocess": 1, "route": 2, "dispatch": 3, "stream": 3}.items():
        body += f'dynamo_frontend_stage_requests{{model="m",stage="{stage}"}} {count}\n'
    found = rank(body)
    assert (found.running, found.waiting) == (3, 6)


def test_an_older_front_end_counts_cancellations_and_refusals_by_outcome_only() -> None:
    body = (
        'dynamo_frontend_requests_total{error_type="cancelled",model="m",status="error"} 7\n'
        'dynamo_frontend_requests_total{error_type="overload",model="m",status="error"} 5\n'
        'dynamo_frontend_requests_total{error_type="",model="m",status="success"} 70\n'
    )
    sample = read(body)
    assert (sample.aborted_total, sample.admission_rejections_total) == (7, (("overload", 5),))
    assert read('dynamo_frontend_requests_total{model="m",status="success"} 1\n').aborted_total is None


def test_disconnected_clients_are_a_gauge_and_left_alone() -> None:
    body = 'dynamo_frontend_queued_requests{model="m"} 2\n'
    assert read(body + "dynamo_frontend_disconnected_clients 3\n") == read(body)


def test_a_whole_page_of_a_worker_alone() -> None:
    sample = read(written("dynamo-worker"))
    (found,) = sample.ranks
    assert (sample.generation, found.rank, sample.aborted_total) == ("worker", "0", 90)
    assert found.model_name == "Qwen/Qwen3-8B"
    # 0.985 is a share in spite of its name, and maintenance endpoints serve no requests
    assert (found.kv_usage_ratio, found.blocks, found.running) == (0.985, 5943, 12)
    assert (found.finished_total, found.end_to_end_latency.count) == ((("finished", 4000),), 4000)


@pytest.mark.parametrize(
    ("models", "name"), [([], ""), (["m"], "m"), (["m", "m"], "m"), (["m", "adapter"], "")]
)
def test_a_worker_s_ranks_are_of_the_one_model_that_its_endpoints_name(models: list[str], name: str) -> None:
    body = "".join(
        f'dynamo_component_total_blocks{{dp_rank="{place}",{WORKER}}} 100\n' for place in range(2)
    ) + "".join(
        f'dynamo_component_inflight_requests{{dp_rank="{place}",dynamo_endpoint="generate",model="{model}"}} 3\n'
        for place, model in enumerate(models)
    )
    ranks = read(body).ranks
    assert [(each.rank, each.model_name, each.blocks) for each in ranks] == [
        ("0", name, 100),
        ("1", name, 100),
    ]
    assert sum(each.running or 0.0 for each in ranks) == 3 * len(models)


@pytest.mark.parametrize("name", ["", "kvstats_"])
def test_a_worker_that_publishes_nothing_shows_0_blocks(name: str) -> None:
    body = (
        f"dynamo_component_{name}total_blocks{{{WORKER}}} 0\n"
        f"dynamo_component_{name}gpu_cache_usage_percent{{{WORKER}}} 0\n"
    )
    found = rank(body)
    assert (found.blocks, found.kv_usage_ratio) == (None, None)
    found = rank(body.replace("} 0\n", "} 0.5\n"))
    assert (found.blocks, found.kv_usage_ratio) == (0.5, 0.5)


def test_the_router_s_watch_on_workers_is_not_the_front_end_s_own() -> None:
    body = 'dynamo_frontend_queued_requests{model="m"} 2\n'
    watched = f"dynamo_component_total_blocks{{{WORKER}}} 100\n"
    assert read(body + watched) == read(body)


def test_the_block_manager_s_transfers() -> None:
    body = f"dynamo_component_total_blocks{{{WORKER}}} 100\nkvbm_offload_blocks_d2h 30\nkvbm_onboard_blocks_h2d 12\n"
    found = rank(body)
    assert (found.swap_out_blocks_total, found.swap_in_blocks_total, found.swap_mode) == (30, 12, "offload")


@pytest.mark.parametrize(("tokens", "frozen"), [("5000", 1), ("0", 0)])
def test_requests_that_a_front_end_takes_in_are_no_sign_of_workers_that_live(
    tokens: str, frozen: int
) -> None:
    """A model that never made a token may be one of embeddings, whose requests make none."""
    samples = [
        rank(
            f'dynamo_frontend_inflight_requests{{model="m"}} {20 + at}\n'
            f'dynamo_frontend_queued_requests{{model="m"}} {at}\n'
            f'dynamo_frontend_output_tokens_total{{model="m"}} {tokens if at else 0}\n',
            at=float(at),
        )
        for at in range(70)
    ]
    said = [values.get("engine_frozen") for values in derived(STALLS, samples)]
    assert said[1:] == [0] * 30 + [frozen] * 39
