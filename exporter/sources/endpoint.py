"""One bounded HTTP read after another of one URL: in time, in size, and of that URL alone."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol, cast
from urllib.parse import quote, urlsplit

import httpcore

from exporter.connection_settings import TlsSettings
from exporter.file_stamp import Stamp
from exporter.sources.body import BoundedBody
from exporter.sources.credentials import Authorization, CredentialSettings, tls_context, tls_stamp
from exporter.sources.failure import ENGINE, Peer, ReadFailedError, Reason, explain, one_line, remedy

# At DEBUG the library would tell of every request and its headers; we tell of changes.
logging.getLogger("httpcore").setLevel(logging.WARNING)

_IDLE_SECONDS = 75.0
"""How long a connection may idle: far longer than the longest interval that can be set."""

_HEADERS = {
    # Offered anything newer, some engines rewrite the colons in their names.
    "Accept": "text/plain;version=0.0.4",
    "Accept-Encoding": "identity",
    "User-Agent": "thrashold",
}
_URL_CHARACTERS = "/%:@!$&'()*+,;=~-._"
"""What may stand in a URL as it is; anything else is written as %XX."""
_DEFAULT_PORTS = {b"http": 80, b"https": 443}
_NETWORK_ERRORS = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.TimeoutException,
    httpcore.UnsupportedProtocol,
)
_CLOSED_EARLY = (httpcore.ReadError, httpcore.WriteError, httpcore.RemoteProtocolError)


class EndpointSettings(CredentialSettings, Protocol):
    """What has to be known of an endpoint; engines, gateways and GPU exporters all have it."""

    @property
    def url(self) -> str:
        """Where to read; without user and password."""

    @property
    def deadline_seconds(self) -> float:
        """For a whole read, from connecting to the last byte."""

    @property
    def max_body_bytes(self) -> int:
        """The most a body may hold, as sent and when unpacked."""

    @property
    def tls(self) -> TlsSettings:
        """How to speak TLS, for https."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Further request headers."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A body, unpacked. ``at`` is when its request began (the clock given), in ``seconds`` it was whole."""

    at: float
    seconds: float
    body: bytes
    content_type: str = ""


class _ClosedWhileIdleError(Exception):
    """The peer closed a kept connection before a byte of an answer.

    Servers do that to idle connections, perhaps just as we write to one: no failure of the engine's.
    """


class Endpoint:
    """Reads one URL on a connection that is kept. Not for two reads at once.

    Redirects are not followed, cookies not kept and proxies of the environment not used: it rests on
    httpcore, the connection pool below httpx, so that nothing but the URL of the settings is ever
    asked, and a sidecar is spared httpx's memory and half of the time of a read.
    """

    def __init__(self, settings: EndpointSettings, clock: Callable[[], float], peer: Peer = ENGINE) -> None:
        self._settings = settings
        self._peer = peer
        self._clock = clock
        self.shown_url = shown(settings.url)
        """The URL for people and logs; a query may hold a secret and is left out."""
        self._authorization = Authorization(settings, self.shown_url)
        self._pool: httpcore.AsyncConnectionPool | None = None
        self._context: ssl.SSLContext | None = None
        self._tls_stamp: tuple[Stamp, ...] = ()
        self._kept = False  # whether the connection has carried a whole answer before
        self._gathered: BoundedBody | None = None
        self._prepared: tuple[str | None, httpcore.Request] | None = None

    async def read(self) -> Reply:
        """One GET. Raises ReadFailedError, for whatever reason there is no whole body by the deadline."""
        deadline = self._settings.deadline_seconds
        try:
            async with asyncio.timeout(deadline):
                return await self._read()
        except TimeoutError:
            await self.aclose()  # whatever state the pool was left in, the next read starts afresh
            received = 0 if self._gathered is None else self._gathered.received
            sent = f"sent only {received} bytes" if received else "did not answer"
            raise self._failure(
                Reason.TIMEOUT,
                f"{sent} within {deadline:g} s",
                f"look whether {self._peer.name} is overloaded or hangs; deadline_seconds sets the wait",
            ) from None
        except ReadFailedError as failure:
            self._kept = False
            if failure.reason is Reason.TLS and tls_stamp(self._settings.tls) != self._tls_stamp:
                self._context = None  # certificates were renewed: the next read takes the new ones
                await self.aclose()
            raise

    async def aclose(self) -> None:
        """Lets go of the connection; a later read opens a new one."""
        pool, self._pool, self._kept = self._pool, None, False
        if pool is not None:
            await pool.aclose()

    async def _read(self) -> Reply:
        try:
            reply = await self._attempt(may_be_stale=self._kept)
        except _ClosedWhileIdleError:
            reply = None
        if reply is None:  # once more: the new connection is what tells
            reply = await self._attempt(may_be_stale=False)
        self._kept = True
        return reply

    async def _attempt(self, *, may_be_stale: bool) -> Reply:
        """One request. Raises _ClosedWhileIdleError only on a connection that ``may_be_stale``."""
        self._gathered = None
        try:
            pool = self._open()
            request = self._request()
            at = self._clock()
            try:
                response = await pool.handle_async_request(request)
            except _CLOSED_EARLY as error:
                if may_be_stale:
                    raise _ClosedWhileIdleError from error
                raise
            try:
                headers = {
                    name.decode("latin-1").lower(): value.decode("latin-1")
                    for name, value in response.headers
                }
                self._check(response.status, headers)
                body = await self._body(response, headers)
            finally:
                await response.aclose()
            return Reply(at, self._clock() - at, body, headers.get("content-type", ""))
        except (*_NETWORK_ERRORS, OSError, UnicodeError) as error:
            raise explain(error, self.shown_url, self._peer.name) from error

    def _open(self) -> httpcore.AsyncConnectionPool:
        if self._pool is None:
            self._pool = httpcore.AsyncConnectionPool(
                ssl_context=self._context or self._new_context(),
                max_connections=1,
                max_keepalive_connections=1,
                keepalive_expiry=_IDLE_SECONDS,
            )
        return self._pool

    def _new_context(self) -> ssl.SSLContext:
        if self._settings.url.startswith("https:"):
            self._tls_stamp = tls_stamp(self._settings.tls)
            self._context = tls_context(self._settings.tls, self.shown_url)
        else:  # not used; a bare one keeps httpcore from loading a list of authorities
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return self._context

    def _request(self) -> httpcore.Request:
        """The request; always the same one until a credential changes, as making it takes a while."""
        authorization = self._authorization.header()
        if self._prepared is None or self._prepared[0] != authorization:
            url = request_url(self._settings.url)
            ours = {"Host": _host_header(self._settings.url, url), **_HEADERS}
            own = {} if authorization is None else {"Authorization": authorization}
            # the user's go before ours, however they are spelled
            headers = {
                name.lower(): value for name, value in {**ours, **self._settings.headers, **own}.items()
            }
            server_name = self._settings.tls.server_name
            request = httpcore.Request(
                "GET",
                url,
                headers=list(headers.items()),
                extensions={"sni_hostname": server_name} if server_name else {},
            )
            self._prepared = (authorization, request)
        return self._prepared[1]

    def _check(self, status: int, headers: Mapping[str, str]) -> None:
        """Raise ReadFailedError for any answer but 200."""
        if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            raise self._failure(
                Reason.UNAUTHORISED,
                f"answered {_named(status)}",
                "set bearer_token_file or basic_auth, or check what they hold",
            )
        if 300 <= status < 400 and "location" in headers:  # noqa: PLR2004
            target = shown(headers["location"])
            raise self._failure(
                Reason.REDIRECT,
                f"answered {_named(status)} and points to {target}",
                "redirects are not followed; set url to where the metrics are",
            )
        if status != HTTPStatus.OK:
            raise self._failure(
                Reason.HTTP_STATUS,
                f"answered {_named(status)}",
                remedy(status, self._peer),
                status,
            )

    async def _body(self, response: httpcore.Response, headers: Mapping[str, str]) -> bytes:
        self._gathered = gathered = BoundedBody(
            headers.get("content-encoding", ""), self._settings.max_body_bytes, self.shown_url
        )
        gathered.expect(headers.get("content-length", ""))
        async with aclosing(cast("AsyncGenerator[bytes, None]", response.aiter_stream())) as chunks:
            async for chunk in chunks:
                await gathered.add(chunk)
        body = gathered.whole()
        counted = "content-length" in headers or "transfer-encoding" in headers
        if not counted and body and not body.endswith(b"\n"):
            # Only the end of the connection ends such a body, so a server that died looks the same.
            raise self._failure(
                Reason.DISCONNECTED,
                "the answer ends within a line",
                f"look whether {self._peer.name} is restarting",
            )
        return body

    def _failure(
        self, reason: Reason, problem: str, remedy: str, status: int | None = None
    ) -> ReadFailedError:
        return ReadFailedError(reason, self.shown_url, problem, remedy, status)


def request_url(text: str) -> httpcore.URL:
    """A URL in bytes, as a request has it. Raises UnicodeError for a host that can't be a name."""
    parts = urlsplit(text)
    host = parts.hostname or ""
    target = quote(parts.path or "/", safe=_URL_CHARACTERS)
    if parts.query:
        target += "?" + quote(parts.query, safe=_URL_CHARACTERS + "?")
    return httpcore.URL(
        scheme=parts.scheme.encode("ascii"),
        host=host.encode("ascii" if host.isascii() else "idna"),
        port=parts.port,
        target=target.encode("ascii"),
    )


def _host_header(text: str, url: httpcore.URL) -> str:
    host = url.host.decode("ascii")
    if ":" in host:
        host = f"[{host}]"
    port = urlsplit(text).port
    return host if port is None or port == _DEFAULT_PORTS.get(url.scheme) else f"{host}:{port}"


def shown(url: str) -> str:
    """``url`` without what may be secret: user, password, query and fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that is no URL"
    host = parts.netloc.rpartition("@")[2]
    query = "?..." if parts.query else ""
    return one_line(parts._replace(netloc=host, query="", fragment="").geturl() + query)


def _named(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
