"""Clients before a gateway: they are refused, time out, walk off and ask again; what each saw is the truth."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from dataclasses import dataclass, field

import httpx

CLIENTS = 12
RETRIES = 3
PAUSE_SECONDS = 0.25
LEAVE_SECONDS = 1.2
FIRST_TOKEN, LAST_TOKEN = 260, 2000


@dataclass(slots=True)
class Truth:
    """How attempts ended, in the clients' words: done, 429, 503, 504, broken, left."""

    ends: Counter[str] = field(default_factory=Counter)

    @property
    def attempts(self) -> int:
        """All of them."""
        return sum(self.ends.values())


async def storm(url: str, seconds: float) -> Truth:
    """Clients ask one thing after another, short ones mostly, and ask again when it fails."""
    truth = Truth()
    deadline = time.monotonic() + seconds
    async with _client() as session:
        await asyncio.gather(*(_user(session, url, deadline, number, truth) for number in range(CLIENTS)))
    return truth


async def fill(url: str, number: int, after_seconds: float) -> Truth:
    """So many clients ask for long answers at once, ``after_seconds`` from now, and stay until they end."""
    await asyncio.sleep(after_seconds)
    async with _client() as session:
        asking = [_ask(session, url, _prompt(_seeded(place)), 1500, False, None) for place in range(number)]
        return Truth(Counter(await asyncio.gather(*asking)))


async def walk_off(url: str, number: int, after_seconds: float, tokens: int) -> float:
    """So many clients ask for long streams and leave; gives the time when the last of them has."""
    async with _client() as session:
        leaving = [
            _ask(session, url, _prompt(_seeded(place)), tokens, True, after_seconds)
            for place in range(number)
        ]
        ends = await asyncio.gather(*leaving)
    if set(ends) != {"left"}:
        raise RuntimeError(f"clients were to walk off, not to see {ends}")
    return time.time()


async def _user(session: httpx.AsyncClient, url: str, deadline: float, number: int, truth: Truth) -> None:
    chance = _seeded(number)
    while time.monotonic() < deadline:
        prompt, streams = _prompt(chance), chance.random() < 0.5
        # a third is too long for the gateway's time, a tenth for its client's patience
        tokens = 1500 if chance.random() < 0.3 else chance.randrange(10, 60)
        leave_after = LEAVE_SECONDS if tokens > 60 and chance.random() < 0.3 else None
        for _ in range(1 + RETRIES):
            end = await _ask(session, url, prompt, tokens, streams, leave_after)
            truth.ends[end] += 1
            if end == "done":
                break
            await asyncio.sleep(PAUSE_SECONDS)
            # who was kept waiting for a long answer settles for a short one
            tokens, leave_after = chance.randrange(10, 60), None


async def _ask(  # noqa: PLR0913, PLR0917 -- what is asked, and for how long
    session: httpx.AsyncClient,
    url: str,
    prompt: list[int],
    tokens: int,
    streams: bool,  # noqa: FBT001 -- a word of the protocol
    leave_after: float | None,
) -> str:
    body = {"model": "tiny", "prompt": prompt, "max_tokens": tokens, "ignore_eos": True, "stream": streams}
    try:
        async with asyncio.timeout(leave_after):
            async with session.stream("POST", f"{url}/v1/completions", json=body) as answer:
                async for _ in answer.aiter_bytes():
                    pass
    except TimeoutError:
        return "left"
    except httpx.HTTPError:
        return "broken"
    return "done" if answer.status_code == 200 else str(answer.status_code)


def _seeded(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - repeatable on purpose, guards nothing


def _client() -> httpx.AsyncClient:
    return httpx.AsyncClient(
        timeout=60.0, trust_env=False, limits=httpx.Limits(max_connections=100, max_keepalive_connections=0)
    )


def _prompt(chance: random.Random) -> list[int]:
    return [chance.randrange(FIRST_TOKEN, LAST_TOKEN) for _ in range(60)]
