"""What runs a pool dry: answers that are long beside their prompts, let in while they are short, growing together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from drill.expose.release import Release
from drill.scenarios.fleets import requests_per_second, rising
from drill.scenarios.scene import Scene
from drill.scenarios.setting import Setting, SettingError
from drill.serving.config import EngineConfig, Generation
from drill.workload.lengths import LogNormal
from drill.workload.synthetic import Load, open_loop

BEFORE_RESERVATION = Release.of("0.18.1")
"""The last V1 that lets a sequence in, or back, as soon as its next chunk finds blocks (vLLM issue 25538)."""
_SEQUENCE_RATIO = 0.6
"""Of the sequences that an engine takes at once: beyond these the pool wouldn't be what is short."""


def without_reservation(
    scene: Scene,
    why: str,
    change: Callable[[EngineConfig], EngineConfig],
    newest: Release = BEFORE_RESERVATION,
) -> Scene:
    """The scene with its engines changed and without the reservation, at a release before 0.19 or not above ``newest``.

    From 0.19 on it is a setting (``--no-scheduler-reserve-full-isl``). ``why`` V0 can't be told with. Raises
    SettingError for a scene with a V0 engine.
    """
    if any(config.generation is Generation.V0 for config in scene.engines.values()):
        raise SettingError(why)
    engines = {
        name: change(replace(config, reserve_whole_prompt=False)) for name, config in scene.engines.items()
    }
    releases = {name: min(scene.release_of(name), newest) for name in scene.names}
    return replace(scene, engines=engines, releases={**scene.releases, **releases})


class LongAnswers(NamedTuple):
    """The mean one holds ``sequence_tokens`` of a pool over its life, of which ``prompt_ratio`` are its prompt.

    More tokens where the pool would take more sequences of that length than the engine does. ``times``: the rate, over
    that at which they alone would fill the pools.
    """

    sequence_tokens: int
    prompt_ratio: float
    times: float


def _load(config: EngineConfig, kind: LongAnswers) -> Load:
    pool = config.usable_blocks * config.block_tokens
    held = max(kind.sequence_tokens, round(pool / (_SEQUENCE_RATIO * config.max_sequences)))
    prompt = max(1, round(kind.prompt_ratio * held))
    answer = 2 * (held - prompt)
    return Load(
        LogNormal(prompt, 0.5, least=max(1, prompt // 4), most=4 * prompt),
        LogNormal(answer, 0.4, least=answer // 4, most=3 * answer),
        tenant="long-answers",
        clients=5,
    )


def with_long_answers(scene: Scene, setting: Setting, kind: LongAnswers, span: tuple[float, float]) -> Scene:
    """The scene with such requests between two times, beside its own.

    Raises SettingError where engines would only prefill, and for a ramp that is longer.
    """
    largest = max(scene.engines.values(), key=lambda config: config.usable_blocks * config.block_tokens)
    load = _load(largest, kind)
    full = sum(
        requests_per_second(config, load.prompt, load.output, 1.0) for config in scene.engines.values()
    )
    return scene.with_load(open_loop(load, rising(kind.times * full, span, setting), setting.seed + 3))
