"""What can be set on a gateway: where its stats are, and which engines stand behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from exporter.connection_settings import ConnectionSettings, Text, settle
from exporter.settings import RefusedError

PATHS = {"envoy": "/stats/prometheus", "litellm": "/metrics/"}
"""Where a gateway has its metrics, by its kind. LiteLLM redirects those who leave out the slash at the end."""


@dataclass(frozen=True, slots=True)
class GatewaySettings(ConnectionSettings):
    """A gateway before the engines to read. May be written as its URL alone, or as NAME=URL."""

    shorthand: ClassVar[str] = "url"
    shorthand_name: ClassVar[str] = "name"

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
    max_body_bytes: Annotated[
        int,
        Meta(
            ge=1024,
            le=1 << 30,
            description="The most bytes a page may hold. LiteLLM's grows with its keys, models and users.",
        ),
    ] = 32 * 1024 * 1024

    def __post_init__(self) -> None:
        address = settle(self, PATHS.get(self.kind, PATHS["envoy"]))
        if not self.name:
            object.__setattr__(self, "name", address)
        for key in ("cluster", "listener"):
            if getattr(self, key) and self.kind == "litellm":
                raise RefusedError(key, "is Envoy's; LiteLLM has none")
