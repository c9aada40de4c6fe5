"""Reads one metrics page on fixed ticks, over and over, and keeps what came of it: what its sources share."""

from __future__ import annotations

import asyncio
import codecs
import logging
import math
import traceback
from abc import ABC, abstractmethod
from collections import Counter
from typing import Generic, TypeVar

from exporter.observation import SourceStatus
from exporter.sources.endpoint import Endpoint, Reply
from exporter.sources.failure import ReadFailedError, Reason, one_line

Result = TypeVar("Result")

_OFF_LOOP_BYTES = 1_000_000
"""A body above this is parsed in a thread: the first read of 1 MB holds the loop up for some 50 ms."""

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class PageSource(ABC, Generic[Result]):
    """One page: read each ``interval_seconds``, never two reads at once.

    Ticks that pass while a read is in flight are skipped; the next read keeps to the ticks. A read that
    fails leaves the last result as it was: what is too old to show is the cycle's to say. ``title`` is
    what the log calls the source; ``log`` is where it says so, once a change.
    """

    def __init__(
        self,
        name: str,
        title: str,
        endpoint: Endpoint,
        interval_seconds: float,
        log: logging.Logger,
    ) -> None:
        self._name = name
        self._title = title
        self._endpoint = endpoint
        self._interval = interval_seconds
        self._log = log
        self._result: Result | None = None
        self._at: float | None = None
        self._read_seconds: float | None = None
        self._answering = False
        self._errors: Counter[str] = Counter()
        self._last_error = ""
        self._state = ""  # what the log last spoke of: a reason, what is read, or nothing yet
        self._failures_in_a_row = 0
        self._known_bugs: set[tuple[str, int]] = set()

    @abstractmethod
    def _understand(self, reply: Reply) -> Result:
        """What a page says; perhaps in a thread. Raises ReadFailedError for a page of something else."""

    @abstractmethod
    def _what(self, result: Result) -> str:
        """What is being read, in a word for the log."""

    def _greet(self, result: Result) -> None:
        """Told once, after the first read that succeeds."""

    @property
    def name(self) -> str:
        """Unique among the sidecar's sources."""
        return self._name

    def _status(self, kind: str) -> SourceStatus:
        return SourceStatus(
            self._name,
            kind,
            self._answering,
            self._at,
            self._read_seconds,
            tuple(sorted(self._errors.items())),
            self._last_error,
        )

    async def run(self) -> None:
        """Read until cancelled, the first time at once."""
        loop = asyncio.get_running_loop()
        start = loop.time()
        try:
            while True:
                await self._read()
                passed = math.floor((loop.time() - start) / self._interval)
                await asyncio.sleep(start + (passed + 1) * self._interval - loop.time())
        finally:
            await self._endpoint.aclose()

    async def read_once(self) -> None:
        """One read; the connection is not kept."""
        try:
            await self._read()
        finally:
            await self._endpoint.aclose()

    async def _read(self) -> None:
        """One read, whatever comes of it. Raises nothing but cancellation."""
        try:
            reply = await self._endpoint.read()
            if len(reply.body) > _OFF_LOOP_BYTES:
                result = await asyncio.to_thread(self._understand, reply)
            else:
                result = self._understand(reply)
        except ReadFailedError as failure:
            self._failed(failure.reason, str(failure))
        except Exception as error:  # noqa: BLE001 - a bug of ours costs this read, not the watch
            self._failed(Reason.INTERNAL, self._bug_line(error))
        else:
            self._succeeded(result, reply)

    def _text(self, reply: Reply) -> bytes:
        """The body without a byte order mark. What the charset says is not asked: metrics are UTF-8."""
        body = reply.body.removeprefix(codecs.BOM_UTF8)
        if body.startswith(_UTF16):
            raise self._refusal(Reason.NOT_TEXT, "sends UTF-16", "let it, or the proxy before it, send UTF-8")
        if b"\0" in body:
            called = f" (it is called {one_line(reply.content_type, 60)})" if reply.content_type else ""
            raise self._refusal(
                Reason.NOT_TEXT, f"sends no text{called}", "check host, port and path of the URL"
            )
        return body

    def _refusal(self, reason: Reason, problem: str, remedy: str) -> ReadFailedError:
        return ReadFailedError(reason, self._endpoint.shown_url, problem, remedy)

    def _bug_line(self, error: Exception) -> str:
        """One line for a bug of ours; where it is new, the log gets the way to it too."""
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = (frame.filename, frame.lineno or 0)
        if place not in self._known_bugs:
            self._known_bugs.add(place)
            self._log.error("%s: an error in thrashold itself", self._title, exc_info=error)
        return (
            f"{self._endpoint.shown_url}: thrashold itself failed to read the page "
            f"({type(error).__name__}: {one_line(str(error), 120)}); please report this, with the page"
        )

    def _succeeded(self, result: Result, reply: Reply) -> None:
        is_first = self._result is None
        self._result, self._at, self._read_seconds = result, reply.at, reply.seconds
        self._answering = True
        self._last_error = ""
        what = self._what(result)
        if self._state != what:
            after = f" after {self._failures_in_a_row} failed reads" if self._failures_in_a_row else ""
            self._log.info("%s: reading %s at %s%s", self._title, what, self._endpoint.shown_url, after)
        self._state = what
        self._failures_in_a_row = 0
        if is_first:
            self._greet(result)

    def _failed(self, reason: Reason, line: str) -> None:
        self._answering = False
        self._errors[reason.value] += 1
        self._last_error = line
        self._failures_in_a_row += 1
        if self._state != reason.value:
            self._log.warning("%s: %s", self._title, line)
        self._state = reason.value
