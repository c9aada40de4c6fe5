"""How to reach a page of metrics and who asks: what engines, gateways and GPU exporters have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from msgspec import Meta

from exporter.settings import RefusedError

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Text = Annotated[str, Meta(min_length=1)]

DEFAULT_PORTS = {"http": 80, "https": 443}
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


# What a key means stands beside its type, once: docs/settings.md is made of it.


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """How to speak TLS with an engine; the names are those of Prometheus's ``tls_config``."""

    ca_file: Annotated[
        Path | None,
        Meta(description="PEM of the authorities to trust, instead of those of the system."),
    ] = None
    cert_file: Annotated[
        Path | None, Meta(description="PEM of a client certificate to show, where the engine asks for one.")
    ] = None
    key_file: Annotated[
        Path | None, Meta(description="PEM of its key, unencrypted. Goes with `cert_file`.")
    ] = None
    server_name: Annotated[
        str | None,
        Meta(description="The name that the engine's certificate bears, where that isn't the URL's host."),
    ] = None
    insecure_skip_verify: Annotated[
        bool, Meta(description="Trust any certificate: whoever is on the way can then answer instead.")
    ] = False

    def __post_init__(self) -> None:
        if (self.cert_file is None) != (self.key_file is None):
            missing = "cert_file" if self.cert_file is None else "key_file"
            raise RefusedError((), f"a client certificate needs cert_file and key_file; {missing} is not set")


@dataclass(frozen=True, slots=True)
class BasicAuthSettings:
    """Basic auth towards an engine; the password here or, better, in a file of its own."""

    username: Annotated[Text, Meta(description="The user.")]
    password: Annotated[
        str | None, Meta(description="The password. Either this or `password_file` is needed.")
    ] = field(default=None, repr=False)
    password_file: Annotated[
        Path | None, Meta(description="A file that holds the password and nothing else.")
    ] = None

    def __post_init__(self) -> None:
        if (self.password is None) == (self.password_file is None):
            raise RefusedError((), "needs either password or password_file")


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """One page to read. Who inherits it calls :func:`settle` after it is made."""

    url: Annotated[
        str,
        Meta(
            description="Where its metrics are, with `http://` or `https://`; `/metrics` is added where there is no"
            " path. Must not carry a user or a password. A query is sent, and left out of logs."
        ),
    ]
    deadline_seconds: Annotated[
        Seconds, Meta(description="Seconds for a whole read, from connecting to the last byte.")
    ] = 5.0
    max_body_bytes: Annotated[
        int,
        Meta(ge=1024, le=1 << 30, description="The most bytes a page may hold, as sent and when unpacked."),
    ] = 8 * 1024 * 1024
    tls: Annotated[TlsSettings, Meta(description="How to speak TLS, for an `https://` URL.")] = TlsSettings()
    basic_auth: Annotated[
        BasicAuthSettings | None,
        Meta(
            description="User and password for it. Only one of `basic_auth`, `bearer_token` and `bearer_token_file`"
            " can be set."
        ),
    ] = None
    bearer_token: Annotated[
        Text | None, Meta(description="A token for it, here in the file; better is `bearer_token_file`.")
    ] = field(default=None, repr=False)
    bearer_token_file: Annotated[
        Path | None, Meta(description="A file that holds the token and nothing else.")
    ] = None
    headers: Annotated[
        Mapping[str, str],
        Meta(
            description="Further headers of each request, by name, such as a proxy's key. ASCII, never logged."
        ),
    ] = field(default_factory=dict, repr=False, hash=False)


def settle(connection: ConnectionSettings, path: str) -> str:
    """Check it, and put ``path`` into a URL that has none; gives host:port. Raises RefusedError."""
    parts = checked_url(connection.url)
    if parts.path in {"", "/"}:
        parts = parts._replace(path=path)
    object.__setattr__(connection, "url", parts.geturl())
    ways = (connection.basic_auth, connection.bearer_token, connection.bearer_token_file)
    if sum(way is not None for way in ways) > 1:
        raise RefusedError((), "set only one of basic_auth, bearer_token and bearer_token_file")
    for header, value in connection.headers.items():
        if not _HEADER_NAME.fullmatch(header):
            raise RefusedError("headers", f"{header!r} is not a header name")
        if not value.isascii() or not value.isprintable():
            raise RefusedError(("headers", header), "holds characters a header can't carry")
    host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
    return f"{host}:{parts.port or DEFAULT_PORTS[parts.scheme]}"


def checked_url(url: str) -> SplitResult:
    """Split a URL, or raise RefusedError. A URL that may carry a password is never repeated."""
    if "@" in url:
        raise RefusedError("url", "must not carry a user or a password; set basic_auth with a password_file")
    if any(character.isspace() or not character.isprintable() for character in url):
        raise RefusedError("url", f"{url!r} holds spaces or control characters")
    if not url:
        raise RefusedError("url", "is empty; write http://HOST:PORT")
    if url.count("://") > 1 and "," in url:
        raise RefusedError(
            "url",
            f"{url!r} is more than one URL; give each by itself: commas are for variables, flags are repeated",
        )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise RefusedError("url", f"{url!r} is not a URL: {error}") from error
    if "://" not in url:
        raise RefusedError("url", f"{url!r} is not a URL; did you mean http://{url}?")
    if parts.scheme not in DEFAULT_PORTS:
        raise RefusedError("url", f"{url!r} must start with http:// or https://")
    if not parts.hostname or port == 0:
        raise RefusedError("url", f"{url!r} has no host, or port 0")
    if parts.fragment:
        raise RefusedError("url", f"{url!r} must not carry a #fragment")
    return parts
