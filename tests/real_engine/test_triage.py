"""Triage on a real vLLM: the right verdict while it is idle, busy, overloaded, frozen and gone.

Part of the one run that serves all tests (``conftest.figures``); what was said lies in ``triage.jsonl``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.real_engine.judging import Figure
from tests.real_engine.triage_run import ALONE, FILE, SIDECAR, STATES

pytestmark = [pytest.mark.real, pytest.mark.timeout(2400)]

Said = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def said(figures: Mapping[str, Figure], traces: Path) -> Said:
    assert figures
    lines = (traces / FILE).read_text(encoding="utf-8").splitlines()
    return {(told["state"], told["way"]): told for told in map(json.loads, lines)}


def test_it_was_asked_at_each_moment(said: Said) -> None:
    assert set(said) == {(state, way) for state in STATES for way in (SIDECAR, ALONE)}


@pytest.mark.parametrize("way", [SIDECAR, ALONE])
@pytest.mark.parametrize(
    ("state", "verdict", "code"),
    [("idle", "healthy", 0), ("load", "healthy", 0), ("overload", "overload", 1)],
)
def test_a_second_tells_a_busy_engine_from_one_that_is_asked_for_too_much(
    said: Said, state: str, verdict: str, code: int, way: str
) -> None:
    told = said[state, way]
    assert (told["said"]["verdict"], told["code"]) == (verdict, code), told["said"]


def test_a_core_that_is_stopped_is_suspected_at_once_and_known_after_half_a_minute(said: Said) -> None:
    for state in ("standing", "frozen"):
        alone = said[state, ALONE]["said"]
        assert (alone["verdict"], alone["certainty"]) == ("engine-frozen", "possible"), alone
        assert any("--wait" in command for command in alone["next"]["commands"])
    beside = said["frozen", SIDECAR]["said"]
    assert (beside["verdict"], beside["certainty"]) == ("engine-frozen", "certain"), beside


def test_an_engine_that_is_gone_is_an_error_alone_and_a_finding_beside_a_sidecar(said: Said) -> None:
    alone, beside = said["gone", ALONE], said["gone", SIDECAR]
    assert alone["code"] == 2
    assert "refused" in alone["said"]["error"]
    assert (beside["said"]["verdict"], beside["code"]) == ("engine-down", 1), beside
