"""The sidecar's source and cycle beside a real llama.cpp server: what it says against what the clients got.

Part of the one run that serves all tests (``conftest.figures``); its traces lie in ``llamacpp.json``.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.real_engine.judging import Figure
from tests.real_engine.llamacpp.engine import SLOTS
from tests.real_engine.llamacpp.llamacpp_run import ANSWER_TOKENS, CLIENTS, FILE

pytestmark = [pytest.mark.real, pytest.mark.timeout(2400)]

Told = dict[str, Any]


@pytest.fixture(scope="module")
def real(figures: Mapping[str, Figure], traces: Path) -> Told:
    assert figures
    found: Told = json.loads((traces / FILE).read_text(encoding="utf-8"))
    return found


def test_its_dialect_is_found_by_the_page(real: Told) -> None:
    assert real["said"][-1]["engine_info{engine_kind=llamacpp,generation=}"] == 1
    assert real["samples"][-1]["notes"] == []


def test_deferred_requests_are_seen_as_waiting(real: Told) -> None:
    waiting = [each["sequences{rank=0,state=waiting}"] for each in real["said"]]
    running = [each["sequences{rank=0,state=running}"] for each in real["said"]]
    assert max(waiting) == CLIENTS - SLOTS
    assert max(running) == SLOTS
    assert (waiting[-1], running[-1]) == (0, 0)


def test_tokens_are_counted_as_the_server_told_its_clients(real: Told) -> None:
    generated = sum(answer["tokens_predicted"] for answer in real["answers"])
    assert generated == CLIENTS * ANSWER_TOKENS
    assert real["said"][-1]["generation_tokens_total{rank=0}"] == generated
    taken_in = sum(answer["timings"]["prompt_n"] + answer["timings"]["cache_n"] for answer in real["answers"])
    assert real["said"][-1]["prompt_tokens_total{rank=0}"] == taken_in


def test_tokens_stand_still_while_it_works_and_it_is_not_called_frozen(real: Told) -> None:
    held_back = [
        (before, after)
        for before, after in itertools.pairwise(real["samples"])
        if after["running"] == SLOTS
        and after["generation_tokens_total"] == before["generation_tokens_total"]
        and after["heartbeat"] > before["heartbeat"]
    ]
    assert len(held_back) > 5
    assert {each.get("engine_frozen{rank=0}", 0.0) for each in real["said"]} == {0.0}


def test_what_it_can_not_tell_is_absent(real: Told) -> None:
    names = {name.partition("{")[0] for each in real["said"] for name in each}
    assert not {
        name for name in names if name.startswith(("kv_", "swap", "preempt", "tail_", "ttft", "tpot"))
    }
    assert not names & {"generation_tokens_per_second", "last_token_age_seconds", "client_aborts_total"}
