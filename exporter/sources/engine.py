"""Reads one engine's /metrics on fixed ticks and keeps its newest sample."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from exporter.dialects.dialect import Dialect
from exporter.dialects.registry import detect, others_beside
from exporter.engine_settings import EngineSettings
from exporter.exposition import Reader
from exporter.facts import keys_for_bytes
from exporter.observation import ENGINE, Observation
from exporter.sample import EngineSample
from exporter.sources.endpoint import Endpoint, Reply
from exporter.sources.failure import Reason
from exporter.sources.lookalike import looks_like
from exporter.sources.page import PageSource

UNREADABLE_LINES = "unreadable_lines"
"""Noted on a sample: some lines of the page could not be read."""
SEVERAL_ENGINES = "several_engines"
"""Noted on a sample: another engine's series stand on the page too, and are not read."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Tongue:
    """A dialect, the reader that goes with it, and other engines whose series stand on the page."""

    dialect: Dialect[Any]
    reader: Reader[Any]
    others: tuple[str, ...] = ()


class EngineSource(PageSource[EngineSample]):
    """One engine, known by its name in the settings.

    ``clock`` gives seconds since the epoch and never jumps; a sample bears the time its request began.
    """

    def __init__(self, settings: EngineSettings, clock: Callable[[], float], interval_seconds: float) -> None:
        title = f"engine {settings.name}"
        super().__init__(settings.name, title, Endpoint(settings, clock), interval_seconds, _log)
        self._settings = settings
        self._tongue: _Tongue | None = None

    def observe(self) -> Observation:
        """The newest sample, however old, and how the reading goes."""
        return Observation(self._status(ENGINE), self._result)

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
                others = tuple(other.title for other in others_beside(dialect, names))
                self._tongue = tongue = _Tongue(dialect, Reader(dialect.interpret), others)
                self._warn_of(others)
                sample = self._sampled(tongue, body, reply)
        notes = sample.notes
        if tongue.others:
            notes = (*notes, SEVERAL_ENGINES)
        if tongue.reader.rejected_lines:
            notes = (*notes, UNREADABLE_LINES)
        return sample if notes is sample.notes else replace(sample, notes=notes)

    def _sampled(self, tongue: _Tongue, body: bytes, reply: Reply) -> EngineSample:
        return tongue.dialect.sample(
            tongue.reader.read(body), engine=self._name, at=reply.at, read_seconds=reply.seconds
        )

    def _warn_of(self, others: tuple[str, ...]) -> None:
        if others:
            _log.warning(
                "engine %s: %s holds series of %s as well, which are not read; give each engine a URL of its own",
                self._name,
                self._endpoint.shown_url,
                " and ".join(others),
            )

    def _what(self, sample: EngineSample) -> str:
        return sample.kind

    def _greet(self, sample: EngineSample) -> None:
        """Say once why a whole group of signals stays absent: it looks like a fault and is a choice."""
        keys = keys_for_bytes(self._settings, sample)
        has_blocks = any(rank.block_tokens is not None or rank.block_group_tokens for rank in sample.ranks)
        if keys and (has_blocks or self._settings.block_group_tokens):
            _log.info(
                "engine %s: tail_fragmentation_bytes and swapped blocks stay absent until a --config FILE sets %s or %s"
                " for it (docs/settings.md); bytes that the engine counts itself need neither",
                self._name,
                ", ".join(keys[:-1]),
                keys[-1],
            )
