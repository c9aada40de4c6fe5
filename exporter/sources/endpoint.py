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
from urllib.parse import urlsplit

import httpx

from exporter.sidecar_settings import TlsSettings
from exporter.sources.body import BoundedBody
from exporter.sources.credentials import (
    Authorization,
    CredentialSettings,
    Stamp,
    tls_context,
    tls_stamp,
)
from exporter.sources.failure import ReadFailedError, Reason, explain, one_line

# The libraries would tell of every request, and at DEBUG of headers too; we tell of changes.
for _library in ("httpx", "httpcore"):
    logging.getLogger(_library).setLevel(logging.WARNING)

_IDLE_SECONDS = 75.0
"""How long a connection may idle: longer than the longest interval that can be set."""

_HEADERS = {
    # Offered anything newer, some engines rewrite the colons in their names.
    "Accept": "text/plain;version=0.0.4",
    "Accept-Encoding": "identity",
    "User-Agent": "thrashold",
}
_CLOSED_EARLY = (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError)


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
    httpx's transport, not on its client, so that nothing but the URL of the settings is ever asked,
    and a read costs about a fifth less.
    """

    def __init__(self, settings: EndpointSettings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self.shown_url = shown(settings.url)
        """The URL for people and logs; a query may hold a secret and is left out."""
        self._authorization = Authorization(settings, self.shown_url)
        self._transport: httpx.AsyncHTTPTransport | None = None
        self._context: ssl.SSLContext | None = None
        self._tls_stamp: tuple[Stamp, ...] = ()
        self._kept = False  # whether the connection has carried a whole answer before
        self._gathered: BoundedBody | None = None
        self._prepared: tuple[str | None, httpx.Request] | None = None

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
                "look whether the engine is overloaded or hangs; deadline_seconds sets the wait",
            ) from None
        except ReadFailedError as failure:
            self._kept = False
            if failure.reason is Reason.TLS and tls_stamp(self._settings.tls) != self._tls_stamp:
                self._context = None  # certificates were renewed: the next read takes the new ones
                await self.aclose()
            raise

    async def aclose(self) -> None:
        """Lets go of the connection; a later read opens a new one."""
        transport, self._transport, self._kept = self._transport, None, False
        if transport is not None:
            await transport.aclose()

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
            transport = self._open()
            request = self._request()
            at = self._clock()
            try:
                response = await transport.handle_async_request(request)
            except _CLOSED_EARLY as error:
                if may_be_stale:
                    raise _ClosedWhileIdleError from error
                raise
            try:
                self._check(response)
                body = await self._body(response)
            finally:
                await response.aclose()
            return Reply(at, self._clock() - at, body, response.headers.get("content-type", ""))
        except (httpx.TransportError, httpx.InvalidURL, OSError, UnicodeError) as error:
            raise explain(error, self.shown_url) from error

    def _open(self) -> httpx.AsyncHTTPTransport:
        if self._transport is None:
            self._transport = httpx.AsyncHTTPTransport(
                verify=self._context or self._new_context(),
                trust_env=False,
                limits=httpx.Limits(
                    max_connections=1, max_keepalive_connections=1, keepalive_expiry=_IDLE_SECONDS
                ),
            )
        return self._transport

    def _new_context(self) -> ssl.SSLContext:
        if self._settings.url.startswith("https:"):
            self._tls_stamp = tls_stamp(self._settings.tls)
            self._context = tls_context(self._settings.tls, self.shown_url)
        else:  # not used; a bare one keeps httpx from loading its list of authorities
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return self._context

    def _request(self) -> httpx.Request:
        """The request; always the same one until a credential changes, as making it takes a while."""
        authorization = self._authorization.header()
        if self._prepared is None or self._prepared[0] != authorization:
            headers = httpx.Headers(_HEADERS)
            headers.update(self._settings.headers)
            if authorization is not None:
                headers["Authorization"] = authorization
            server_name = self._settings.tls.server_name
            extensions = {"sni_hostname": server_name} if server_name else {}
            request = httpx.Request("GET", self._settings.url, headers=headers, extensions=extensions)
            self._prepared = (authorization, request)
        return self._prepared[1]

    def _check(self, response: httpx.Response) -> None:
        """Raise ReadFailedError for any answer but 200 with a body that may fit and be unpacked."""
        status = response.status_code
        if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            raise self._failure(
                Reason.UNAUTHORISED,
                f"answered {_named(status)}",
                "set bearer_token_file or basic_auth, or check what they hold",
            )
        if 300 <= status < 400 and "location" in response.headers:  # noqa: PLR2004
            target = shown(response.headers["location"])
            raise self._failure(
                Reason.REDIRECT,
                f"answered {_named(status)} and points to {target}",
                "redirects are not followed; set url to where the metrics are",
            )
        if status != HTTPStatus.OK:
            raise self._failure(
                Reason.HTTP_STATUS,
                f"answered {_named(status)}",
                "check the path of the URL" if status < 500 else "look into the log of the engine",  # noqa: PLR2004
            )

    async def _body(self, response: httpx.Response) -> bytes:
        headers = response.headers
        self._gathered = gathered = BoundedBody(
            headers.get("content-encoding", ""), self._settings.max_body_bytes, self.shown_url
        )
        gathered.expect(headers.get("content-length", ""))
        async with aclosing(cast("AsyncGenerator[bytes, None]", response.aiter_raw())) as chunks:
            async for chunk in chunks:
                gathered.add(chunk)
        body = gathered.whole()
        counted = "content-length" in headers or "transfer-encoding" in headers
        if not counted and body and not body.endswith(b"\n"):
            # Only the end of the connection ends such a body, so a server that died looks the same.
            raise self._failure(
                Reason.DISCONNECTED, "the answer ends within a line", "look whether the engine is restarting"
            )
        return body

    def _failure(self, reason: Reason, problem: str, remedy: str) -> ReadFailedError:
        return ReadFailedError(reason, self.shown_url, problem, remedy)


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
