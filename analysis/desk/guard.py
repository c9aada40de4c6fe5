"""Who may ask the desk what."""

from __future__ import annotations

import hmac
import ipaddress
import ssl
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from alerts.alertmanager import ALERTS_PATH, WATCHDOG_PATH
from analysis.desk.token import WebhookToken

WEBHOOKS = frozenset({ALERTS_PATH, WATCHDOG_PATH})
_SAFE = frozenset({"GET", "HEAD"})
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(host: str) -> bool:
    """Whether an address that is listened on is this machine's alone."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"


def open_to_others(
    host: str,
    users: Mapping[str, str],
    token: WebhookToken | None,
    tls: ssl.SSLContext | None,
    *,
    open_pages: bool,
) -> str:
    """What whoever reaches it could do though nobody has said so, and what to set; empty: nothing.

    ``users``: those with a password. ``open_pages``: somebody has said so of the pages.
    """
    if is_loopback(host) or users:
        return ""
    if not open_pages and (tls is None or tls.verify_mode is not ssl.CERT_REQUIRED):
        return (
            "others than this machine could read incidents and close them: set passwords by web_config, or open_pages"
            " where they may"
        )
    if token is None:
        return "others than this machine could open incidents: set webhook_token_file, or passwords"
    return ""


@dataclass(frozen=True, slots=True)
class Guard:
    """Lets requests through to ``pages``, or to ``protected``, the same behind passwords.

    Webhooks prove themselves by the token where there is one, everything else by a password where there are any. What
    changes something comes from a page of the desk's own. ``hosts``: names under which it may be asked for, so that no
    page on the web can reach it by a name of its own that leads to loopback; None: any.
    """

    pages: ASGIApp
    protected: ASGIApp
    token: WebhookToken | None
    hosts: Collection[str] | None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "")
        if self.hosts is not None and _name_of(host) not in self.hosts:
            await _refused(421, f"asked for as {host!r}, which is none of the desk's names")(
                scope, receive, send
            )
            return
        if scope["path"] in WEBHOOKS and self.token is not None:
            given = headers.get(b"authorization", "")
            if not hmac.compare_digest(given.encode("latin-1"), f"Bearer {self.token.current()}".encode()):
                await _refused(401, "the webhook's bearer token is missing or wrong")(scope, receive, send)
                return
            await self.pages(scope, receive, send)
            return
        if scope["method"] not in _SAFE and _is_foreign(headers, host):  # a webhook comes from no page either
            await _refused(403, "asked for by a page of another site")(scope, receive, send)
            return
        await self.protected(scope, receive, send)


def _name_of(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:  # half an IPv6 address
        return ""


def _is_foreign(headers: dict[bytes, str], host: str) -> bool:
    """By what a browser says of where a request comes from; a program says nothing."""
    site, origin = headers.get(b"sec-fetch-site", ""), headers.get(b"origin", "")
    if site:
        return site not in {"same-origin", "none"}
    return bool(origin) and origin.partition("://")[2] != host


def _refused(status: int, why: str) -> PlainTextResponse:
    return PlainTextResponse(f"{why}\n", status)
