"""Asks one server, a bounded number of requests at a time, and tells what its answers mean for who reads on.

Nothing but the URL of the settings is ever asked: no redirect is followed and no proxy of the environment used.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import httpcore
import msgspec

from analysis.history.history import HistoryError
from analysis.history.server_settings import ServerSettings
from exporter.sources.body import BoundedBody
from exporter.sources.credentials import Authorization, tls_context
from exporter.sources.endpoint import request_url, shown
from exporter.sources.failure import ReadFailedError, Reason, explain, one_line

_PEER = "the server"
_PAUSES_SECONDS = (0.5, 1.0, 2.0)
"""Before a request is sent again that the server had no time for, or that broke off."""
_MOST_PAUSE_SECONDS = 15.0
_MOST_WORDS = 200
_LOOPBACK = ("127.", "localhost", "::1")
_TRANSIENT = (Reason.DISCONNECTED, Reason.REFUSED, Reason.TIMEOUT, Reason.DNS)
_TOO_MUCH = (
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.GATEWAY_TIMEOUT,
    HTTPStatus.INTERNAL_SERVER_ERROR,
)
_LASTING = (HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
_BUSY = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE)
_NO_PROMETHEUS = "is this the URL of a Prometheus-compatible server, up to before /api/v1?"

Form = Sequence[tuple[str, str]]


class TooMuchError(Exception):
    """The server won't or can't answer that much at once: ask for less. The text is its words.

    ``lasting``: it is a limit that is set there, not what the server happened to be busy with.
    """

    def __init__(self, words: str, *, lasting: bool = False) -> None:
        super().__init__(words)
        self.lasting = lasting


class NotTakenError(HistoryError):
    """The server takes the question for a wrong one: it never answers it."""


class GoneError(Exception):
    """The server answered before and doesn't now. The text says where and what to do."""


class _BusyError(Exception):
    """No time now: the same may be asked again after ``seconds``, where the server says so."""

    def __init__(self, words: str, seconds: float | None) -> None:
        super().__init__(words)
        self.seconds = seconds


class _Failure(msgspec.Struct):
    status: str
    errorType: str = ""  # noqa: N815 - as it is sent
    error: str = ""


class Client:
    """One server. Make it and close it within one event loop. Raises HistoryError: credentials that can't be used."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self.shown_url = shown(settings.url)
        """For people, without what may be secret."""
        self._authorization = Authorization(settings, self.shown_url)
        self._takes_no_post: set[str] = set()
        try:
            self._authorization.header()
            if settings.url.startswith("https:"):
                context = tls_context(settings.tls, self.shown_url)
            else:  # not used; a bare one keeps httpcore from loading a list of authorities
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        except ReadFailedError as failure:
            raise HistoryError(str(failure)) from failure
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=context,
            max_connections=settings.parallel,
            max_keepalive_connections=settings.parallel,
        )
        host = settings.url.partition("://")[2].lstrip("[")
        # to pack takes longer than to send to oneself
        self._encoding = "identity" if host.startswith(_LOOPBACK) else "gzip"
        self._answered = False

    async def aclose(self) -> None:
        """Lets go of all connections."""
        await self._pool.aclose()

    async def ask(self, path: str, form: Form, method: str = "POST") -> bytes:
        """What ``path``, as ``/api/v1/query``, answers to a form. Waits and asks again where the server has no time.

        Forms are posted, since selectors are longer than some proxies let a URL be, unless a POST was not allowed.

        Raises TooMuchError; GoneError once the server has answered before; HistoryError for all that asking for
        less or later doesn't mend.
        """
        error: Exception
        for pause in (*_PAUSES_SECONDS, None):
            try:
                body = await self._once(path, form, method)
            except _BusyError as busy:
                problem, wait, error = str(busy), busy.seconds, busy
            except ReadFailedError as failure:
                if failure.reason is Reason.TOO_LARGE:
                    raise TooMuchError(
                        f"the answer is larger than {self._settings.max_body_bytes} bytes"
                    ) from failure
                if failure.reason not in _TRANSIENT or not self._answered:
                    raise HistoryError(str(failure)) from failure
                problem, wait, error = str(failure), None, failure
            else:
                self._answered = True
                return body
            if pause is None:
                break
            await asyncio.sleep(min(pause if wait is None else wait, _MOST_PAUSE_SECONDS))
        if self._answered:
            raise GoneError(problem) from error
        raise HistoryError(problem) from error

    async def get_json(self, path: str, form: Form) -> Any:  # noqa: ANN401 - JSON
        """The ``data`` of an answer to a GET. Raises as ``ask``, and HistoryError for what isn't Prometheus's."""
        body = await self.ask(path, form, "GET")
        try:
            reply = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self.no_prometheus(body) from error
        if not isinstance(reply, dict) or reply.get("status") != "success" or "data" not in reply:
            raise self.no_prometheus(body)
        return reply["data"]

    def no_prometheus(self, body: bytes) -> HistoryError:
        """The error about an answer that isn't Prometheus's."""
        begins = one_line(body[:_MOST_WORDS].decode("utf-8", "replace"), 60)
        looks = (
            "a page of HTML" if b"<html" in body[:1000].lower() or b"<!doctype" in body[:1000].lower() else ""
        )
        return HistoryError(
            f"{self.shown_url}: what answers there is no Prometheus: it sent"
            f" {looks or (repr(begins) if begins else 'nothing')}; {_NO_PROMETHEUS}"
        )

    async def _once(self, path: str, form: Form, method: str) -> bytes:
        seconds = self._settings.deadline_seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._exchange(path, form, "GET" if path in self._takes_no_post else method)
        except TimeoutError:
            problem = f"no answer within {seconds:g} s"
            if not self._answered:
                raise HistoryError(
                    f"{self.shown_url}: {problem}; look whether the server is overloaded or hangs"
                ) from None
            raise TooMuchError(problem) from None

    async def _exchange(self, path: str, form: Form, method: str) -> bytes:
        encoded = urlencode(form)
        url = self._settings.url + path
        headers = {"Accept": "application/json", "Accept-Encoding": self._encoding, "User-Agent": "thrashold"}
        content = None
        if method == "POST":
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            content = encoded.encode("ascii")
        authorization = self._authorization.header()
        own = {} if authorization is None else {"Authorization": authorization}
        # the user's go before ours, however they are spelled
        sent = {name.lower(): value for name, value in {**headers, **self._settings.headers, **own}.items()}
        target = request_url(url if content is not None else f"{url}?{encoded}")
        server_name = self._settings.tls.server_name
        try:
            async with self._pool.stream(
                method,
                target,
                headers=list(sent.items()),
                content=content,
                extensions={"sni_hostname": server_name} if server_name else {},
            ) as response:
                answered = {
                    name.decode("latin-1").lower(): value.decode("latin-1")
                    for name, value in response.headers
                }
                body = await self._body(response, answered)
        except (
            httpcore.NetworkError,
            httpcore.ProtocolError,
            httpcore.TimeoutException,
            OSError,
            UnicodeError,
        ) as error:
            raise explain(error, self.shown_url, _PEER) from error
        if response.status == HTTPStatus.METHOD_NOT_ALLOWED and method == "POST":
            self._takes_no_post.add(path)
            return await self._exchange(path, form, "GET")
        if response.status != HTTPStatus.OK:
            self._refuse(response.status, answered, body)
        return body

    async def _body(self, response: httpcore.Response, headers: Mapping[str, str]) -> bytes:
        gathered = BoundedBody(
            headers.get("content-encoding", ""), self._settings.max_body_bytes, self.shown_url
        )
        gathered.expect(headers.get("content-length", ""))
        async with aclosing(response.aiter_stream()) as chunks:  # type: ignore[type-var]
            async for chunk in chunks:
                await gathered.add(chunk)
        return gathered.whole()

    def _refuse(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Raise what an answer other than 200 means."""
        try:
            said = msgspec.json.decode(body, type=_Failure)
        except (msgspec.DecodeError, UnicodeDecodeError):
            said = _Failure("")
        words = one_line(said.error, _MOST_WORDS)
        named = f"{status} {_phrase(status)}".strip()
        told = f"{named} ({words})" if words else named
        where = f"{self.shown_url}: answered {told}"
        if status in _TOO_MUCH or (
            status == HTTPStatus.SERVICE_UNAVAILABLE and said.errorType in {"timeout", "canceled"}
        ):
            if not self._answered and not said.status:
                raise HistoryError(f"{where}; look into the log of the server")
            raise TooMuchError(told, lasting=status in _LASTING)
        if status in _BUSY:
            after = headers.get("retry-after", "")
            raise _BusyError(
                f"{where}; look whether the server is overloaded or restarting",
                float(after) if after.isdecimal() else None,
            )
        if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            raise HistoryError(
                f"{where}; give a user and password or a token that it takes, and for Mimir the tenant (X-Scope-OrgID)"
            )
        if 300 <= status < 400:  # noqa: PLR2004
            target = shown(headers.get("location", ""))
            raise HistoryError(
                f"{self.shown_url}: answered {named} and points to {target or 'nowhere'}; redirects are not followed:"
                " give the URL of the server itself"
            )
        if said.status == "error":
            raise NotTakenError(f"{where}; what was asked is not taken there")
        raise HistoryError(f"{where}; {_NO_PROMETHEUS}")


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
