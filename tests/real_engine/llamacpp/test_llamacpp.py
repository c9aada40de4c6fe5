"""The sidecar's source and cycle beside a real llama.cpp server: what it says against what the clients got.

Not part of a plain ``pytest``; ``make real`` runs it, in half a minute.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from exporter.clock import anchored_clock
from exporter.cycle import CycleSettings, initial, step
from exporter.engine_settings import EngineSettings
from exporter.sample import EngineSample
from exporter.sources.engine import EngineSource
from tests.real_engine.install import UnavailableError
from tests.real_engine.llamacpp.engine import SLOTS, serving
from tests.support.replay import named

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]

CLIENTS = 16
PROMPT_TOKENS, ANSWER_TOKENS = 200, 1800
FIRST_TOKEN, LAST_TOKEN = 260, 1600
"""Past the special tokens and the bytes."""
SETTLE_SECONDS = 3.0
LONGEST_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Run:
    """What was read, what was said of it, by name, and the server's last word to each client."""

    samples: tuple[EngineSample, ...]
    said: tuple[dict[str, float], ...]
    answers: tuple[dict[str, Any], ...]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    try:
        with serving(tmp_path_factory.mktemp("llamacpp")) as url:
            yield asyncio.run(_watched(url))
    except UnavailableError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must have the real server: {error}", pytrace=False)
        pytest.skip(str(error))


async def _watched(url: str) -> Run:
    """Read the server each half second while its clients are served, and for a while after."""
    clock = anchored_clock()
    source = EngineSource(EngineSettings(url=url, name="llamacpp"), clock, 0.5)
    reading = asyncio.create_task(source.run())
    await asyncio.sleep(1.0)
    state = initial(CycleSettings(version="test"))
    samples: list[EngineSample] = []
    said: list[dict[str, float]] = []
    async with httpx.AsyncClient(base_url=url, timeout=LONGEST_SECONDS, trust_env=False) as client:
        load: asyncio.Future[list[dict[str, Any]]] | None = None
        idle_for = 0.0
        while idle_for < SETTLE_SECONDS:
            if load is not None:
                await asyncio.sleep(0.5)
                idle_for = idle_for + 0.5 if load.done() else 0.0
            observation = source.observe()
            assert observation.engine is not None, observation.status.last_error
            state, snapshot = step(state, clock(), [observation])
            assert snapshot.failures == ()
            samples.append(observation.engine)
            load = load or asyncio.gather(*(_ask(client, number) for number in range(CLIENTS)))
            said.append(
                {named(each.signal, each.labels, peak=each.is_peak): each.value for each in snapshot.values}
            )
        answers = await load if load is not None else []
    reading.cancel()
    return Run(tuple(samples), tuple(said), tuple(answers))


async def _ask(client: httpx.AsyncClient, number: int) -> dict[str, Any]:
    chance = random.Random(number)  # noqa: S311 - repeatable on purpose, guards nothing
    prompt = [chance.randrange(FIRST_TOKEN, LAST_TOKEN) for _ in range(PROMPT_TOKENS)]
    wanted = {"prompt": prompt, "n_predict": ANSWER_TOKENS, "ignore_eos": True, "cache_prompt": True}
    answer = await client.post("/completion", json=wanted)
    answer.raise_for_status()
    told: dict[str, Any] = answer.json()
    return told


def test_its_dialect_is_found_by_the_page(real: Run) -> None:
    assert real.said[-1]["engine_info{engine_kind=llamacpp,generation=}"] == 1
    assert real.samples[-1].notes == ()


def test_deferred_requests_are_seen_as_waiting(real: Run) -> None:
    waiting = [each["sequences{rank=0,state=waiting}"] for each in real.said]
    running = [each["sequences{rank=0,state=running}"] for each in real.said]
    assert max(waiting) == CLIENTS - SLOTS
    assert max(running) == SLOTS
    assert (waiting[-1], running[-1]) == (0, 0)


def test_tokens_are_counted_as_the_server_told_its_clients(real: Run) -> None:
    generated = sum(answer["tokens_predicted"] for answer in real.answers)
    assert generated == CLIENTS * ANSWER_TOKENS
    assert real.said[-1]["generation_tokens_total{rank=0}"] == generated
    taken_in = sum(answer["timings"]["prompt_n"] + answer["timings"]["cache_n"] for answer in real.answers)
    assert real.said[-1]["prompt_tokens_total{rank=0}"] == taken_in


def test_tokens_stand_still_while_it_works_and_it_is_not_called_frozen(real: Run) -> None:
    ranks = [sample.ranks[0] for sample in real.samples]
    held_back = [
        (before, after)
        for before, after in itertools.pairwise(ranks)
        if after.running == SLOTS
        and after.generation_tokens_total == before.generation_tokens_total
        and after.heartbeat > before.heartbeat
    ]
    assert len(held_back) > 5
    assert {each.get("engine_frozen{rank=0}", 0.0) for each in real.said} == {0.0}


def test_what_it_can_not_tell_is_absent(real: Run) -> None:
    names = {name.partition("{")[0] for each in real.said for name in each}
    assert not {
        name for name in names if name.startswith(("kv_", "swap", "preempt", "tail_", "ttft", "tpot"))
    }
    assert not names & {"generation_tokens_per_second", "last_token_age_seconds", "client_aborts_total"}
