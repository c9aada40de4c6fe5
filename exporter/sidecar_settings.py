"""What can be set on the sidecar: where it listens, how often it looks, and the engines it reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar
from urllib.parse import SplitResult, urlsplit

from msgspec import Meta

from exporter.derive.phenomenon import (
    LONG_PROMPT_TOKENS,
    TIME_PER_OUTPUT_TOKEN_SLO_SECONDS,
    TIME_TO_FIRST_TOKEN_SLO_SECONDS,
)
from exporter.sample import STALE_AFTER_SECONDS
from exporter.settings import RefusedError

DEFAULT_LISTEN = "127.0.0.1:9807"
"""Loopback: an engine's metrics tell of its users' traffic, so opening them is a decision."""
INTERVALS_SECONDS = (0.5, 5.0)
"""The shortest and the longest time between two reads."""

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Text = Annotated[str, Meta(min_length=1)]

_DEFAULT_PORTS = {"http": 80, "https": 443}
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """How to speak TLS with an engine; the names are those of Prometheus's ``tls_config``."""

    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    server_name: str | None = None
    insecure_skip_verify: bool = False

    def __post_init__(self) -> None:
        if (self.cert_file is None) != (self.key_file is None):
            missing = "cert_file" if self.cert_file is None else "key_file"
            raise RefusedError((), f"a client certificate needs cert_file and key_file; {missing} is not set")


@dataclass(frozen=True, slots=True)
class BasicAuthSettings:
    """Basic auth towards an engine; the password here or, better, in a file of its own."""

    username: Text
    password: str | None = field(default=None, repr=False)
    password_file: Path | None = None

    def __post_init__(self) -> None:
        if (self.password is None) == (self.password_file is None):
            raise RefusedError((), "needs either password or password_file")


@dataclass(frozen=True, slots=True)
class SloSettings:
    """What users of an engine may expect: a token each ``tpot_seconds``, the first by ``ttft_seconds``."""

    tpot_seconds: Seconds = TIME_PER_OUTPUT_TOKEN_SLO_SECONDS
    ttft_seconds: Seconds = TIME_TO_FIRST_TOKEN_SLO_SECONDS


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """One engine to read.

    ``url`` is where its metrics are; ``/metrics`` is added where the URL has no path. ``name`` is the
    value of the ``engine`` label, by default the URL's host:port. ``kv_bytes_per_token`` is what one
    token takes in the KV cache of the whole model, all GPUs of the engine together;
    ``model_config`` the model's ``config.json`` it can be worked out from, for a cache that holds
    values of ``kv_cache_dtype`` (``auto``: the model's own); ``tensor_parallel`` and
    ``pipeline_parallel`` how many GPUs share it. ``block_group_tokens`` are the block sizes of the KV
    groups of a hybrid model, where the engine does not tell. Prompts of more than
    ``long_prompt_tokens`` count as long.
    """

    shorthand: ClassVar[str] = "url"

    url: str
    name: str = ""
    deadline_seconds: Seconds = 10.0
    """For a whole read, from connecting to the last byte. Engines under overload have been seen to
    answer after 14 s; waiting that long gains a number that is stale by then."""
    max_body_bytes: Annotated[int, Meta(ge=1024, le=1 << 30)] = 32 * 1024 * 1024
    """An engine's page is tens of kB to a few MB; 32 MiB keeps a runaway one from filling memory."""
    tls: TlsSettings = TlsSettings()
    basic_auth: BasicAuthSettings | None = None
    bearer_token: Text | None = field(default=None, repr=False)
    bearer_token_file: Path | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    kv_bytes_per_token: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    model_config: Path | None = None
    kv_cache_dtype: Text = "auto"
    tensor_parallel: Annotated[int, Meta(ge=1, le=1024)] | None = None
    pipeline_parallel: Annotated[int, Meta(ge=1, le=1024)] | None = None
    block_group_tokens: tuple[Annotated[int, Meta(ge=1, le=1 << 20)], ...] = ()
    slo: SloSettings = SloSettings()
    long_prompt_tokens: Annotated[int, Meta(ge=1)] = LONG_PROMPT_TOKENS

    def __post_init__(self) -> None:
        parts = _checked_url(self.url)
        if parts.path in {"", "/"}:
            parts = parts._replace(path="/metrics")
        object.__setattr__(self, "url", parts.geturl())
        if not self.name:
            port = parts.port or _DEFAULT_PORTS[parts.scheme]
            host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
            object.__setattr__(self, "name", f"{host}:{port}")
        ways = (self.basic_auth, self.bearer_token, self.bearer_token_file)
        if sum(way is not None for way in ways) > 1:
            raise RefusedError((), "set only one of basic_auth, bearer_token and bearer_token_file")
        for header, value in self.headers.items():
            if not _HEADER_NAME.fullmatch(header):
                raise RefusedError("headers", f"{header!r} is not a header name")
            if not value.isascii() or not value.isprintable():
                raise RefusedError(("headers", header), "holds characters a header can't carry")


@dataclass(frozen=True, slots=True)
class SidecarSettings:
    """The sidecar as a whole."""

    listen: str = DEFAULT_LISTEN
    interval_seconds: float = 1.0
    """Spikes of preemption last seconds; reading once a second costs an engine some 2 ms each."""
    web_config: Path | None = None
    engines: tuple[EngineSettings, ...] = field(default=(), metadata={"flag": "--engine"})

    def __post_init__(self) -> None:
        try:
            parse_address(self.listen)
        except ValueError as error:
            raise RefusedError("listen", str(error)) from error
        least, most = INTERVALS_SECONDS
        if not least <= self.interval_seconds <= most:  # not a number is refused as well
            raise RefusedError(
                "interval_seconds",
                f"{self.interval_seconds:g} is not within {least:g} to {most:g} s: rarer, the windows of 10 s hold"
                f" too few reads, and numbers, which vanish after {STALE_AFTER_SECONDS:g} s, come and go; more often,"
                " the reads load the engine and tell no more",
            )
        first: dict[str, int] = {}
        for place, engine in enumerate(self.engines):
            if engine.name in first:
                raise RefusedError(
                    ("engines", place),
                    f"the name {engine.name} is already that of engines[{first[engine.name]}];"
                    " give one of them a name of its own",
                )
            first[engine.name] = place


def parse_address(text: str) -> tuple[str, int]:
    """Split ``HOST:PORT`` or ``[IPV6]:PORT``. No host means all of them; port 0 lets the system choose.

    Raises ValueError with a one-line text.
    """
    host, colon, port_text = text.rpartition(":")
    if not colon or (":" in host and not (host.startswith("[") and host.endswith("]"))):
        raise ValueError(f"{text!r} is not HOST:PORT (an IPv6 host goes in brackets, as in [::1]:8000)")
    if not (port_text.isascii() and port_text.isdigit() and int(port_text) <= 65_535):  # noqa: PLR2004
        raise ValueError(f"port {port_text!r} is not a number from 0 to 65535")
    host = host.strip("[]")
    if any(character.isspace() for character in host):
        raise ValueError(f"{text!r} is not HOST:PORT")
    return host, int(port_text)


def _checked_url(url: str) -> SplitResult:
    """Split an engine's URL, or raise RefusedError. A URL that may carry a password is never repeated."""
    if "@" in url:
        raise RefusedError("url", "must not carry a user or a password; set basic_auth with a password_file")
    if any(character.isspace() or not character.isprintable() for character in url):
        raise RefusedError("url", f"{url!r} holds spaces or control characters")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise RefusedError("url", f"{url!r} is not a URL: {error}") from error
    if "://" not in url:
        raise RefusedError("url", f"{url!r} is not a URL; did you mean http://{url}?")
    if parts.scheme not in _DEFAULT_PORTS:
        raise RefusedError("url", f"{url!r} must start with http:// or https://")
    if not parts.hostname or port == 0:
        raise RefusedError("url", f"{url!r} has no host, or port 0")
    if parts.fragment:
        raise RefusedError("url", f"{url!r} must not carry a #fragment")
    return parts
