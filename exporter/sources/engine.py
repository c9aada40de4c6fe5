"""Reads one engine's /metrics on fixed ticks and keeps its newest sample."""

from __future__ import annotations

import asyncio
import codecs
import logging
import math
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from exporter.dialects.dialect import Dialect
from exporter.dialects.registry import detect
from exporter.engine_settings import EngineSettings
from exporter.exposition import Reader
from exporter.facts import keys_for_bytes
from exporter.observation import ENGINE, Observation, SourceStatus
from exporter.sample import EngineSample
from exporter.sources.endpoint import Endpoint, Reply
from exporter.sources.failure import ReadFailedError, Reason, one_line
from exporter.sources.lookalike import looks_like

UNREADABLE_LINES = "unreadable_lines"
"""Noted on a sample: some lines of the page could not be read."""

_OFF_LOOP_BYTES = 1_000_000
"""A body above this is parsed in a thread: the first read of 1 MB holds the loop up for some 50 ms."""

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Tongue:
    """A dialect, and the reader that goes with it."""

    dialect: Dialect[Any]
    reader: Reader[Any]


class EngineSource:
    """One engine: read each ``interval_seconds``, never two reads at once.

    Ticks that pass while a read is in flight are skipped; the next read keeps to the ticks. ``clock``
    gives seconds since the epoch and never jumps; a sample bears the time its request began. A read
    that fails leaves the last sample as it was: what is too old to show is the cycle's to say.
    """

    def __init__(self, settings: EngineSettings, clock: Callable[[], float], interval_seconds: float) -> None:
        self._settings = settings
        self._name = settings.name
        self._interval = interval_seconds
        self._endpoint = Endpoint(settings, clock)
        self._tongue: _Tongue | None = None
        self._sample: EngineSample | None = None
        self._answering = False
        self._errors: Counter[str] = Counter()
        self._last_error = ""
        self._state = ""  # what the log last spoke of: a reason, an engine's kind, or nothing yet
        self._failures_in_a_row = 0
        self._known_bugs: set[tuple[str, int]] = set()

    @property
    def name(self) -> str:
        """The engine's name in the settings."""
        return self._name

    def observe(self) -> Observation:
        """The newest sample, however old, and how the reading goes."""
        sample = self._sample
        status = SourceStatus(
            self._name,
            ENGINE,
            self._answering,
            None if sample is None else sample.at,
            None if sample is None else sample.read_seconds,
            tuple(sorted(self._errors.items())),
            self._last_error,
        )
        return Observation(status, sample)

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
                sample = await asyncio.to_thread(self._understand, reply)
            else:
                sample = self._understand(reply)
        except ReadFailedError as failure:
            self._failed(failure.reason, str(failure))
        except Exception as error:  # noqa: BLE001 - a bug of ours costs this read, not the engine's watch
            self._failed(Reason.INTERNAL, self._bug_line(error))
        else:
            self._succeeded(sample)

    def _understand(self, reply: Reply) -> EngineSample:
        """The sample of a page. Raises ReadFailedError for a page that is no engine's."""
        body = self._text(reply)
        tongue = self._tongue
        sample = None if tongue is None else self._sampled(tongue, body, reply)
        if tongue is None or sample is None or not sample.ranks:
            # The first page, or one without a word of the dialect: another engine may have moved in.
            names: set[str] = set()
            Reader(lambda series: names.add(series.name)).read(body)
            dialect = detect(names)
            if dialect is None:
                self._tongue = None
                problem, remedy = looks_like(body, names)
                raise self._refusal(Reason.NOT_AN_ENGINE, problem, remedy)
            if tongue is None or sample is None or dialect.kind != tongue.dialect.kind:
                self._tongue = tongue = _Tongue(dialect, Reader(dialect.interpret))
                sample = self._sampled(tongue, body, reply)
        if tongue.reader.rejected_lines:
            return replace(sample, notes=(*sample.notes, UNREADABLE_LINES))
        return sample

    def _sampled(self, tongue: _Tongue, body: bytes, reply: Reply) -> EngineSample:
        return tongue.dialect.sample(
            tongue.reader.read(body), engine=self._name, at=reply.at, read_seconds=reply.seconds
        )

    def _text(self, reply: Reply) -> bytes:
        """The body without a byte order mark. What the charset says is not asked: engines send UTF-8."""
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
            _log.error("engine %s: an error in thrashold itself", self._name, exc_info=error)
        return (
            f"{self._endpoint.shown_url}: thrashold itself failed to read the page "
            f"({type(error).__name__}: {one_line(str(error), 120)}); please report this, with the page"
        )

    def _succeeded(self, sample: EngineSample) -> None:
        is_first = self._sample is None
        self._sample = sample
        self._answering = True
        self._last_error = ""
        if self._state != sample.kind:
            after = f" after {self._failures_in_a_row} failed reads" if self._failures_in_a_row else ""
            _log.info(
                "engine %s: reading %s at %s%s", self._name, sample.kind, self._endpoint.shown_url, after
            )
        self._state = sample.kind
        self._failures_in_a_row = 0
        if is_first:
            self._say_what_bytes_need(sample)

    def _say_what_bytes_need(self, sample: EngineSample) -> None:
        """Say once why a whole group of signals stays absent: it looks like a fault and is a choice."""
        keys = keys_for_bytes(self._settings, sample)
        if keys:
            _log.info(
                "engine %s: signals in bytes of KV cache stay absent until a --config FILE sets %s or %s for it"
                " (docs/settings.md)",
                self._name,
                ", ".join(keys[:-1]),
                keys[-1],
            )

    def _failed(self, reason: Reason, line: str) -> None:
        self._answering = False
        self._errors[reason.value] += 1
        self._last_error = line
        self._failures_in_a_row += 1
        if self._state != reason.value:
            _log.warning("engine %s: %s", self._name, line)
        self._state = reason.value
