"""A scene's GPUs behind the fake NVML library, as a real sampler finds them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from drill.actions import LoseGpu, NarrowLink
from drill.command import drill
from drill.fake_nvml.block import Presence
from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.scene import Blindness, Scene
from drill.scenarios.setting import Setting, SettingError
from drill.showing.fake_gpus import FakeGpus
from drill.showing.pages import Performance
from tests.exporter.running import call
from tests.support.fake_library import need_parts

SCENE: Scene = replace(
    SCENARIOS["overload"].scene(Setting(engines=2)),
    seconds=12,
    plan=((2.5, NarrowLink("engine-0", 4)), (3.5, LoseGpu("engine-1", 1))),
    blindness=(Blindness("engine-0", 6.0, 9.0),),
)


@pytest.fixture
def performance(tmp_path: Path) -> Iterator[Performance]:
    need_parts()
    played = Performance(SCENE, 1)
    played.beside = FakeGpus(SCENE, played.gpus, tmp_path)
    yield played
    played.beside.close()


def test_the_sidecar_finds_all_of_them_by_the_uuids_of_its_settings(performance: Performance) -> None:
    assert performance.beside is not None
    for _ in range(3):
        performance.next()
    done = call("--engine", "http://127.0.0.1:1", "--once", environ=performance.beside.environment)
    wanted = [uuid for uuids in performance.uuids.values() for uuid in uuids]
    assert len(set(wanted)) == 4
    for uuid in wanted:
        assert f'thrashold_gpu_up{{uuid="{uuid}"}} 1.0' in done.stdout
    line = next(
        each for each in done.stdout.splitlines() if each.startswith("thrashold_pcie_link_downgraded")
    )
    assert line.endswith(" 1.0")


def test_what_befalls_them_befalls_them_there(performance: Performance) -> None:
    assert performance.beside is not None
    control = performance.beside._control  # noqa: SLF001 -- what a driver would know
    hung = []
    while (pages := performance.next()) is not None:
        lost = [control.device(index).presence == Presence.LOST for index in range(4)]
        assert lost == [False, False, False, pages.second.seconds >= 4]
        hung.append(sum(bool(rule.function) for rule in control.board.rules))
    assert hung == [0] * 5 + [2] * 3 + [0] * 4
    performance.beside.show(performance.gpus, next(SCENE.fleet(1).run(1)))
    assert not any(control.device(index).presence for index in range(4)), (
        "a scene that begins anew has them all"
    )


def test_more_gpus_than_it_has_are_refused(tmp_path: Path) -> None:
    scene = SCENARIOS["overload"].scene(Setting(engines=5))
    with pytest.raises(SettingError, match="has 8 GPUs and the engines have 10: take fewer --engines"):
        FakeGpus(scene, Performance(scene, 1).gpus, tmp_path)


def test_a_library_needs_a_folder() -> None:
    result = CliRunner().invoke(drill, ["serve", "overload", "--gpus", "fake"])
    assert result.exit_code == 2
    assert "give --out DIR" in result.output
