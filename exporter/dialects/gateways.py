"""The dialects of gateways we know. A new one is one line here."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from exporter.dialects.envoy import EnvoyDialect
from exporter.dialects.gateway_dialect import GatewayDialect
from exporter.dialects.litellm import LitellmDialect

GATEWAYS: tuple[GatewayDialect[Any], ...] = (EnvoyDialect(), LitellmDialect())


def of_gateway_kind(kind: str) -> GatewayDialect[Any]:
    """The dialect of that name. Raises LookupError for one that there is none of."""
    for each in GATEWAYS:
        if each.kind == kind:
            return each
    raise LookupError(kind)


def detect_gateway(names: Collection[str], kind: str = "auto") -> GatewayDialect[Any] | None:
    """The dialect of an endpoint with series of these names, of that ``kind`` unless it is ``auto``."""
    return next(
        (each for each in GATEWAYS if kind in {"auto", each.kind} and each.recognises(names)),
        None,
    )
