"""A load client for one phase, run by the engine's own Python (its HTTP client is the lightest at hand).

``python drive.py URL PHASE SECONDS DRAIN LOG``: so many clients one after the other as the phase says, each
asking for streamed completions until SECONDS are over, then up to DRAIN seconds for what is
still running. LOG gets one JSON line a request: what its client saw.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

import aiohttp  # the engine brings it

FIRST_TOKEN, LAST_TOKEN = 260, 2000  # past the bytes and the special tokens
PREFIX_TOKENS, PREFIXES = 256, 4
RETRIES = 2
PAUSE_SECONDS = 3.0  # a crowd that hammers a gateway takes the core that its engine starts on


@dataclass(frozen=True)
class Phase:
    """How many clients ask for what; ``leaving`` is the share of requests whose client walks off.

    ``stays``: who meets an error asks on after ``PAUSE_SECONDS``, as where what answers is killed and comes back.
    """

    clients: int
    prompt: tuple[int, int]
    answer: tuple[int, int]
    leaving: float
    stays: bool = False


@dataclass(frozen=True)
class Question:
    """What a client asks, once or more often.

    The first ``shared_tokens`` of its prompt are those of the prefix with that number; None: it begins like no other.
    """

    name: str
    prompt: list[int]
    max_tokens: int
    prefix: int | None
    shared_tokens: int


@dataclass
class Seen:
    """One request as its client saw it, and what was asked.

    The engine knows it as ``cmpl-``, ``id`` and more; what has the same ``question`` has the same prompt.
    """

    phase: str
    id: str
    question: str
    prompt_tokens: int
    max_tokens: int
    prefix: int | None
    shared_tokens: int
    begin: float
    over: float = 0.0
    end: str = "error"
    error: str = ""
    tokens: int = 0
    first: float | None = None
    last: float | None = None
    max_gap: float = 0.0

    def token(self) -> None:
        """Another one came in."""
        now = time.time()
        if self.last is None:
            self.first = now
        else:
            self.max_gap = max(self.max_gap, now - self.last)
        self.last = now
        self.tokens += 1


PHASES = {
    "load": Phase(6, (50, 400), (32, 200), 0.05),
    # three times what the cache holds: sequences must be preempted
    "overload": Phase(24, (200, 1100), (200, 800), 0.25),
    # short prompts, long answers: the pool is full at any time; who asks waits for it, whatever is killed meanwhile
    "pressure": Phase(80, (32, 96), (100, 250), 0.0, stays=True),
    # as many as run under overload, and no more: nobody is preempted
    "toggled": Phase(8, (50, 200), (200, 400), 0.0),
    "steady": Phase(3, (50, 200), (700, 1000), 0.0),
    "doomed": Phase(3, (50, 200), (1000, 1200), 0.0),
}


class Client:
    """One user: asks, reads, asks again."""

    def __init__(self, session: aiohttp.ClientSession, url: str, name: str, number: int, log: TextIO) -> None:
        """The ``number``-th client of the phase called ``name``."""
        self._session, self._url, self._name, self._log = session, url, name, log
        self._number, self._asked = number, 0
        self._phase = PHASES[name]
        self._random = _seeded(f"{name} {number}")  # the same questions each time

    async def until(self, deadline: float) -> None:
        """Ask one thing after the other."""
        chance, phase = self._random, self._phase
        while time.time() < deadline:
            question = self._question()
            leave_after = chance.randrange(5, 80) if chance.random() < phase.leaving else None
            for attempt in range(1 + RETRIES):
                end = await self._ask(question, attempt, leave_after)
                if end == "error" and not phase.stays:
                    return
                if end == "error":
                    await asyncio.sleep(PAUSE_SECONDS)
                    break
                if end == "done" or time.time() > deadline:
                    break
                await asyncio.sleep(0.1)  # who walked off comes back with the same question, mostly to stay
                leave_after = leave_after if chance.random() < 0.3 else None
            await asyncio.sleep(chance.random() * 0.2)

    def _question(self) -> Question:
        length = self._random.randrange(*self._phase.prompt)
        prefix = self._random.randrange(PREFIXES) if self._random.random() < 0.6 else None
        start = self._random if prefix is None else _seeded(str(prefix))
        shared = min(length, PREFIX_TOKENS)
        prompt = [start.randrange(FIRST_TOKEN, LAST_TOKEN) for _ in range(shared)]
        prompt += [self._random.randrange(FIRST_TOKEN, LAST_TOKEN) for _ in range(length - shared)]
        self._asked += 1
        return Question(
            f"{self._name}.{self._number}.{self._asked}",
            prompt,
            self._random.randrange(*self._phase.answer),
            prefix,
            0 if prefix is None else shared,
        )

    async def _ask(self, question: Question, attempt: int, leave_after: int | None) -> str:
        seen = Seen(
            self._name,
            f"{question.name}.{attempt}",
            question.name,
            len(question.prompt),
            question.max_tokens,
            question.prefix,
            question.shared_tokens,
            time.time(),
        )
        body = {
            "model": "tiny",
            "prompt": question.prompt,
            "max_tokens": question.max_tokens,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        url = f"{self._url}/v1/completions"
        try:
            async with self._session.post(url, json=body, headers={"X-Request-Id": seen.id}) as answer:
                answer.raise_for_status()
                seen.end = await _read(answer, seen, leave_after)
                if seen.end == "left":
                    answer.close()  # the connection goes, as when a browser tab is shut
        except asyncio.CancelledError:
            seen.end = "cut"
            raise
        except (aiohttp.ClientError, OSError) as error:
            seen.error = repr(error)[:200]
        finally:
            seen.over = time.time()
            self._log.write(json.dumps(asdict(seen)) + "\n")
        return seen.end


async def _read(answer: aiohttp.ClientResponse, seen: Seen, leave_after: int | None) -> str:
    """How the stream ended: ``done``, ``left``, or ``error`` when it lacks its last word."""
    end = "error"
    async for line in answer.content:
        if not line.startswith(b"data:"):
            continue
        if line.startswith(b"data: [DONE]"):
            break
        if b'"choices":[]' in line:  # the last chunk says how many tokens there really were
            seen.tokens = json.loads(line[5:])["usage"]["completion_tokens"]
            end = "done"
        elif b'"error"' in line:
            seen.error = line[5:205].decode(errors="replace")
        else:
            seen.token()
            if leave_after and seen.tokens >= leave_after:
                return "left"
    return end


def _seeded(seed: str) -> random.Random:
    return random.Random(seed)  # noqa: S311 - repeatable on purpose, guards nothing


async def main(url: str, name: str, seconds: float, drain_seconds: float, log: TextIO) -> None:
    """Drive one phase to its end."""
    deadline = time.time() + seconds
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as session:
        clients = [Client(session, url, name, i, log) for i in range(PHASES[name].clients)]
        tasks = [asyncio.create_task(client.until(deadline)) for client in clients]
        _, late = await asyncio.wait(tasks, timeout=seconds + drain_seconds)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)


if __name__ == "__main__":
    with Path(sys.argv[5]).open("a", buffering=1, encoding="utf-8") as log_file:
        asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]), log_file))
