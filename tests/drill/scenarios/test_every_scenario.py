"""What holds of every scenario: it can be run at its small size, its truth is what it says, it costs what it may."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from drill.command import drill
from drill.playing.run import METRICS, RAW, RECORDING, SUMMARY, TRUTH, run
from drill.playing.table import ROWS
from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.scenario import Scenario
from drill.scenarios.setting import Setting, SettingError

EVERY = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=list(SCENARIOS))


@EVERY
def test_a_small_scene_has_at_most_3_engines_and_20_minutes(scenario: Scenario) -> None:
    scene = scenario.scene(Setting())
    assert 1 <= len(scene.engines) <= 3
    assert scene.seconds <= 1200


@EVERY
def test_a_ramp_that_nothing_can_take_is_refused_in_words_or_changes_nothing(scenario: Scenario) -> None:
    with contextlib.suppress(SettingError):
        ramped = scenario.scene(Setting(ramp_seconds=1e9))
        arrivals = [list(scene.load.between(0.0, 300.0)) for scene in (ramped, scenario.scene(Setting()))]
        assert arrivals[0] == arrivals[1]


@EVERY
def test_its_episodes_name_its_cause_and_lie_within_it(scenario: Scenario) -> None:
    scene = scenario.scene(Setting())
    assert [each.cause for each in scene.episodes[:1]] == [scenario.cause] * (scenario.cause is not None)
    for episode in scene.episodes:
        assert episode.scenario == scenario.name
        assert 0 < episode.onset_seconds < episode.end_seconds <= scene.seconds
        assert set(episode.affected) <= set(scene.names)
        assert episode.affected


def test_a_run_writes_what_it_says(tmp_path: Path) -> None:
    arguments = ["run", "overload", "--engines", "1", "--raw-every", "120", "--out", str(tmp_path)]
    result = CliRunner().invoke(drill, arguments)
    assert result.exit_code == 0, result.output
    assert "TPOT p99" in result.output
    assert {RECORDING, METRICS, TRUTH, SUMMARY, RAW} <= {path.name for path in tmp_path.iterdir()}
    truth = json.loads((tmp_path / TRUTH).read_text())
    scene = SCENARIOS["overload"].scene(Setting(engines=1))
    assert truth["cause"] == "overload"
    assert truth["affected"] == ["engine-0"]
    assert truth["onset"] == scene.epoch + scene.episodes[0].onset_seconds
    assert len(truth["seconds"]) == len(truth["engines"]["engine-0"]["running"]) == scene.seconds
    summary = json.loads((tmp_path / SUMMARY).read_text())
    assert set(summary) == {"baseline", "peak", "after"}
    assert all(set(phase) == {row.field for row in ROWS} for phase in summary.values())
    assert summary["peak"]["sessions"] > summary["baseline"]["sessions"] > 0
    assert (tmp_path / METRICS).read_bytes().endswith(b"# EOF\n")
    # how often pages are wanted says that they are wanted
    pages = (tmp_path / RAW).read_text().splitlines()
    assert len({line.rsplit(" ", 1)[1] for line in pages if line[:3] == "up{"}) == scene.seconds // 120


def test_the_same_seed_gives_the_same_run_and_another_another(tmp_path: Path) -> None:
    whole, kept = SCENARIOS["overload"], {}
    scenario = replace(whole, fleet=lambda setting: replace(whole.fleet(setting), seconds=60))
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        run(scenario, Setting(seed=seed, engines=1), tmp_path / name)
        kept[name] = (tmp_path / name / METRICS).read_bytes()
    assert kept["one"] == kept["again"] != kept["other"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], "no scenario 'nothing': `thrashold drill list` has them"),
        (
            ["overload", "--with", "Prefix-Colapse"],
            "no scenario 'Prefix-Colapse': did you mean prefix-collapse?",
        ),
        (
            ["incident", "--gpu", "rtx-4090"],
            "tokens of KV on 8 NVIDIA GeForce RTX 4090, and 100,000 are needed",
        ),
        (["overload", "--model", "gpt-9"], "gpt-9"),
        (["overload", "--gpu", "voodoo"], "voodoo"),
        (["overload", "--engines", "0"], "0 engines asked for: take 1 or more"),
        (["overload", "--engines", "1000000"], "1,000,000 engines asked for: take at most 500"),
        (["overload", "--ramp", "-1"], "a ramp of -1.0 s asked for: take 0 or more"),
        (["overload", "--load", "0"], "a load of 0.0 times its own asked for: take more than 0"),
        (
            ["incident", "--load", "0.5"],
            "incident is no matter of more or less load: leave the load as it is",
        ),
        (["overload", "--ramp", "inf"], "a ramp of inf s asked for: take 0 or more"),
        (["overload", "--ramp", "300"], "a ramp of 300 s for a load of 240 s asked for: take 240 or less"),
        (["overload", "--seed", "-1"], "a seed of -1 asked for: take 0 or more"),
    ],
)
def test_what_cannot_be_run_is_refused(arguments: list[str], words: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(drill, ["run", *arguments, "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert words in result.output
    assert not list(tmp_path.iterdir())
