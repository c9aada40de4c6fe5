"""Load from parameters: requests that come whatever happens (open loop), and sessions that wait (closed loop).

Streams of one seed have the same contents; those that are to share none take different seeds.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np

from drill.serving.content import Segment
from drill.workload.arrivals import Arrival, Stream, Turn
from drill.workload.contents import content_id
from drill.workload.lengths import Lengths
from drill.workload.rates import Rate

_SYSTEM, _DOCUMENT, _OWN, _ANSWER = range(4)
"""Kinds of contents."""
_ENDLESS_TURNS = 1 << 30


@dataclass(frozen=True, slots=True)
class Load:
    """What requests look like.

    A prompt is a system prompt of ``system_tokens``, one of ``systems``, and then ``prompt`` tokens: its own, or one of
    ``documents`` that all share, where that is above 0. ``clients`` > 0: each is sent under one of so many names.
    """

    prompt: Lengths
    output: Lengths
    system_tokens: int = 0
    systems: int = 1
    documents: int = 0
    tenant: str = ""
    clients: int = 0

    def __post_init__(self) -> None:
        if self.system_tokens < 0 or self.systems < 1 or self.documents < 0 or self.clients < 0:
            raise ValueError(
                f"system_tokens {self.system_tokens}, systems {self.systems}, documents {self.documents}, clients "
                f"{self.clients}: none below 0, and one system prompt at least"
            )


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns after the first one: how many, each with how many new tokens, and the mean of the time before each."""

    turns: Lengths
    prompt: Lengths
    think_seconds: float


def open_loop(
    load: Load, rate: Rate, seed: int, variation: float = 1.0, conversation: Conversation | None = None
) -> Stream:
    """Requests that come at a rate; ``variation`` as of Rate.times.

    With a conversation, turns follow whether there was an answer or not, each quoting all before it.
    """
    return Stream(lambda: _open(load, rate, seed, variation, conversation))


def closed_loop(
    load: Load, starts: Rate, seed: int, *, think_seconds: float, leaves_seconds: float = math.inf
) -> Stream:
    """Sessions that begin at a rate, evenly; each asks, waits for the answer, thinks for a while, and asks anew.

    Times to think are exponential. All questions are of the load's kind and quote nothing. 750 sessions within 10 s:
    ``Rate.constant(75, 10)``.
    """
    return Stream(lambda: _sessions(load, starts, seed, think_seconds, leaves_seconds))


def conversations(
    load: Load, starts: Rate, seed: int, conversation: Conversation, variation: float = 1.0
) -> Stream:
    """Sessions that begin at a rate; each turn quotes all before it, and comes a while after the answer."""
    return Stream(lambda: _conversations(load, starts, seed, conversation, variation))


def _open(
    load: Load, rate: Rate, seed: int, variation: float, conversation: Conversation | None
) -> Iterator[Arrival]:
    chance = np.random.default_rng((seed, 0))
    later: list[tuple[float, int, Arrival]] = []
    for number, at in enumerate(rate.times(chance, variation)):
        while later and later[0][0] <= at:
            yield heapq.heappop(later)[2]
        first = _first(load, at, (seed, number), chance)
        if conversation is not None:
            first = replace(first, answer=content_id(seed, _ANSWER, number, 0))
        yield first
        if conversation is not None:
            for place, turn in enumerate(_following(first, (seed, number), conversation, chance)):
                heapq.heappush(later, (turn.seconds, number << 32 | place, turn))
    while later:
        yield heapq.heappop(later)[2]


def _sessions(
    load: Load, starts: Rate, seed: int, think_seconds: float, leaves_seconds: float
) -> Iterator[Arrival]:
    for number, at in enumerate(starts.times(np.random.default_rng((seed, 0)), 0.0)):
        first = _first(load, at, (seed, number), np.random.default_rng((seed, 1, number)))
        turns = _DrawnTurns(load, (seed, number), think_seconds)
        yield replace(first, turns=turns, leaves_seconds=leaves_seconds)


def _conversations(
    load: Load, starts: Rate, seed: int, conversation: Conversation, variation: float
) -> Iterator[Arrival]:
    chance = np.random.default_rng((seed, 0))
    for number, at in enumerate(starts.times(chance, variation)):
        first = _first(load, at, (seed, number), chance)
        turns = tuple(
            Turn(
                float(chance.exponential(conversation.think_seconds)),
                (Segment(content_id(seed, _OWN, number, place), conversation.prompt.draw(chance)),),
                load.output.draw(chance),
            )
            for place in range(1, conversation.turns.draw(chance) + 1)
        )
        yield replace(first, turns=turns)


@dataclass(frozen=True, slots=True)
class _DrawnTurns(Sequence[Turn]):
    """A session's questions without end, each drawn when it is asked for, always the same."""

    load: Load
    session: tuple[int, int]
    think_seconds: float

    def __len__(self) -> int:
        return _ENDLESS_TURNS

    @overload
    def __getitem__(self, index: int) -> Turn: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Turn]: ...
    def __getitem__(self, index: int | slice) -> Turn | Sequence[Turn]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        seed, session = self.session
        chance = np.random.default_rng((seed, 2, session, index))
        think = float(chance.exponential(self.think_seconds))
        content = _prompt(self.load, (seed, session, index + 1), chance)
        return Turn(think, content, self.load.output.draw(chance), continues=False)


def _first(load: Load, at: float, mark: tuple[int, ...], chance: np.random.Generator) -> Arrival:
    client = f"{load.tenant}-{int(chance.integers(load.clients))}" if load.clients else ""
    content = _prompt(load, mark, chance)
    return Arrival(at, content, load.output.draw(chance), load.tenant, client)


def _prompt(load: Load, mark: tuple[int, ...], chance: np.random.Generator) -> tuple[Segment, ...]:
    seed = mark[0]
    if load.documents:
        which = int(chance.integers(load.documents))
        tokens = load.prompt.draw(np.random.default_rng((seed, 3, which)))
        main = Segment(content_id(seed, _DOCUMENT, which), tokens)
    else:
        main = Segment(content_id(seed, _OWN, *mark[1:]), load.prompt.draw(chance))
    if not load.system_tokens:
        return (main,)
    which = int(chance.integers(load.systems))
    return (Segment(content_id(seed, _SYSTEM, which), load.system_tokens), main)


def _following(
    first: Arrival, mark: tuple[int, int], conversation: Conversation, chance: np.random.Generator
) -> Iterator[Arrival]:
    """The turns after the first one, at times of their own, in the order of time."""
    before = first
    for place in range(1, conversation.turns.draw(chance) + 1):
        said = (
            *before.content,
            Segment(content_id(mark[0], _ANSWER, mark[1], place - 1), before.output_tokens),
        )
        new = Segment(content_id(mark[0], _OWN, mark[1], place), conversation.prompt.draw(chance))
        before = replace(
            before,
            seconds=before.seconds + float(chance.exponential(conversation.think_seconds)),
            content=(*said, new),
            answer=content_id(mark[0], _ANSWER, mark[1], place),
        )
        yield before
