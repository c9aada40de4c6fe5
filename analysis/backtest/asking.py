"""A Prometheus-compatible server, asked for what rules would have seen."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Self, TypeVar

from analysis.history.history import HistoryError
from analysis.history.samples import Samples
from analysis.history.server_census import names_of
from analysis.history.server_client import Client, Form, GoneError, NotTakenError, TooMuchError
from analysis.history.server_json import UnreadableError, read_matrix
from analysis.history.server_settings import ServerSettings
from exporter.settings import RefusedError
from exporter.sources.endpoint import shown

Answered = TypeVar("Answered")


class AnswerError(Exception):
    """Why the server doesn't answer. ``refused``: it never will, since the question is wrong."""

    def __init__(self, words: str, *, refused: bool) -> None:
        super().__init__(words)
        self.refused = refused


class Server:
    """At ``url``, the part before ``/api/v1``. Not from within an event loop.

    Raises HistoryError wherever it can't be reached or isn't one.
    """

    def __init__(self, url: str) -> None:
        try:
            settings = ServerSettings(url, parallel=1)
        except RefusedError as error:
            raise HistoryError(f"{shown(url)}: the URL of a server {error}") from error
        self._runner = asyncio.Runner()
        self._client = self._runner.run(_client(settings))
        self.shown = self._client.shown_url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()

    def query_range(self, expression: str, start: float, end: float, step: float) -> tuple[Samples, ...]:
        """An expression at each instant from ``start`` to ``end``. Raises AnswerError, HistoryError."""
        body = self.raw_range(expression, start, end, step)
        try:
            return read_matrix(body).series
        except UnreadableError as error:
            raise HistoryError(f"{self.shown}: what it answered can't be read: {error}") from error

    def raw_range(self, expression: str, start: float, end: float, step: float) -> bytes:
        """The answer as it came. Raises AnswerError, HistoryError."""
        form: Form = (
            ("query", expression),
            ("start", f"{start:.3f}"),
            ("end", f"{end:.3f}"),
            ("step", f"{step:.3f}"),
        )
        return self._asked(self._client.ask("/api/v1/query_range", form))

    def names(self, start: float, end: float) -> frozenset[str]:
        """Of all series that it has between two instants. Raises HistoryError."""
        between = round(start * 1000), round(end * 1000)
        try:
            return frozenset(self._asked(names_of(self._client, None, between)))
        except AnswerError as error:
            raise HistoryError(
                f"{self.shown}: doesn't say which series it has: {error}; try a shorter range"
            ) from error

    def _asked(self, answer: Coroutine[Any, Any, Answered]) -> Answered:
        try:
            return self._runner.run(answer)
        except NotTakenError as error:
            raise AnswerError(str(error), refused=True) from error
        except TooMuchError as error:
            raise AnswerError(str(error), refused=False) from error
        except GoneError as error:
            raise HistoryError(str(error)) from error


async def _client(settings: ServerSettings) -> Client:
    return Client(settings)
