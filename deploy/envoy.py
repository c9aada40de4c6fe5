"""An Envoy before engines of yours, as its own configuration has it: for clients to come to, with stats to be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import SplitResult, urlsplit

from deploy.ports import Ports

_MANAGER = (
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
)
_ROUTER = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
_CONNECT_SECONDS = 2.0


class UnservableError(ValueError):
    """An engine that Envoy isn't put before: which, and why."""


def configuration(engines: Sequence[str], ports: Ports) -> dict[str, Any]:
    """``engines``: ``[NAME=]URL`` as the sidecar takes them. Each request goes to the one with the fewest in flight.

    An answer may take as long as it takes: it is a stream of tokens. Who is turned away is so by Envoy's own limit of
    1,024 requests. Raises UnservableError.
    """
    manager = {
        "@type": _MANAGER,
        "stat_prefix": "ingress",
        "route_config": {
            "virtual_hosts": [
                {
                    "name": "all",
                    "domains": ["*"],
                    "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "engines", "timeout": "0s"}}],
                }
            ]
        },
        "http_filters": [{"name": "envoy.filters.http.router", "typed_config": {"@type": _ROUTER}}],
    }
    chain = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
    behind = [{"endpoint": {"address": _address(*_host_and_port(each))}} for each in engines]
    cluster = {
        "name": "engines",
        "type": "STRICT_DNS",
        "dns_lookup_family": "V4_PREFERRED",
        "connect_timeout": f"{_CONNECT_SECONDS:g}s",
        "lb_policy": "LEAST_REQUEST",
        "circuit_breakers": {"thresholds": [{"track_remaining": True}]},
        "load_assignment": {"cluster_name": "engines", "endpoints": [{"lb_endpoints": behind}]},
    }
    return {
        "admin": {"address": _address("127.0.0.1", ports.gateway_admin)},
        "static_resources": {
            "listeners": [
                {
                    "name": "clients",
                    "address": _address("127.0.0.1", ports.gateway),
                    "filter_chains": [chain],
                }
            ],
            "clusters": [cluster],
        },
    }


def _host_and_port(engine: str) -> tuple[str, int]:
    before, _, rest = engine.partition("://")
    scheme = before.rpartition("=")[2]
    try:
        url: SplitResult = urlsplit(f"{scheme}://{rest}")
        host, port = url.hostname, url.port
    except ValueError as error:
        raise UnservableError(f"{engine}: {error}") from error
    if scheme != "http" or not host:
        raise UnservableError(f"{engine}: Envoy is put before engines at http://HOST:PORT")
    return host, port or 80


def _address(host: str, port: int) -> dict[str, Any]:
    return {"socket_address": {"address": host, "port_value": port}}
