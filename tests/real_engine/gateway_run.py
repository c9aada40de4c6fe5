"""The part of the run with gateways before the engine: a storm through one, clients that walk off before another.

It judges nothing: ``gateway.json`` holds what clients and engine know, and what the sidecar said meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.real_engine import envoy
from tests.real_engine.gateway_clients import Truth, fill, storm, walk_off
from tests.real_engine.recorder import parse
from tests.real_engine.serve import ENDLESS_TOKENS
from tests.real_engine.swallow import Swallower, swallowing

STORM_SECONDS, STORM_AT_MOST_SECONDS = 12.0, 40.0
"""The longer one leaves room in the minute that amplification is told of."""
SETTLE_SECONDS = 2.5
WALKING_OFF, WALK_OFF_SECONDS = 6, 2.0
ORPHANS_SECONDS = 4.0
"""For so long they are looked at once the sidecar tells of them."""
PATIENCE_SECONDS = 30.0
POLL_SECONDS = 0.25
FILE = "gateway.json"
SIGNALS = (
    "gateway_requests_total",
    "gateway_inflight",
    "gateway_upstream_inflight",
    "gateway_breaker_open",
    "gateway_reject_p99_seconds",
    "retry_amplification_ratio",
    "orphan_sequences",
    "orphan_kv_ratio",
    "source_read_seconds",
    "cycles_skipped_total",
)


@dataclass(frozen=True, slots=True)
class Gateways:
    """Two Envoys before one engine: one with limits, the other behind which a proxy swallows disconnects."""

    limited: envoy.Envoy
    swallowed: envoy.Envoy
    swallower: Swallower

    @property
    def flags(self) -> list[str]:
        """What the sidecar is told of them."""
        return ["--gateway", self.limited.admin, "--gateway", self.swallowed.admin]


@contextlib.contextmanager
def serving(engine: int, out: Path) -> Iterator[Gateways]:
    """Before the engine at the loopback port ``engine``. Raises UnavailableError where there is no Envoy."""
    binary = envoy.ensure()
    with (
        envoy.serving(binary, engine, out, limited=True) as limited,
        swallowing(engine) as swallower,
        envoy.serving(binary, swallower.port, out, limited=False) as swallowed,
    ):
        yield Gateways(limited, swallowed, swallower)


def record(
    gateways: Gateways, engine_url: str, sidecar_url: str, out: Path, say: Callable[[str], None]
) -> None:
    """Run both parts and write ``gateway.json``. The sidecar has lived through a minute before."""
    with contextlib.closing(_Watch(engine_url, sidecar_url)) as watch:
        told = _watch_both(gateways, watch, say)
    (out / FILE).write_text(json.dumps(told) + "\n", encoding="utf-8")


def _watch_both(gateways: Gateways, watch: _Watch, say: Callable[[str], None]) -> dict[str, Any]:
    say(f"gateway: a storm for {STORM_SECONDS:.0f} s and what is still running then")
    before, truth = watch.look(), Truth()
    asyncio.run(_watched(storm(gateways.limited.url, STORM_SECONDS, STORM_AT_MOST_SECONDS, truth), watch))
    # as many as the breaker lets through, for as long as the gateway lets them: no look can miss that
    refilled = envoy.MOST_REQUESTS / envoy.TOKENS_A_SECOND + 1.0
    asyncio.run(_watched(fill(gateways.limited.url, envoy.MOST_REQUESTS, refilled, truth), watch))
    asyncio.run(_watched(asyncio.sleep(SETTLE_SECONDS), watch))
    limited = gateways.limited.admin.removeprefix("http://")
    wanted = ended(before, limited) + sum(truth.ends.values())
    watch.until(lambda look: ended(look, limited) >= wanted)
    after = watch.look()
    told = {
        "limited": limited,
        "longest_rejection_seconds": truth.longest_rejection_seconds,
        "ends": dict(truth.ends),
        "given_up": truth.given_up,
        "before": before,
        "after": after,
        "storm": watch.taken(),
    }
    say(f"gateway: {WALKING_OFF} clients walk off behind a proxy that swallows it")
    asked = time.time()
    left = asyncio.run(
        _watched(walk_off(gateways.swallowed.url, WALKING_OFF, WALK_OFF_SECONDS, ENDLESS_TOKENS), watch)
    )
    watch.until(lambda look: bool(orphans(look)))
    asyncio.run(_watched(asyncio.sleep(ORPHANS_SECONDS), watch))
    gateways.swallower.pass_on()
    passed_on = time.time()
    watch.until(lambda look: look["running"] == 0)
    watch.until(lambda look: orphans(look) == 0)
    asyncio.run(_watched(asyncio.sleep(1.0), watch))
    return told | {"asked": asked, "left": left, "passed_on": passed_on, "orphans": watch.taken()}


def ended(look: dict[str, Any], gateway: str) -> float:
    """How many requests had ended at a gateway, by the sidecar."""
    counts = (
        value
        for name, labels, value in look["said"]
        if name == "gateway_requests_total" and labels["gateway"] == gateway
    )
    return float(sum(counts))


def orphans(look: dict[str, Any]) -> float | None:
    """What the sidecar said of orphans then."""
    found: float | None = next((value for name, _, value in look["said"] if name == "orphan_sequences"), None)
    return found


class _Watch:
    """Looks at the engine's own gauge and at the sidecar, again and again."""

    def __init__(self, engine_url: str, sidecar_url: str) -> None:
        self._engine, self._sidecar = f"{engine_url}/metrics", sidecar_url
        self._client = httpx.Client(timeout=10.0, trust_env=False)
        self._looks: list[dict[str, Any]] = []

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def look(self) -> dict[str, Any]:
        """Both pages, the engine's first: asked for at ``began``, had ``at`` and ``over``."""
        began = time.time()
        page = self._client.get(self._engine).raise_for_status().text
        at = time.time()
        running = sum(
            float(line.rpartition(" ")[2])
            for line in page.splitlines()
            if line.startswith(("vllm:num_requests_running{", "vllm:num_requests_waiting{"))
        )
        page = self._client.get(self._sidecar).raise_for_status().text
        over = time.time()
        told = [(name, labels, value) for name, labels, value, _ in parse(page) if name in SIGNALS]
        self._looks.append({"began": began, "at": at, "over": over, "running": running, "said": told})
        return self._looks[-1]

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> None:
        """Look until it is seen, or for ``PATIENCE_SECONDS``; whoever judges sees which."""
        end = time.time() + PATIENCE_SECONDS
        while time.time() < end and not wanted(self.look()):
            time.sleep(POLL_SECONDS)

    def taken(self) -> list[dict[str, Any]]:
        """All looks since it was last asked for."""
        looks, self._looks = self._looks, []
        return looks


async def _watched(work: Any, watch: _Watch) -> Any:  # noqa: ANN401 -- whatever the work gives
    doing = asyncio.ensure_future(work)
    while not doing.done():
        await asyncio.to_thread(watch.look)
        await asyncio.wait({doing}, timeout=POLL_SECONDS)
    return doing.result()
