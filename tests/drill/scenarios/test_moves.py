"""Every scenario, moved and composed: a scene that holds what it says, or words that say what would do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from drill.command import drill
from drill.playing.key_metrics import phases_of
from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.long_answers import BEFORE_RESERVATION
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Scene
from drill.scenarios.setting import Setting, SettingError, Size
from drill.serving.config import EngineConfigError, Generation

MOVES: dict[str, dict[str, Any]] = {
    "not at all": {},
    "one engine": {"engines": 1},
    "another GPU": {"gpu": "a100"},
    "another model": {"model": "llama-8b"},
    "V0": {"generation": Generation.V0},
    "V1": {"generation": Generation.V1},
    "a ramp of 5 min": {"ramp_seconds": 300.0},
    "a ramp of 3 h": {"ramp_seconds": 1e4},
    "another seed": {"seed": 7},
}
EVERY = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=list(SCENARIOS))


def made(scenario: Scenario, setting: Setting, others: Sequence[str] = ()) -> Scene | None:
    """The scene; None where it is refused in words."""
    try:
        return scenario.scene(setting, [SCENARIOS[name] for name in others])
    except (SettingError, EngineConfigError) as error:
        words = str(error)
    # what is wrong, and what would do
    assert any(f": {what} " in words or f"; {what} " in words for what in ("take", "leave out"))
    return None


def check(scene: Scene) -> None:
    """What holds of all of them."""
    assert list(islice(scene.load, 3))
    phases = phases_of(scene)
    assert phases.baseline[1] - phases.baseline[0] >= 30
    for at, _ in scene.plan:
        assert at < scene.seconds
    for episode in scene.episodes:
        assert 0 < episode.onset_seconds < episode.end_seconds <= scene.seconds
        assert set(episode.affected) <= set(scene.names)
        assert phases.baseline[1] <= episode.onset_seconds
        if phases.peak[1] < scene.seconds:
            assert phases.after[0] >= episode.end_seconds


@EVERY
@pytest.mark.parametrize("size", Size)
def test_wherever_it_is_moved_there_is_a_scene_or_words(scenario: Scenario, size: Size) -> None:
    scenes = {}
    for words, move in MOVES.items():
        scenes[words] = scene = made(scenario, Setting(size, **move))
        if scene is not None:
            check(scene)
    assert scenes["not at all"] is not None
    assert scenes["one engine"] is not None
    assert len(scenes["one engine"].servers) == 1


@EVERY
@pytest.mark.parametrize("engines", [None, 1])
def test_whatever_else_goes_wrong_there_is_a_scene_or_words(scenario: Scenario, engines: int | None) -> None:
    names = sorted(SCENARIOS)
    place = names.index(scenario.name)
    for step in (1, 4, 7, 11):
        others = [names[(place + step) % len(names)], names[(place + 2 * step + 1) % len(names)]]
        if scenario.name not in others and len(set(others)) == len(others):
            scene = made(scenario, Setting(engines=engines), others)
            if scene is not None:
                check(scene)


def test_a_run_lasts_as_long_as_what_else_goes_wrong_and_its_load_does_too() -> None:
    alone = SCENARIOS["offload-thrash"].scene(Setting())
    scene = SCENARIOS["offload-thrash"].scene(Setting(), [SCENARIOS["collective-slow"]])
    assert alone.seconds < scene.episodes[1].end_seconds < scene.seconds
    assert list(scene.load.between(scene.episodes[1].end_seconds, float(scene.seconds)))


@pytest.mark.parametrize(
    "names", [("recompute-thrash", "offload-thrash"), ("peak", "incident"), ("overload", "retry-storm")]
)
def test_loads_that_are_added_share_no_prompts(names: tuple[str, str]) -> None:
    scene = SCENARIOS[names[0]].scene(Setting(seed=1), [SCENARIOS[names[1]]])
    own = Counter(one.content[-1].content for one in scene.load.between(0.0, 400.0))
    assert max(own.values()) == 1


@pytest.mark.parametrize("stops", ["gpu-lost", "metric-rename"])
@pytest.mark.parametrize("other", ["engine-frozen", "kv-leak", "collective-slow", "pcie-downgraded"])
def test_an_engine_that_is_stopped_is_none_that_something_else_goes_wrong_with(
    stops: str, other: str
) -> None:
    for first, second in ((stops, other), (other, stops)):
        scene = SCENARIOS[first].scene(Setting(), [SCENARIOS[second]])
        assert {each.affected for each in scene.episodes} == {("engine-0",), ("engine-1",)}


def test_nothing_lasts_on_an_engine_whose_gpu_is_lost() -> None:
    for names in (("gpu-lost", "overload"), ("overload", "gpu-lost")):
        with pytest.raises(SettingError, match="overload lasts until 420 s, and of engine-0 a GPU is lost"):
            SCENARIOS[names[0]].scene(Setting(engines=1), [SCENARIOS[names[1]]])
    with pytest.raises(SettingError, match="kv-leak begins at 180 s, when engine-0 is restarted"):
        SCENARIOS["kv-leak"].scene(Setting(engines=1), [SCENARIOS["metric-rename"]])


def test_a_leak_ends_with_the_restart_that_gets_the_blocks_back() -> None:
    scene = SCENARIOS["incident"].scene(Setting(), [SCENARIOS["kv-leak"]])
    (leak,) = (each for each in scene.episodes if each.scenario == "kv-leak")
    assert leak.end_seconds == 610  # of the first engine, which drains for 10 s


@pytest.mark.parametrize("names", [("prefix-collapse", "recompute-thrash"), ("incident", "prefix-collapse")])
def test_no_prefix_cache_collapses_where_there_is_none(names: tuple[str, str]) -> None:
    with pytest.raises(SettingError, match="prefix"):
        SCENARIOS[names[0]].scene(Setting(), [SCENARIOS[names[1]]])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["overload", "--with", "overload"], "overload goes wrong twice: take it once"),
        (["incident", "--with", "incident-pages"], "incident-pages goes wrong twice: take it once"),
        (["overload", "--seed", "-1"], "a seed of -1 asked for: take 0 or more"),
        (["incident", "--ramp", "inf"], "a ramp of inf s asked for: take 0 or more"),
        (["overload", "--ramp", "300"], "a ramp of 300 s for a load of 240 s asked for: take 240 or less"),
        (["retry-storm", "--ramp", "300"], "take 150 or less"),
    ],
)
def test_what_cannot_be_is_refused_on_the_command_line(
    arguments: list[str], words: str, tmp_path: Path
) -> None:
    for command in ("run", "serve"):
        result = CliRunner().invoke(drill, [command, *arguments, "--out", str(tmp_path)])
        assert result.exit_code == 2, result.output
        assert words in result.output
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "names", [("recompute-thrash", "metric-rename"), ("metric-rename", "recompute-thrash")]
)
def test_who_is_upgraded_for_a_name_alone_shows_the_release_that_it_behaves_as(
    names: tuple[str, str],
) -> None:
    scene = SCENARIOS[names[0]].scene(Setting(), [SCENARIOS[names[1]]])
    engine = scene.one_engine()
    assert {each.release or scene.release_of(each.engine) for each in scene.upgrades} == {BEFORE_RESERVATION}
    assert not scene.engines[engine].reserve_whole_prompt
