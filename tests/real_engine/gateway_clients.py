"""Clients before a gateway: they are refused, time out, walk off and ask again; what each saw is the truth."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx

from tests.real_engine.envoy import TIMEOUT_SECONDS
from tests.real_engine.serve import ENDLESS_TOKENS

CLIENTS = 12
RETRIES = 3
PAUSE_SECONDS = 0.25
ENOUGH = 3
"""So often each end must have come for a storm to be one."""
LEAVE_SECONDS = 1.2
FIRST_TOKEN, LAST_TOKEN = 260, 2000


@dataclass(slots=True)
class Truth:
    """How attempts ended, in the clients' words: done, 429, 503, 504, broken, left.

    ``given_up`` are those that the gateway gave up, by the id that the engine knows them by, and the earliest
    moment at which it can have done so: how late a client that is kept waiting for a core hears of it says nothing.
    """

    ends: Counter[str] = field(default_factory=Counter)
    given_up: dict[str, float] = field(default_factory=dict)
    longest_rejection_seconds: float = 0.0

    @property
    def has_all(self) -> bool:
        """Whether every end has come often enough."""
        late = self.ends["504"] + self.ends["broken"]
        return min(late, *(self.ends[end] for end in ("done", "429", "503", "left"))) >= ENOUGH

    def note(self, attempt: str, end: str, begin: float, leave_after: float | None) -> None:
        """An attempt that came at ``begin`` is over."""
        self.ends[end] += 1
        if end in {"429", "503"}:
            self.longest_rejection_seconds = max(self.longest_rejection_seconds, time.time() - begin)
        patience = leave_after if end == "left" else TIMEOUT_SECONDS if end in {"504", "broken"} else None
        if patience is not None:
            self.given_up[attempt] = begin + patience


async def storm(url: str, seconds: float, at_most_seconds: float, truth: Truth) -> None:
    """Clients ask one thing after another, short ones mostly, and ask again when it fails.

    Longer than ``seconds`` where a slow machine has not yet brought every end about.
    """
    began = time.monotonic()

    def goes_on() -> bool:
        lasted = time.monotonic() - began
        return lasted < seconds or (lasted < at_most_seconds and not truth.has_all)

    async with _client() as session:
        await asyncio.gather(*(_user(session, url, goes_on, number, truth) for number in range(CLIENTS)))


async def fill(url: str, number: int, after_seconds: float, truth: Truth) -> None:
    """So many clients ask for long answers at once, ``after_seconds`` from now, and stay until they end."""
    await asyncio.sleep(after_seconds)
    async with _client() as session:
        asking = [
            _ask(session, url, _prompt(_seeded(place)), ENDLESS_TOKENS, False, None, truth)
            for place in range(number)
        ]
        await asyncio.gather(*asking)


async def walk_off(url: str, number: int, after_seconds: float, tokens: int) -> float:
    """So many clients ask for long streams and leave; gives the time when the last of them has."""
    truth = Truth()
    async with _client() as session:
        leaving = [
            _ask(session, url, _prompt(_seeded(place)), tokens, True, after_seconds, truth)
            for place in range(number)
        ]
        await asyncio.gather(*leaving)
    if set(truth.ends) != {"left"}:
        raise RuntimeError(f"clients were to walk off, not to see {truth.ends}")
    return time.time()


async def _user(
    session: httpx.AsyncClient, url: str, goes_on: Callable[[], bool], number: int, truth: Truth
) -> None:
    chance = _seeded(number)
    while goes_on():
        prompt, streams = _prompt(chance), chance.random() < 0.5
        # a third is too long for the gateway's time, a tenth for its client's patience
        tokens = ENDLESS_TOKENS if chance.random() < 0.3 else chance.randrange(10, 60)
        leave_after = LEAVE_SECONDS if tokens > 60 and chance.random() < 0.3 else None
        for _ in range(1 + RETRIES):
            end = await _ask(session, url, prompt, tokens, streams, leave_after, truth)
            if end == "done":
                break
            await asyncio.sleep(PAUSE_SECONDS)
            # who was kept waiting for a long answer settles for a short one
            tokens, leave_after = chance.randrange(10, 60), None


async def _ask(  # noqa: PLR0913, PLR0917 -- what is asked, for how long, and who wants to know
    session: httpx.AsyncClient,
    url: str,
    prompt: list[int],
    tokens: int,
    streams: bool,  # noqa: FBT001 -- a word of the protocol
    leave_after: float | None,
    truth: Truth,
) -> str:
    attempt, begin = uuid.uuid4().hex, time.time()
    body = {"model": "tiny", "prompt": prompt, "max_tokens": tokens, "ignore_eos": True, "stream": streams}
    headers = {"X-Request-Id": attempt}
    try:
        async with (
            asyncio.timeout(leave_after),
            session.stream("POST", f"{url}/v1/completions", json=body, headers=headers) as answer,
        ):
            async for _ in answer.aiter_bytes():
                pass
        end = "done" if answer.status_code == 200 else str(answer.status_code)
    except TimeoutError:
        end = "left"
    except httpx.HTTPError:
        end = "broken"
    truth.note(attempt, end, begin, leave_after)
    return end


def _seeded(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - repeatable on purpose, guards nothing


def _client() -> httpx.AsyncClient:
    return httpx.AsyncClient(
        timeout=60.0, trust_env=False, limits=httpx.Limits(max_connections=100, max_keepalive_connections=0)
    )


def _prompt(chance: random.Random) -> list[int]:
    return [chance.randrange(FIRST_TOKEN, LAST_TOKEN) for _ in range(60)]
