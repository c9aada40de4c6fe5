"""Reads one gateway's stats on fixed ticks and keeps its newest sample."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from exporter.dialects.gateway_dialect import AmbiguousError, Asked, GatewayDialect
from exporter.dialects.gateways import detect_gateway
from exporter.exposition import Reader
from exporter.gateway_sample import GatewaySample
from exporter.gateway_settings import GatewaySettings
from exporter.observation import Observation
from exporter.sources.endpoint import Endpoint, Reply
from exporter.sources.failure import GATEWAY, Reason
from exporter.sources.lookalike_gateway import not_a_gateway
from exporter.sources.page import PageSource

_log = logging.getLogger(__name__)

_WORTH_A_WORD = {
    "several_listeners": "requests come to several listeners: requests and outcomes stay absent until a --config FILE"
    " sets its listener",
    "several_services": "it sends requests to other clusters too: requests and outcomes stay absent until a --config"
    " FILE sets its listener",
}


@dataclass(frozen=True, slots=True)
class _Tongue:
    """A dialect, and the reader that goes with it."""

    dialect: GatewayDialect[Any]
    reader: Reader[Any]


class GatewaySource(PageSource[GatewaySample]):
    """One gateway, known by its name in the settings.

    ``clock`` gives seconds since the epoch and never jumps; a sample bears the time its request began.
    """

    def __init__(
        self, settings: GatewaySettings, clock: Callable[[], float], interval_seconds: float
    ) -> None:
        title = f"gateway {settings.name}"
        endpoint = Endpoint(settings, clock, GATEWAY)
        super().__init__(settings.name, title, endpoint, interval_seconds, _log)
        self._asked = Asked(settings.name, settings.cluster, settings.listener)
        self._kind = settings.kind
        self._tongue: _Tongue | None = None
        self._said: set[str] = set()

    def observe(self) -> Observation:
        """The newest sample, however old, and how the reading goes."""
        return Observation(self._status("gateway"), gateway=self._result)

    def _understand(self, reply: Reply) -> GatewaySample:
        body = self._text(reply)
        tongue = self._tongue
        readings = [] if tongue is None else tongue.reader.read(body)
        if tongue is None or not readings:
            # The first page, or one without a word of the dialect: another gateway may have moved in.
            self._tongue = tongue = self._told(body)
            readings = tongue.reader.read(body)
        try:
            sample = tongue.dialect.sample(readings, self._asked, at=reply.at, read_seconds=reply.seconds)
        except AmbiguousError as error:
            raise self._refusal(Reason.AMBIGUOUS, error.problem, error.remedy) from error
        self._say_once(sample)
        if tongue.reader.rejected_lines:
            return replace(sample, notes=(*sample.notes, "unreadable_lines"))
        return sample

    def _told(self, body: bytes) -> _Tongue:
        names: set[str] = set()
        Reader(lambda series: names.add(series.name)).read(body)
        dialect = detect_gateway(names, self._kind)
        if dialect is None:
            self._tongue = None
            raise self._refusal(Reason.NOT_A_GATEWAY, *not_a_gateway(body, names, self._kind))
        return _Tongue(dialect, Reader(dialect.interpret))

    def _what(self, result: GatewaySample) -> str:
        return result.kind

    def _say_once(self, sample: GatewaySample) -> None:
        """Say why a group of signals stays absent: it looks like a fault and is a choice."""
        for note in sample.notes:
            if note in _WORTH_A_WORD and note not in self._said:
                self._said.add(note)
                _log.warning("%s: %s (docs/gateways.md)", self._title, _WORTH_A_WORD[note])
