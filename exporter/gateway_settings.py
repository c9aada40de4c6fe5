"""What can be set on a gateway: where its stats are, and which engines stand behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from exporter.engine_settings import DEFAULT_PORTS, BasicAuthSettings, Seconds, Text, TlsSettings, checked_url
from exporter.settings import RefusedError

PATHS = {"envoy": "/stats/prometheus", "litellm": "/metrics/"}
"""Where a gateway has its metrics, by its kind. LiteLLM redirects those who leave out the slash at the end."""


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """A gateway before the engines to read. May be written as its URL alone."""

    shorthand: ClassVar[str] = "url"

    url: Annotated[
        str,
        Meta(
            description="Where its metrics are, with `http://` or `https://`; where there is no path, Envoy's"
            " `/stats/prometheus` is added, or LiteLLM's `/metrics/` where `kind` says so."
        ),
    ]
    name: Annotated[
        str,
        Meta(
            description="The value of the `gateway` label; unless set, host:port of the URL. No other gateway or engine"
            " can have the same."
        ),
    ] = ""
    kind: Annotated[
        Literal["auto", "envoy", "litellm"],
        Meta(description="What it is; `auto` finds it out by the names on its page."),
    ] = "auto"
    cluster: Annotated[
        str,
        Meta(
            description="Envoy: the cluster of the engines. Unless set, the only one that requests are sent to, those"
            " that Envoy calls for its own ends apart."
        ),
    ] = ""
    listener: Annotated[
        str,
        Meta(
            description="Envoy: the `stat_prefix` of the HTTP connection manager that the engines' clients come to."
            " Unless set, the only one that requests come to; needed where other clusters are sent requests too."
        ),
    ] = ""
    engines: Annotated[
        tuple[Text, ...] | None,
        Meta(
            description="The names of the engines behind it. Unless set, all that are read; an empty list says that"
            " none of them is."
        ),
    ] = None
    deadline_seconds: Annotated[Seconds, Meta(description="Seconds for a whole read.")] = 5.0
    max_body_bytes: Annotated[
        int,
        Meta(
            ge=1024,
            le=1 << 30,
            description="The most bytes a page may hold. LiteLLM's grows with its keys, models and users.",
        ),
    ] = 32 * 1024 * 1024
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
        Mapping[str, str], Meta(description="Further headers of each request, by name. ASCII, never logged.")
    ] = field(default_factory=dict, repr=False, hash=False)

    def __post_init__(self) -> None:
        parts = checked_url(self.url)
        if parts.path in {"", "/"}:
            parts = parts._replace(path=PATHS.get(self.kind, PATHS["envoy"]))
        object.__setattr__(self, "url", parts.geturl())
        if not self.name:
            port = parts.port or DEFAULT_PORTS[parts.scheme]
            host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
            object.__setattr__(self, "name", f"{host}:{port}")
        ways = (self.basic_auth, self.bearer_token, self.bearer_token_file)
        if sum(way is not None for way in ways) > 1:
            raise RefusedError((), "set only one of basic_auth, bearer_token and bearer_token_file")
        for key in ("cluster", "listener"):
            if getattr(self, key) and self.kind == "litellm":
                raise RefusedError(key, "is Envoy's; LiteLLM has none")
