"""Gateways before the real engine: what the sidecar says against what clients and engine know.

Part of the one run that serves all tests (``conftest.figures``); its traces lie in ``gateway.json``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from exporter.derive.orphans import HELD_SECONDS
from tests.real_engine import gateway_run
from tests.real_engine.gateway_clients import ENOUGH
from tests.real_engine.gateway_run import orphans
from tests.real_engine.judge_gateway import (
    LOOK_SECONDS,
    SEEN_WITHIN_SECONDS,
    Told,
    allowed,
    false_claims,
    quick,
    values,
)
from tests.real_engine.judging import Figure
from tests.real_engine.truth import read_oracle

pytestmark = [pytest.mark.real, pytest.mark.timeout(2400)]

SLOW_LOOKS = 0.25

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
def told(figures: Mapping[str, Figure], traces: Path) -> Told:
    assert figures
    found: Told = json.loads((traces / gateway_run.FILE).read_text(encoding="utf-8"))
    lines = (traces / "oracle.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    # vLLM puts cmpl- before the id of X-Request-Id, and numbers after it
    freed = {end.request.split("-")[1]: end.at for end in read_oracle(lines).ends}
    found["held"] = [
        (given_up, freed[attempt]) for attempt, given_up in found["given_up"].items() if attempt in freed
    ]
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
        assert told["ends"].get(end, 0) >= ENOUGH, told["ends"]
    assert told["ends"].get("504", 0) + told["ends"].get("broken", 0) >= ENOUGH
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
    """As quick as the slowest that a client saw: the buckets of Envoy's histogram are up to 2.5 times apart there."""
    said = values(told["after"], "gateway_reject_p99_seconds", told["limited"])
    assert 0.0 < said[""] < max(1.0, 2.5 * told["longest_rejection_seconds"])


@pytest.mark.parametrize("part", ["storm", "orphans"])
def test_the_machine_was_quick_enough_to_be_judged(told: Told, part: str) -> None:
    """Else the claims below would hold by having seen nothing."""
    took = [look["over"] - look["began"] for look in told[part]]
    slow = sum(seconds > LOOK_SECONDS for seconds in took)
    assert slow <= SLOW_LOOKS * len(took), (
        f"{slow} of {len(took)} looks took over a second, up to {max(took):.1f} s"
    )
    assert allowed(told[part]) <= 3 * SEEN_WITHIN_SECONDS


def test_envoy_alone_leaves_no_orphan_that_lasts(told: Told) -> None:
    """The engine hears of it and frees the blocks at its next step: nothing is claimed that wasn't held."""
    assert told["held"], "Envoy gave nothing up, or the engine knows it by other ids"
    assert not (false := false_claims(told["storm"], told["held"])), "; ".join(false)
    known = [orphans(look) for look in quick(told["storm"])]
    assert known.count(0.0) > len(known) / 2


def test_orphans_are_seen_soon_all_of_them_and_no_more(told: Told) -> None:
    """How many requests Envoy had reset when it was read in between only the clients' machine knows: at first some."""
    looks = told["orphans"]
    first = next(look for look in looks if orphans(look))
    seen_by = told["left"] + allowed([look for look in looks if told["left"] < look["over"] <= first["over"]])
    # a client that is kept waiting for a core says late that it has left
    assert told["asked"] + gateway_run.WALK_OFF_SECONDS + HELD_SECONDS < first["over"] <= seen_by
    assert max(claim for look in looks if (claim := orphans(look))) == gateway_run.WALKING_OFF
    # as long as none has come to its end, by the engine's page, which is read before the sidecar's
    worked = max(look["at"] for look in looks if look["running"] == gateway_run.WALKING_OFF)
    steady = [look for look in looks if seen_by < look["over"] < worked]
    assert steady
    assert {orphans(look) for look in steady} == {gateway_run.WALKING_OFF}
    assert values(first, "orphan_kv_ratio")[""] > 0


def test_orphans_are_gone_once_the_engine_has_freed_them(told: Told) -> None:
    """The proxy passes the disconnects on at last, and the engine frees what nobody waits for."""
    looks = told["orphans"]
    freed = max(look["at"] for look in looks if look["running"] > 0)
    gone = next(look for look in looks if look["at"] > freed and orphans(look) == 0)
    after = [look for look in looks if freed < look["over"] <= gone["over"]]
    assert gone["over"] <= freed + allowed(after)
    assert {orphans(look) for look in looks if look["over"] > gone["over"]} <= {0.0, None}
