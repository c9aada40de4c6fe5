"""What can be set on one engine: where it is, how to get in, and what no metric of it tells."""

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
from exporter.kv_events_settings import KvEventsSettings
from exporter.kv_geometry import DTYPE_BYTES
from exporter.settings import RefusedError

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Text = Annotated[str, Meta(min_length=1)]
GpuIndex = Annotated[int, Meta(ge=0, le=1023)]
Gpus = Annotated[int, Meta(ge=1, le=1024)]
KvBytes = Annotated[float, Meta(gt=0, le=1e9)]
BlockTokens = Annotated[int, Meta(ge=1, le=1 << 20)]

MOST_SOCKET_PATH_BYTES = 107

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
class SloSettings:
    """What users of an engine may expect; ``slo_events_total`` counts what kept to it and what didn't."""

    tpot_seconds: Annotated[
        Seconds,
        Meta(
            description="The most seconds a token after the first may take: on average over a request where the engine"
            " tells that (vLLM from 0.11), else each by itself."
        ),
    ] = TIME_PER_OUTPUT_TOKEN_SLO_SECONDS
    ttft_seconds: Annotated[Seconds, Meta(description="The most seconds until the first token.")] = (
        TIME_TO_FIRST_TOKEN_SLO_SECONDS
    )


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """One engine to read. May be written as its URL alone."""

    shorthand: ClassVar[str] = "url"

    url: Annotated[
        str,
        Meta(
            description="Where its metrics are, with `http://` or `https://`; `/metrics` is added where there is no"
            " path. Must not carry a user or a password. A query is sent, and left out of logs."
        ),
    ]
    name: Annotated[
        str,
        Meta(
            description="The value of the `engine` label; unless set, host:port of the URL. No two engines can have"
            " the same."
        ),
    ] = ""
    deadline_seconds: Annotated[
        Seconds,
        Meta(
            description="Seconds for a whole read, from connecting to the last byte. Engines under overload have been"
            " seen to answer after 14 s; waiting that long gains a number that is stale by then."
        ),
    ] = 10.0
    max_body_bytes: Annotated[
        int,
        Meta(
            ge=1024,
            le=1 << 30,
            description="The most bytes a page may hold, as sent and when unpacked. An engine's page is tens of kB to"
            " a few MB; 32 MiB keeps a runaway one from filling memory.",
        ),
    ] = 32 * 1024 * 1024
    tls: Annotated[TlsSettings, Meta(description="How to speak TLS, for an `https://` URL.")] = TlsSettings()
    basic_auth: Annotated[
        BasicAuthSettings | None,
        Meta(
            description="User and password for the engine. Only one of `basic_auth`, `bearer_token` and"
            " `bearer_token_file` can be set."
        ),
    ] = None
    bearer_token: Annotated[
        Text | None,
        Meta(description="A token for the engine, here in the file; better is `bearer_token_file`."),
    ] = field(default=None, repr=False)
    bearer_token_file: Annotated[
        Path | None, Meta(description="A file that holds the token and nothing else.")
    ] = None
    headers: Annotated[
        Mapping[str, str],
        Meta(
            description="Further headers of each request, by name, such as a gateway's key. ASCII, never logged."
        ),
    ] = field(default_factory=dict, repr=False, hash=False)
    kv_bytes_per_token: Annotated[
        KvBytes | None,
        Meta(
            description="Bytes that one token takes in the KV cache of the whole model, over all GPUs of a replica,"
            " copies counted once. Goes before `model_config`. Signals in bytes need one of these two, or"
            " `tensor_parallel`: an engine tells its pool's size on one GPU and not on how many it lies."
        ),
    ] = None
    model_config: Annotated[
        Path | None,
        Meta(
            description="The model's `config.json`, as published with the weights, to work `kv_bytes_per_token` out"
            " from. Read once, at the start."
        ),
    ] = None
    kv_cache_dtype: Annotated[
        Text,
        Meta(
            description="The engine's KV cache dtype, for `model_config`: `auto` (the model's own), "
            + ", ".join(f"`{name}`" for name in (*DTYPE_BYTES, "fp8_ds_mla"))
            + "."
        ),
    ] = "auto"
    tensor_parallel: Annotated[
        Gpus | None,
        Meta(
            description="Over how many GPUs each layer is divided, as the engine was told. Enough for signals in bytes"
            " where the engine tells what its pool takes on one GPU; the log says at the first read what is missing."
        ),
    ] = None
    pipeline_parallel: Annotated[
        Gpus | None, Meta(description="Over how many stages the layers are divided, as the engine was told.")
    ] = None
    block_group_tokens: Annotated[
        tuple[BlockTokens, ...],
        Meta(
            description="Tokens a block holds, one number for each KV group of a hybrid model, where the engine"
            " doesn't tell. Empty tails of blocks are counted in each group."
        ),
    ] = ()
    gpus: Annotated[
        tuple[Text | GpuIndex, ...] | None,
        Meta(
            description="The GPUs it runs on, each by UUID, index in PCI order or PCI bus id (in quotes)."
            " One that isn't there is named in the log and on the page. Unless set, all of this"
            " machine; an empty list says that it runs elsewhere."
        ),
    ] = None
    kv_events: Annotated[
        KvEventsSettings | None,
        Meta(
            description="The KV events it publishes, where they are to be heard ([KV events](kv-events.md)). Needs the"
            " `kv-events` extra."
        ),
    ] = None
    probe: Annotated[
        Path | None,
        Meta(
            description="A Unix socket to make and to hear the engine's [probe](probe.md) on, which is told the same"
            " path. Only this user and root can connect. Ranks of one engine share it."
        ),
    ] = field(default=None, metadata={"written": True})
    slo: Annotated[SloSettings, Meta(description="What users of this engine may expect.")] = SloSettings()
    long_prompt_tokens: Annotated[
        int,
        Meta(ge=1, description="Prompts of more tokens than this count as long, for `long_prompt_ratio`."),
    ] = LONG_PROMPT_TOKENS

    def __post_init__(self) -> None:
        parts = checked_url(self.url)
        if parts.path in {"", "/"}:
            parts = parts._replace(path="/metrics")
        object.__setattr__(self, "url", parts.geturl())
        if not self.name:
            port = parts.port or DEFAULT_PORTS[parts.scheme]
            host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
            object.__setattr__(self, "name", f"{host}:{port}")
        ways = (self.basic_auth, self.bearer_token, self.bearer_token_file)
        if sum(way is not None for way in ways) > 1:
            raise RefusedError((), "set only one of basic_auth, bearer_token and bearer_token_file")
        if self.probe is not None and len(bytes(self.probe)) > MOST_SOCKET_PATH_BYTES:
            raise RefusedError(
                "probe",
                f"{self.probe} is longer than the {MOST_SOCKET_PATH_BYTES} bytes that a Unix socket's path may have",
            )
        for header, value in self.headers.items():
            if not _HEADER_NAME.fullmatch(header):
                raise RefusedError("headers", f"{header!r} is not a header name")
            if not value.isascii() or not value.isprintable():
                raise RefusedError(("headers", header), "holds characters a header can't carry")


def probe_source_name(engine: str) -> str:
    """What the source of an engine's probe is called, beside the engine's own."""
    return f"{engine}/probe"


def checked_url(url: str) -> SplitResult:
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
    if parts.scheme not in DEFAULT_PORTS:
        raise RefusedError("url", f"{url!r} must start with http:// or https://")
    if not parts.hostname or port == 0:
        raise RefusedError("url", f"{url!r} has no host, or port 0")
    if parts.fragment:
        raise RefusedError("url", f"{url!r} must not carry a #fragment")
    return parts
