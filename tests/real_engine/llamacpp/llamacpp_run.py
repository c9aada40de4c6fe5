"""The part of the run with a llama.cpp server: its clients, and the sidecar's source and cycle beside it.

It judges nothing: ``llamacpp.json`` holds what was read, what was said of it, by name, and the server's last word to
each client. A little over 20 s on an idle core.
"""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import httpx

from exporter.clock import anchored_clock
from exporter.cycle import CycleSettings, initial, step
from exporter.engine_settings import EngineSettings
from exporter.sample import EngineSample
from exporter.sources.engine import EngineSource
from tests.real_engine.llamacpp.engine import serving
from tests.support.replay import named

FILE = "llamacpp.json"
CLIENTS = 16
PROMPT_TOKENS, ANSWER_TOKENS = 200, 1800
FIRST_TOKEN, LAST_TOKEN = 260, 1600
"""Past the special tokens and the bytes."""
SETTLE_SECONDS = 3.0
LONGEST_SECONDS = 400.0


def record(out: Path) -> None:
    """Serve, ask, read, and write ``llamacpp.json``. Raises UnavailableError where there is no such server."""
    with serving(out) as url:
        told = asyncio.run(_watched(url))
    (out / FILE).write_text(json.dumps(told) + "\n", encoding="utf-8")


async def _watched(url: str) -> dict[str, Any]:
    """Read the server each half second while its clients are served, and for a while after."""
    clock = anchored_clock()
    source = EngineSource(EngineSettings(url=url, name="llamacpp"), clock, 0.5)
    reading = asyncio.create_task(source.run())
    await asyncio.sleep(1.0)
    state = initial(CycleSettings(version="test"))
    samples: list[dict[str, Any]] = []
    said: list[dict[str, float]] = []
    async with httpx.AsyncClient(base_url=url, timeout=LONGEST_SECONDS, trust_env=False) as client:
        load: asyncio.Future[list[dict[str, Any]]] | None = None
        idle_for = 0.0
        while idle_for < SETTLE_SECONDS:
            if load is not None:
                await asyncio.sleep(0.5)
                idle_for = idle_for + 0.5 if load.done() else 0.0
            observation = source.observe()
            if observation.engine is None:
                raise RuntimeError(f"the server can't be read: {observation.status.last_error}")
            state, snapshot = step(state, clock(), [observation])
            if snapshot.failures:
                raise RuntimeError(f"not derived: {snapshot.failures}")
            samples.append(_told(observation.engine))
            load = load or asyncio.gather(*(_ask(client, number) for number in range(CLIENTS)))
            said.append(
                {named(each.signal, each.labels, peak=each.is_peak): each.value for each in snapshot.values}
            )
        answers = await load if load is not None else []
    reading.cancel()
    return {"samples": samples, "said": said, "answers": answers}


def _told(sample: EngineSample) -> dict[str, Any]:
    """What the judges ask of a sample."""
    (rank,) = sample.ranks
    return {
        "at": sample.at,
        "notes": sample.notes,
        "running": rank.running,
        "generation_tokens_total": rank.generation_tokens_total,
        "heartbeat": rank.heartbeat,
    }


async def _ask(client: httpx.AsyncClient, number: int) -> dict[str, Any]:
    chance = random.Random(number)  # noqa: S311 - repeatable on purpose, guards nothing
    prompt = [chance.randrange(FIRST_TOKEN, LAST_TOKEN) for _ in range(PROMPT_TOKENS)]
    wanted = {"prompt": prompt, "n_predict": ANSWER_TOKENS, "ignore_eos": True, "cache_prompt": True}
    answer = await client.post("/completion", json=wanted)
    answer.raise_for_status()
    told: dict[str, Any] = answer.json()
    return told
