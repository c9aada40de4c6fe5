"""KV events of a real vLLM: what the sidecar counts from the wire against what the engine handed to its publisher.

The line between them is cut for two seconds under load: a real replay must bring what was missed. Part of the one run
that serves all tests (``conftest.figures``); the oracle's lines lie in ``kv_oracle.jsonl``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.real_engine import kv_events_run
from tests.real_engine.judging import Figure
from tests.real_engine.recorder import Row
from tests.real_engine.recording import Recording

pytestmark = [pytest.mark.real, pytest.mark.timeout(2400)]

WINDOW_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the oracle told until the engine had come to rest, what the sidecar said before load and at rest."""

    truth: list[dict[str, Any]]
    before: Row
    said: Row
    source: str


@pytest.fixture(scope="module")
def outcome(figures: Mapping[str, Figure], traces: Path) -> Outcome:
    assert figures
    run = Recording.load(traces)
    lines = (traces / kv_events_run.FILE).read_text(encoding="utf-8").splitlines(keepends=True)
    told = [json.loads(line) for line in lines if line.endswith("\n")]
    truth = [each for each in told if "batches" in each and each["t"] < run.marks["quiet_over"]]
    source = f"{run.facts['engine']}/kv_events"
    return Outcome(truth, run.probed_before("overload"), run.probed_before("quiet_over"), source)


def test_every_batch_and_every_block_is_counted_once_over_a_cut_line(outcome: Outcome) -> None:
    told, said = outcome.truth[-1], outcome.said
    assert said.get("kv_event_batches_total") == told["batches"]
    assert said.get("kv_block_stores_total", medium="gpu") == told["stored"]["GPU"]
    assert said.get("kv_block_removals_total", medium="gpu") == told["removed"]["GPU"]
    for nothing in (
        "kv_event_batches_lost_total",
        "kv_event_batches_broken_total",
        "kv_events_unknown_total",
    ):
        assert said.get(nothing) == 0
    assert told["stored"]["GPU"] > 500
    assert told["removed"]["GPU"] > 200


def test_the_line_really_was_cut_and_came_back(outcome: Outcome) -> None:
    before, after = (
        row.get("source_errors_total", source=outcome.source, reason="disconnected") or 0.0
        for row in (outcome.before, outcome.said)
    )
    assert after - before == 1
    assert outcome.before.get("source_up", source=outcome.source) == 1
    assert outcome.said.get("source_up", source=outcome.source) == 1


def test_the_rank_is_the_engine_s_own_word_for_it(outcome: Outcome) -> None:
    (value,) = outcome.said.all("kv_event_batches_total")
    assert value.labels == {"engine": outcome.source.removesuffix("/kv_events"), "rank": "0"}
    (of_metrics,) = outcome.said.all("preemptions_total")
    assert of_metrics.labels["rank"] == "0"


def test_the_restore_ratio_is_that_of_a_count_inside_the_engine(outcome: Outcome) -> None:
    """The sidecar's minute ends with its newest sample, up to some seconds before the page was asked for."""
    possible = [_ratio(outcome.truth, outcome.said.at - WINDOW_SECONDS - late / 4) for late in range(13)]
    said = outcome.said.get("kv_block_restore_ratio")
    assert said is not None
    assert 0.0 < min(possible) - 0.005 <= said <= max(possible) + 0.005


def _ratio(truth: list[dict[str, Any]], since: float) -> float:
    """Restores over stores on the GPU since then."""
    nothing = {"restored": 0, "stored": {"GPU": 0}}
    first = next((each for each in reversed(truth) if each["t"] <= since and "batches" in each), nothing)
    stored = truth[-1]["stored"]["GPU"] - first["stored"]["GPU"]
    return float(truth[-1]["restored"] - first["restored"]) / stored
