"""Gateways before the real engine: what the sidecar says against what clients and engine know.

Part of the one run that serves all tests (``conftest.figures``); its traces lie in ``gateway.json``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.real_engine import gateway_run, install
from tests.real_engine.judge import Figure

pytestmark = [pytest.mark.real, pytest.mark.timeout(1200)]

SEEN_WITHIN_SECONDS = 3.0
READ_SECONDS = 0.2
"""A cycle comes a quarter of a second after the reads began: a read that takes longer is seen a second later."""
Told = dict[str, Any]

OUTCOMES = {
    "ok": ("done",),
    "rejected": ("429",),
    "overflow": ("503",),
    "timeout": ("504", "broken"),
    "client_left": ("left",),
    "client_error": ("400", "404"),
    "server_error": ("500",),
}
"""What a client saw of each outcome. Nothing but the gateway's time breaks an answer off here."""


@pytest.fixture(scope="module")
def told(figures: Mapping[str, Figure]) -> Told:
    assert figures
    home = Path(os.environ.get("THRASHOLD_REAL_ENGINE_OUT") or install.HOME)
    found: Told = json.loads((home / "last_run" / gateway_run.FILE).read_text(encoding="utf-8"))
    return found


def values(look: Told, name: str, gateway: str | None = None) -> dict[str, float]:
    """The values of a signal by its own label; of all gateways, or of one."""
    found = {}
    for called, labels, value in look["said"]:
        if called == name and gateway in {None, labels.get("gateway")}:
            found[next((text for label, text in labels.items() if label != "gateway"), "")] = value
    return found


def ended(told: Told) -> dict[str, float]:
    """How requests ended through the gateway with limits, by the sidecar."""
    before, after = (
        values(told[when], "gateway_requests_total", told["limited"]) for when in ("before", "after")
    )
    return {outcome: count - before[outcome] for outcome, count in after.items()}


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_every_attempt_is_counted_once_by_how_it_ended(told: Told, outcome: str) -> None:
    assert ended(told)[outcome] == sum(told["ends"].get(end, 0) for end in OUTCOMES[outcome]), told["ends"]


def test_the_storm_had_all_that_it_was_to_have(told: Told) -> None:
    for end in ("done", "429", "503", "left"):
        assert told["ends"].get(end, 0) >= 3, told["ends"]
    assert told["ends"].get("504", 0) + told["ends"].get("broken", 0) >= 3
    assert sum(ended(told).values()) == sum(told["ends"].values())


def test_amplification_is_that_of_the_clients(told: Told) -> None:
    true = sum(told["ends"].values()) / told["ends"]["done"]
    said = values(told["after"], "retry_amplification_ratio", told["limited"])[""]
    assert true > 1.5
    assert said == pytest.approx(true, rel=0.1)


def test_the_breaker_was_seen_open(told: Told) -> None:
    seen = [
        labels["kind"]
        for look in told["storm"]
        for name, labels, value in look["said"]
        if name == "gateway_breaker_open" and value == 1
    ]
    assert set(seen) == {"requests"}


def test_rejections_are_quick(told: Told) -> None:
    said = values(told["after"], "gateway_reject_p99_seconds", told["limited"])
    assert 0.0 < said[""] < 1.0


def test_envoy_alone_leaves_no_orphan_that_lasts(told: Told) -> None:
    """It resets the request to the engine, which frees the blocks at its next step."""
    seen = [values(look, "orphan_sequences") for look in told["storm"]]
    assert [each[""] for each in seen if each].count(0.0) > 10
    assert not any(each.get("") for each in seen)


def test_orphans_are_seen_soon_all_of_them_and_no_more(told: Told) -> None:
    seen = [(look["at"], values(look, "orphan_sequences").get("")) for look in told["orphans"]]
    first = min(at for at, orphans in seen if orphans)
    slow = any(
        value > READ_SECONDS
        for look in told["orphans"]
        if told["left"] < look["at"] <= first
        for value in values(look, "source_read_seconds").values()
    )
    assert told["left"] < first <= told["left"] + SEEN_WITHIN_SECONDS + slow
    # as long as none has come to its end
    working = [look["at"] for look in told["orphans"] if look["running"] == gateway_run.WALKING_OFF]
    assert {orphans for at, orphans in seen if orphans and at <= max(working)} == {gateway_run.WALKING_OFF}
    assert all(values(look, "orphan_kv_ratio")[""] > 0 for look in told["orphans"] if look["at"] == first)


def test_orphans_are_gone_once_the_engine_has_freed_them(told: Told) -> None:
    freed = max(look["at"] for look in told["orphans"] if look["running"] > 0)
    late = [
        look["at"] - freed
        for look in told["orphans"]
        if look["at"] > freed + SEEN_WITHIN_SECONDS and values(look, "orphan_sequences").get("") != 0.0
    ]
    assert late == []
    assert told["orphans"][-1]["at"] > freed + SEEN_WITHIN_SECONDS
