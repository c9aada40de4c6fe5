"""A Prometheus-compatible server, asked for what rules would have seen."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

import httpcore
import msgspec
import numpy as np

from analysis.backtest.outcome import Labels
from analysis.frame import Values
from analysis.history.history import HistoryError

_SECONDS = 150.0
_BAD_REQUEST, _FINE = 400, 200
_MOST_WORDS = 300


class AnswerError(Exception):
    """The server's words for why it doesn't answer. ``refused``: it never will, since the question is wrong."""

    def __init__(self, words: str, *, refused: bool) -> None:
        super().__init__(words)
        self.refused = refused


@dataclass(frozen=True, slots=True)
class Found:
    """A series of a result and the instants at which it is there, in seconds, rising; shape (n,)."""

    labels: Labels
    times: Values


class _Series(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, msgspec.Raw]]


class _Matrix(msgspec.Struct):
    result: list[_Series]


class _Answer(msgspec.Struct):
    data: _Matrix


_MATRIX = msgspec.json.Decoder(_Answer)


class Server:
    """At ``url``, the part before ``/api/v1``; who asks may stand in it (``http://name:password@host``).

    Raises HistoryError wherever it can't be reached or isn't one.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise HistoryError(f"{url}: is no URL of a server: http://HOST:PORT is one")
        port = f":{parts.port}" if parts.port else ""
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        self.shown = f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"
        self._headers: dict[bytes | str, bytes | str] = {"Content-Type": "application/x-www-form-urlencoded"}
        if parts.username is not None:
            pair = f"{parts.username}:{parts.password or ''}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        self._pool = httpcore.ConnectionPool(max_connections=1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def query_range(self, expression: str, start: float, end: float, step: float) -> list[Found]:
        """An expression at each instant from ``start`` to ``end``. Raises AnswerError, HistoryError."""
        try:
            answer = _MATRIX.decode(self.raw_range(expression, start, end, step))
        except msgspec.MsgspecError as error:
            raise HistoryError(
                f"{self.shown}: what it answered is no matrix of Prometheus: {error}"
            ) from error
        return [
            Found(
                tuple(sorted(each.metric.items())),
                np.fromiter((at for at, _ in each.values), np.float64, len(each.values)),
            )
            for each in answer.data.result
        ]

    def raw_range(self, expression: str, start: float, end: float, step: float) -> bytes:
        """The answer as it came. Raises AnswerError, HistoryError."""
        asked = {"query": expression, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:.3f}"}
        return self._post("/api/v1/query_range", asked)

    def names(self, start: float, end: float) -> frozenset[str]:
        """Of all series that it has between two instants."""
        body = self._get(f"/api/v1/label/__name__/values?start={start:.3f}&end={end:.3f}")
        found = _json(body).get("data")
        return frozenset(found if isinstance(found, list) else ())

    def _get(self, path: str) -> bytes:
        return self._request("GET", path, None)

    def _post(self, path: str, fields: Mapping[str, str]) -> bytes:
        return self._request("POST", path, urlencode(fields).encode())

    def _request(self, method: str, path: str, body: bytes | None) -> bytes:
        limits = dict.fromkeys(("connect", "read", "write", "pool"), _SECONDS)
        try:
            answer = self._pool.request(
                method, self.shown + path, headers=self._headers, content=body, extensions={"timeout": limits}
            )
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError) as error:
            reason = str(error) or type(error).__name__
            raise HistoryError(
                f"{self.shown}: can't be asked: {reason}; does a server listen there?"
            ) from error
        if answer.status == _FINE:
            return answer.content
        told = _json(answer.content)
        if "error" not in told:
            raise HistoryError(
                f"{self.shown}{path.partition('?')[0]}: answers with status {answer.status}, not as a Prometheus does;"
                " give the URL up to before /api/v1"
            )
        words = str(told["error"])[:_MOST_WORDS]
        raise AnswerError(words, refused=answer.status == _BAD_REQUEST)


def _json(body: bytes) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except msgspec.MsgspecError:
        return {}
    return found if isinstance(found, dict) else {}
