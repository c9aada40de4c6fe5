"""The incident, as the demo shows it: one small run, its words, its key metrics and its truth."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from drill.playing.run import METRICS, RECORDING, SUMMARY, TRUTH
from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.incident import course_of
from drill.scenarios.scene import Scene
from drill.scenarios.setting import Setting, Size
from drill.serving.config import Generation
from drill.serving.host_copies import PAYLOAD_RATIO
from drill.serving.request import PreemptionMode
from exporter.pcie import HEADER_FACTOR

pytestmark = pytest.mark.timeout(600)
ROOT = Path(__file__).resolve().parents[3]
INCIDENT, PAGES = SCENARIOS["incident"], SCENARIOS["incident-pages"]


@dataclass(frozen=True)
class Shown:
    scene: Scene
    words: str
    summary: dict[str, dict[str, float]]
    truth: dict[str, Any]

    def line(self, words: str) -> int:
        """Which of the lines tells this first."""
        lines = self.words.splitlines()
        return next(place for place, line in enumerate(lines) if words in line)

    def fleet(self, column: str) -> list[float]:
        """Second by second, of all engines together."""
        rows = [engine[column] for engine in self.truth["engines"].values()]
        return [sum(value or 0 for value in values) for values in zip(*rows, strict=True)]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    out = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [sys.executable, "-m", "drill.demo", "--out", str(out)],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert {RECORDING, METRICS, TRUTH, SUMMARY, "report.html", "report.md", "report.json"} <= {
        path.name for path in out.iterdir()
    }
    return Shown(
        INCIDENT.scene(Setting()),
        done.stdout,
        json.loads((out / SUMMARY).read_text()),
        json.loads((out / TRUTH).read_text()),
    )


def test_it_is_told_as_it_happens_and_ends_with_the_table_and_its_deviations(shown: Shown) -> None:
    order = [
        shown.line(words)
        for words in (
            "incident begins",
            "clients time out and come again",
            "KV usage",
            "zero-swap invariant broken",
            "gateway: rate_per_second 400",
            "engine-0: drain and restart with chunked_prefill on",
            "for a minute",
            "baseline there",
            "Where it differs from the postmortem",
            "summary.json",
            "thrashold analyze",
            "swap-thrash on engine-0 and engine-1",
            "report.html",
        )
    ]
    assert order == sorted(order)
    assert "\x1b" not in shown.words
    assert "nobody has said why" not in shown.words
    assert max(map(len, shown.words.splitlines())) < 160


def test_before_the_burst_gaps_are_as_the_postmortem_has_them(shown: Shown) -> None:
    baseline = shown.summary["baseline"]
    assert 0.15 <= baseline["tpot_p99_seconds"] <= 0.21
    assert 0.0175 <= baseline["tpot_p50_seconds"] <= 0.026
    assert baseline["swapped_sequences"] == 0


def test_answers_grow_beyond_the_pool_and_a_fifth_of_the_sessions_is_swapped(shown: Shown) -> None:
    peak = shown.summary["peak"]
    assert 0.15 < peak["swapped_sequences"] / peak["sessions"] < 0.35
    assert peak["sessions"] > 2.4 * shown.summary["baseline"]["sessions"]
    onset = int(shown.scene.episodes[0].onset_seconds)
    assert max(shown.fleet("swapped")[:onset]) == 0
    assert min(shown.truth["engines"]["engine-0"]["kv_usage_ratio"][onset + 120 : onset + 300]) > 0.97


def test_clients_come_again_and_their_orphans_fill_the_queue(shown: Shown) -> None:
    onset = int(shown.scene.episodes[0].onset_seconds)
    orphans = shown.fleet("orphans")
    assert max(orphans[:onset]) == 0
    assert orphans[onset + 300] > 3 * shown.summary["peak"]["sessions"]
    fleet = shown.truth["fleet"]
    assert fleet["answered"][onset + 300] - fleet["answered"][onset + 150] < 50


def test_gaps_grow_to_tens_of_seconds_before_the_engines_are_restarted(shown: Shown) -> None:
    """As in the full run: once sessions ask for prompts as fast as they are computed, hardly a token comes."""
    assert shown.summary["peak"]["tpot_p99_seconds"] > 10
    onset, restart = int(shown.scene.episodes[0].onset_seconds), int(course_of(Setting()).restart)
    attempts = shown.truth["fleet"]["attempts"]
    each = (
        (attempts[restart - 1] - attempts[onset + 329]) / (restart - onset - 330) / len(shown.scene.engines)
    )
    assert 2.4 < each < 3.2, "the full fleet's engines get 2.4 to 2.7 a second in its last ten minutes"


def test_the_link_is_nearly_idle_while_the_copies_last(shown: Shown) -> None:
    peak = shown.summary["peak"]
    assert 0.5e9 < peak["pcie_bytes_per_second"] < 2.1e9
    assert peak["pcie_saturation_ratio"] < 0.05


def test_after_the_restarts_nobody_is_swapped_and_gaps_are_short_again(shown: Shown) -> None:
    after = shown.summary["after"]
    assert after["tpot_p99_seconds"] < 0.2
    assert after["swapped_sequences"] == 0
    assert after["sessions"] > 0.85 * shown.summary["peak"]["sessions"]


def test_copies_are_bound_by_calls_or_with_pages_by_the_link() -> None:
    rates = {}
    for scenario in (INCIDENT, PAGES):
        config = scenario.scene(Setting()).engines["engine-0"]
        copies, blocks = config.copy_model, 1_000
        rates[scenario.name] = copies.bytes(blocks) * HEADER_FACTOR / copies.seconds(0, blocks)
        link = config.host_link_bytes_per_second
    assert rates["incident"] == pytest.approx(1.94e9, rel=0.01)
    assert rates["incident-pages"] / link == pytest.approx(HEADER_FACTOR * PAYLOAD_RATIO)


def test_the_full_fleet_is_the_postmortems() -> None:
    scene = INCIDENT.scene(Setting(Size.FULL))
    config = scene.engines["engine-0"]
    assert len(scene.engines) == 12
    assert (config.model.name, config.tensor_parallel, config.swap_bytes_gpu) == ("llama-70b", 8, 40e9)
    assert config.preemption is PreemptionMode.SWAP
    (episode,) = scene.episodes
    assert (scene.epoch + episode.onset_seconds) % 86_400 == (14 * 60 + 18) * 60
    assert (scene.epoch + episode.end_seconds) % 86_400 == (15 * 60 + 5) * 60
    burst = [one for one in scene.load if episode.onset_seconds <= one.seconds < episode.onset_seconds + 5]
    assert len(burst) == pytest.approx(750, rel=0.05)
    assert all(8_000 <= one.prompt_tokens <= 64_000 for one in burst)


def test_on_v1_it_recomputes_and_every_engine_is_restarted() -> None:
    scene = INCIDENT.scene(Setting(generation=Generation.V1, engines=3))
    assert scene.episodes[0].cause == "recompute-thrash"
    assert sum("drain and restart" in str(action) for _, action in scene.plan) == 3
