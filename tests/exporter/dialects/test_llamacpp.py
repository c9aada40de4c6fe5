from __future__ import annotations

import pytest

from tests.support.captures import fixture, recording
from tests.support.pages import rank, read
from tests.support.replay import replayed

NAME = "llamacpp-2026.10.11549"


def test_every_field_of_a_real_scrape() -> None:
    sample = read(fixture(f"{NAME}/030.prom"))
    (found,) = sample.ranks
    assert (sample.kind, sample.notes, found.rank, found.model_name) == ("llamacpp", (), "0", "")
    assert (found.running, found.waiting) == (4, 28)
    assert found.prompt_tokens_computed_total == 78_939
    assert found.prefix_hits_total == 65_377
    assert found.prompt_tokens_total == found.prefix_queries_total == 78_939 + 65_377
    assert (found.generation_tokens_total, found.tokens_so_far) == (70_506, None)
    assert found.heartbeat == 26_793
    assert (found.kv_usage_ratio, found.blocks, found.preemptions_total) == (None, None, None)


def test_deferred_requests_are_those_that_no_slot_is_free_for() -> None:
    seen = [(cycle.sample.ranks[0].running, cycle.sample.ranks[0].waiting) for cycle in replayed(NAME, 512.0)]
    assert max(waiting for _, waiting in seen) == 28
    assert {running for running, waiting in seen if waiting > 5} == {4}


def test_tokens_are_those_that_clients_got() -> None:
    clients = recording(NAME).lines("clients.jsonl")
    got = sum(client["chunks"] for client in clients if client["end"] == "done")
    counted = replayed(NAME, 512.0)[-1].sample.ranks[0].generation_tokens_total
    # those of clients that left are counted as well
    assert got < counted == 137_527


def test_a_real_server_at_work_is_never_called_frozen() -> None:
    told = [cycle.named().get("engine_frozen{rank=0}") for cycle in replayed(NAME, 512.0)]
    assert set(told) == {0.0}


def test_a_build_from_before_cached_tokens_were_counted() -> None:
    found = rank("llamacpp:prompt_tokens_total 10\nllamacpp:tokens_predicted_total 20\n")
    assert (found.prompt_tokens_computed_total, found.prompt_tokens_total) == (10, None)
    assert (found.prefix_hits_total, found.prefix_queries_total) == (None, None)


def test_13660_an_old_build_tells_its_usage() -> None:
    assert rank("llamacpp:kv_cache_usage_ratio 0.5\nllamacpp:kv_cache_tokens 1234\n").kv_usage_ratio == 0.5


@pytest.mark.parametrize(
    "series", ["prompt_tokens_seconds 21685.9", "predicted_tokens_seconds 564.9", "n_tokens_max 1786"]
)
def test_gauges_that_another_reader_resets_and_a_gauge_typed_counter_are_left_alone(series: str) -> None:
    body = "llamacpp:requests_processing 1\n"
    assert rank(body + f"llamacpp:{series}\n") == rank(body)


def test_a_build_that_labels_its_model() -> None:
    assert rank('llamacpp:requests_processing{model="gemma"} 2\n').model_name == "gemma"
