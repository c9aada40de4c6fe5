"""Reads pieces from a server, several at a time: halves what it refuses, keeps what can't change, says what is lost."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import ParamSpec, TypeVar

from analysis.history.history import HistoryError
from analysis.history.samples import Samples
from analysis.history.server_asked import Asked
from analysis.history.server_cache import Cache
from analysis.history.server_client import Client, Form, GoneError, TooMuchError
from analysis.history.server_json import Answer, UnreadableError, read_export, read_matrix
from analysis.history.server_plan import Piece, halves

_MOST_REFUSALS = 40
"""In a row, without one answer: the server refuses anything then."""
_OF_SERIES = "series"
"""A refusal that speaks of them is for too many of them, whatever the time: then names are fewer first."""


P = ParamSpec("P")
Result = TypeVar("Result")


class _KnownError(TooMuchError):
    """The server refused that before."""


@dataclass(slots=True)
class Told:
    """What is to be said afterwards."""

    warnings: set[str] = field(default_factory=set)
    histograms: int = 0
    disordered: int = 0
    strays: int = 0
    lost: list[Piece] = field(default_factory=list)
    undated: bool = False
    """Whether it couldn't be told how often series come."""
    refusal: str = ""
    stopped: str = ""
    samples: int = 0


class Reader:
    """One reading of one server. ``select`` gives the selector of some names."""

    def __init__(
        self, client: Client, asked: Asked, select: Callable[[Sequence[str]], str], *, exports: bool
    ) -> None:
        self.told = Told()
        self._client = client
        self._asked = asked
        self._select = select
        self._exports = exports
        self._ceiling = math.inf
        self._largest = 1.0
        self._ceiling_words = ""
        self._refusals = 0
        self._working = asyncio.Lock()
        self._todo = 0.0
        self._done = 0.0

    def expect(self, pieces: Iterable[Piece]) -> None:
        """Count on these being read: what progress is a share of."""
        self._todo += sum(each.expected for each in pieces)

    async def read(self, pieces: Iterable[Piece], done: Callable[[Piece, Answer], None]) -> None:
        """Read them all, in about this order, and hand each over as it comes, perhaps as several.

        Stops where the server is gone, or says what can't be read, and tells so in ``told``. Raises what ``done`` does.
        """
        waiting = deque(pieces)
        running: dict[asyncio.Task[Answer], Piece] = {}
        try:
            while (waiting or running) and not self.told.stopped:
                while waiting and len(running) < self._asked.server.parallel:
                    piece = waiting.popleft()
                    parts = self._cut(piece)
                    if parts:
                        waiting.extendleft(reversed(parts))
                    else:
                        running[asyncio.create_task(self._piece(piece))] = piece
                finished, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in finished:
                    piece = running.pop(task)
                    # at the end: a day that can't be had keeps no other from being read
                    waiting.extend(self._finish(task, piece, done))
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _finish(
        self, task: asyncio.Task[Answer], piece: Piece, done: Callable[[Piece, Answer], None]
    ) -> tuple[Piece, ...]:
        """Hand over what came; gives what has to be asked for instead."""
        try:
            answer = task.result()
        except _KnownError as known:
            # no reason to cut others: they may be kept whole
            return self._refused(piece, str(known))
        except TooMuchError as refused:
            words = str(refused)
            if not _is_of_series(words):
                self._ceiling = max(self._largest, min(self._ceiling, piece.expected / 2))
                self._ceiling_words = words if refused.lasting else ""
            return self._refused(piece, words)
        except (GoneError, HistoryError) as ended:
            # what was read is good all the same
            self.told.stopped = self.told.stopped or str(ended)
            return ()
        self._refusals = 0
        self._largest = max(self._largest, piece.expected)
        self._tell(answer)
        done(piece, answer)
        self._go_on(piece)
        return ()

    def _refused(self, piece: Piece, words: str) -> tuple[Piece, ...]:
        self.told.refusal = words
        if self._refusals >= _MOST_REFUSALS:
            self.told.stopped = f"{self._client.shown_url}: refuses even little at a time: {words}"
            return ()
        parts = halves(piece, names_first=_is_of_series(words))
        if not parts:
            self.told.lost.append(piece)
            self._go_on(piece)
        return parts

    def _cut(self, piece: Piece) -> tuple[Piece, ...]:
        """A piece in two where one of that size was refused, unless it was read before."""
        if piece.expected <= self._ceiling:
            return ()
        cache = self._cache_of(piece)
        if cache is not None and cache.has(self._select(piece.names), piece.start, piece.end):
            return ()
        parts = halves(piece)
        if parts and self._ceiling_words:
            self._keep_refusal(piece, self._ceiling_words)
        return parts

    def _keep_refusal(self, piece: Piece, words: str) -> None:
        cache = self._cache_of(piece)
        if cache is not None:
            cache.put_refusal(self._select(piece.names), piece.start, piece.end, words)

    def _cache_of(self, piece: Piece) -> Cache | None:
        """Where to keep what doesn't change any more."""
        return self._asked.cache if piece.end <= self._asked.settled else None

    def _tell(self, answer: Answer) -> None:
        told = self.told
        told.warnings.update(answer.warnings)
        told.histograms += answer.histograms
        told.disordered += answer.disordered
        told.samples += sum(len(each.times) for each in answer.series)

    def _go_on(self, piece: Piece) -> None:
        self._done += piece.expected
        if self._asked.progress is not None:
            self._asked.progress(min(1.0, self._done / self._todo) if self._todo else 1.0, self.told.samples)

    async def _piece(self, piece: Piece) -> Answer:
        selector = self._select(piece.names)
        cache = self._cache_of(piece)
        if cache is not None:
            kept = await self._aside(cache.get, selector, piece.start, piece.end)
            if kept is not None:
                return kept
            words = await self._aside(cache.refusal, selector, piece.start, piece.end)
            if words is not None:
                raise _KnownError(words)
        try:
            answer = await self._asked_for(selector, piece)
        except TooMuchError as refused:
            self._refusals += 1
            if refused.lasting:
                self._keep_refusal(piece, str(refused))
            raise
        answer, strays = _within(answer, piece)
        self.told.strays += strays
        if cache is not None and not answer.warnings:  # a part may be missing then
            await self._aside(cache.put, selector, piece.start, piece.end, answer)
        return answer

    async def _aside(self, work: Callable[P, Result], *arguments: P.args, **named: P.kwargs) -> Result:
        """In a thread, one after the other: two would be no faster, and take twice the memory."""
        async with self._working:
            return await asyncio.to_thread(work, *arguments, **named)

    async def _asked_for(self, selector: str, piece: Piece) -> Answer:
        answer = await self._exported(selector, piece) if self._exports else None
        # an export that is empty may be none
        return answer if answer is not None and answer.series else await self._queried(selector, piece)

    async def _queried(self, selector: str, piece: Piece) -> Answer:
        """By an instant query: raw samples, and no limit of how many instants."""
        form: Form = (
            ("query", f"{selector}[{piece.length}ms]"),
            ("time", f"{piece.end / 1000:.3f}"),
        )
        return await self._read("/api/v1/query", form, read_matrix)

    async def _exported(self, selector: str, piece: Piece) -> Answer:
        form: Form = (
            ("match[]", selector),
            ("start", f"{(piece.start + 1) / 1000:.3f}"),
            ("end", f"{piece.end / 1000:.3f}"),
        )
        return await self._read("/api/v1/export", form, read_export)

    async def _read(self, path: str, form: Form, read: Callable[[bytes], Answer]) -> Answer:
        body = await self._client.ask(path, form)
        try:
            return await self._aside(read, body)
        except UnreadableError as error:
            raise HistoryError(
                f"{self._client.shown_url}: {path} sent what can't be read: {error}"
            ) from error


def _within(answer: Answer, piece: Piece) -> tuple[Answer, int]:
    """What lies in the piece, and how many samples lie before or after it.

    Prometheus before 3.0 gives what stands at the very start too, which is the piece's before.
    """
    start, end = (piece.start + 0.5) / 1000, (piece.end + 0.5) / 1000
    series, strays = [], 0
    for each in answer.series:
        low, high = each.times.searchsorted((start, end))
        before = int(low) - int(each.times[:low].searchsorted(start - 0.001))
        strays += len(each.times) - int(high - low) - before
        whole = low == 0 and high == len(each.times)
        series.append(each if whole else Samples(each.key, each.times[low:high], each.values[low:high]))
    return replace(answer, series=tuple(each for each in series if len(each.times))), strays


def _is_of_series(words: str) -> bool:
    return _OF_SERIES in words.lower()
