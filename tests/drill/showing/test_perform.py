"""A scene at its pace, on ports that are open as long as there is somebody behind them."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

import httpx
import pytest

from drill.actions import LoseGpu, Restart
from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.scene import Blindness, Scene
from drill.scenarios.setting import Setting
from drill.showing.pages import Pages, Performance
from drill.showing.serve import Late, perform
from drill.showing.stage import ALL_GPUS, GATEWAY, Stage
from tests.exporter.dialects.dcgm_text import first

FAST = 1e6


def scene(seconds: int, **changes: object) -> Scene:
    whole = SCENARIOS["overload"].scene(Setting(engines=2))
    return replace(whole, seconds=seconds, **changes)  # type: ignore[arg-type]


def on_stage(
    played: Scene, story: Callable[[Stage, Performance], Awaitable[None]], speed: float = FAST
) -> None:
    async def run() -> None:
        stage = Stage(played, "127.0.0.1", 0, speed=speed, seed=1)
        try:
            await asyncio.wait_for(story(stage, Performance(played, 1)), 60)
        finally:
            stage.close()
            await asyncio.sleep(0.01)

    asyncio.run(run())


def test_who_is_dead_or_starting_refuses_and_answers_again_at_the_same_port() -> None:
    played = scene(
        12,
        plan=((3.0, Restart("engine-0", drain_seconds=0.0)), (6.5, LoseGpu("engine-1", 0))),
        start_seconds=4.0,
    )

    async def story(stage: Stage, performance: Performance) -> None:
        answers: dict[str, list[bool]] = {name: [] for name in played.names}
        async with httpx.AsyncClient(headers={"connection": "close"}) as client:
            while (pages := performance.next()) is not None:
                await stage.show(pages)
                for name in played.names:
                    try:
                        answer = await client.get(stage.engine_url(name))
                    except httpx.ConnectError:
                        answers[name].append(False)
                    else:
                        assert answer.content == pages.engines[name]
                        answers[name].append(True)
                for title, page in ((GATEWAY, pages.gateway), (ALL_GPUS, pages.all_machines)):
                    assert (await client.get(stage.url(title))).content == page
        assert "".join("x" if there else "-" for there in answers["engine-0"]) == "xx----xxxxxx"
        assert "".join("x" if there else "-" for there in answers["engine-1"]) == "xxxxxx------"

    on_stage(played, story)


def test_a_second_lasts_as_long_as_the_speed_says_and_all_are_shown() -> None:
    async def story(stage: Stage, performance: Performance) -> None:
        shown: list[tuple[float, float]] = []

        def told(pages: Pages, _: Late) -> None:
            shown.append((pages.second.seconds, time.monotonic()))

        began = time.monotonic()
        await perform(performance, stage, 20.0, told, lambda _: None)
        ended = time.monotonic()
        assert [second for second, _ in shown] == list(range(1, 11))
        times = [*(at for _, at in shown), ended]
        assert min(late - early for early, late in itertools.pairwise(times)) > 0.0
        assert ended - began >= 10 / 20.0 - 0.01

    on_stage(scene(10), story, 20.0)


def test_what_cannot_keep_up_says_so_and_plays_on_in_order() -> None:
    async def story(stage: Stage, performance: Performance) -> None:
        seconds: list[float] = []
        said: list[Late] = []
        behind: list[float] = []

        def told(pages: Pages, late: Late) -> None:
            seconds.append(pages.second.seconds)
            behind.append(late.behind_seconds)
            time.sleep(0.1)  # a machine that has other things to do

        await perform(performance, stage, FAST, told, said.append)
        assert seconds == list(range(1, 31))
        assert behind == sorted(behind)
        assert said
        assert said[0].behind_seconds >= 1.0
        assert all(
            late.behind_seconds >= 2 * early.behind_seconds for early, late in itertools.pairwise(said)
        )

    on_stage(scene(30), story)


def test_a_driver_that_hangs_lets_its_exporter_stand_still() -> None:
    performance = Performance(scene(8, blindness=(Blindness("engine-0", 4.0, 7.0),)), 1)
    pages = [performance.next() for _ in range(8)]
    blind = [each.machines["engine-0"] for each in pages if each is not None]
    sound = [each.machines["engine-1"] for each in pages if each is not None]
    assert len(set(blind[2:6])) == 1
    assert blind[7] != blind[5]
    assert len(set(sound[2:6])) == 4


def test_all_machines_stand_on_one_page() -> None:
    performance = Performance(scene(5), 1)
    for _ in range(5):
        pages = performance.next()
    assert pages is not None
    apart = [sample for page in pages.machines.values() for sample in first(page)]
    together = first(pages.all_machines)
    assert {each.identity.uuid for each in apart} == {
        uuid for uuids in performance.uuids.values() for uuid in uuids
    }
    assert sorted(together, key=lambda each: each.identity.uuid) == apart


@pytest.mark.parametrize("speed", [1.0, 5.0])
def test_engines_answer_as_late_as_real_ones_do_so_many_times_as_fast(speed: float) -> None:
    async def story(stage: Stage, performance: Performance) -> None:
        pages = performance.next()
        assert pages is not None
        await stage.show(pages)
        took = []
        async with httpx.AsyncClient() as client:
            await client.get(stage.url(GATEWAY))
            for _ in range(10):
                began = time.monotonic()
                await client.get(stage.engine_url("engine-0"))
                took.append(time.monotonic() - began)
        # idle servers take 32 ms at least
        assert min(took) >= 0.032 / speed

    on_stage(scene(2), story, speed)
