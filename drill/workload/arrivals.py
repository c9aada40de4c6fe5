"""A stream of requests that users make, in the order of time, whatever becomes of them. See docs/drill.md."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np

from drill.serving.content import Segment
from drill.workload.contents import content_id


@dataclass(frozen=True, slots=True)
class Turn:
    """What a session sends next, ``think_seconds`` after it has its answer.

    ``content`` is new. ``continues``: the prompt begins with all that was said so far, the answer included; else
    it is ``content`` alone.
    """

    think_seconds: float
    content: tuple[Segment, ...]
    output_tokens: int
    continues: bool = True


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request, or the first one of a session, whose ``turns`` follow in a closed loop.

    ``seconds`` on the drill's clock. ``content``, of which the prompt consists, and ``answer`` are those of a
    ``Request``; the answers that a session's own turns quote need no id. The session sends nothing from
    ``leaves_seconds`` on.
    """

    seconds: float
    content: tuple[Segment, ...]
    output_tokens: int
    tenant: str = ""
    client: str = ""
    answer: int | None = None
    turns: Sequence[Turn] = ()
    leaves_seconds: float = math.inf

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the prompt."""
        return sum(segment.tokens for segment in self.content)


@dataclass(frozen=True, slots=True)
class Stream:
    """Arrivals in the order of time. ``make`` gives them from the first one on, the same whenever it is called."""

    make: Callable[[], Iterable[Arrival]]

    def __iter__(self) -> Iterator[Arrival]:
        return iter(self.make())

    def beside(self, *others: Stream) -> Stream:
        """Together with others."""
        return Stream(lambda: heapq.merge(self, *others, key=_seconds))

    def shifted(self, seconds: float) -> Stream:
        """Later by so many seconds, earlier where negative; what would come before 0 is left out."""
        return self.warped(lambda at: at + seconds).between(0.0, math.inf)

    def between(self, start: float, end: float) -> Stream:
        """Those that arrive from ``start`` on and before ``end``."""
        return Stream(lambda: _between(self, start, end))

    def warped(self, clock: Callable[[float], float]) -> Stream:
        """Each at the time that ``clock`` makes of its own, and never falls. ``lambda at: at / 2``: twice as fast."""
        return Stream(lambda: (replace(one, seconds=clock(one.seconds)) for one in self))

    def scaled(self, factor: float, seed: int = 0) -> Stream:
        """``factor`` times as many: some left out by chance, or come again at the same time. Raises ValueError.

        Those that come again have contents of their own: what shares a beginning in the stream does so among
        its copies, but no copy with the stream.
        """
        if not 0 <= factor < math.inf:
            raise ValueError(f"a stream can't be scaled by {factor}: take a number from 0 on")
        return Stream(lambda: _scaled(self, factor, seed))


def _seconds(arrival: Arrival) -> float:
    return arrival.seconds


def _between(stream: Stream, start: float, end: float) -> Iterator[Arrival]:
    for arrival in stream:
        if arrival.seconds >= end:
            return
        if arrival.seconds >= start:
            yield arrival


def _scaled(stream: Stream, factor: float, seed: int) -> Iterator[Arrival]:
    chance = np.random.default_rng(seed)
    whole = int(factor)
    for arrival in stream:
        times = whole + (chance.random() < factor - whole)
        if times:
            yield arrival
        for copy in range(1, times):
            yield _copy(arrival, content_id(seed, copy))


def _copy(arrival: Arrival, mark: int) -> Arrival:
    return replace(
        arrival,
        content=_marked(arrival.content, mark),
        client=f"{arrival.client}+{mark % 1000}" if arrival.client else "",
        answer=None if arrival.answer is None else content_id(mark, arrival.answer),
        turns=_MarkedTurns(arrival.turns, mark) if arrival.turns else (),
    )


@dataclass(frozen=True, slots=True)
class _MarkedTurns(Sequence[Turn]):
    turns: Sequence[Turn]
    mark: int

    def __len__(self) -> int:
        return len(self.turns)

    @overload
    def __getitem__(self, index: int) -> Turn: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Turn]: ...
    def __getitem__(self, index: int | slice) -> Turn | Sequence[Turn]:
        if isinstance(index, slice):
            return _MarkedTurns(self.turns[index], self.mark)
        turn = self.turns[index]
        return replace(turn, content=_marked(turn.content, self.mark))


def _marked(content: tuple[Segment, ...], mark: int) -> tuple[Segment, ...]:
    return tuple(Segment(content_id(mark, part.content), part.tokens) for part in content)
