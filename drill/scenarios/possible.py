"""Whether all that is to go wrong in a scene can: what one trouble does may undo another."""

from __future__ import annotations

import math
from dataclasses import replace

from alerts.causes import Cause
from drill.actions import Crash, LoseGpu, Restart
from drill.scenarios.scene import Episode, Scene
from drill.scenarios.setting import SettingError

_MENDED_BY_A_RESTART = frozenset({Cause.ENGINE_FROZEN, Cause.KV_LEAK, Cause.ENGINE_DEADLOCKED})


def possible(scene: Scene) -> Scene:
    """The scene; what a restart mends ends with it. Raises SettingError where an episode would not be true."""
    return replace(scene, episodes=tuple(_true(scene, each) for each in scene.episodes))


def _true(scene: Scene, episode: Episode) -> Episode:
    lost = {action.engine: at for at, action in scene.plan if isinstance(action, LoseGpu)}
    gone = [name for name in episode.affected if lost.get(name, math.inf) < episode.end_seconds]
    if episode.cause is not Cause.GPU_LOST and len(gone) == len(episode.affected):
        raise SettingError(
            f"{episode.scenario} lasts until {episode.end_seconds:g} s, and of {', '.join(gone)} a GPU is lost before: "
            "take more engines"
        )
    if episode.cause is Cause.PREFIX_COLLAPSE:
        without = [name for name in episode.affected if not scene.engines[name].prefix_caching]
        if without:
            raise SettingError(
                f"{episode.scenario}: {', '.join(without)} keep no prefixes that could be lost: leave out what turns "
                "the prefix cache off"
            )
    if episode.cause in _MENDED_BY_A_RESTART:
        return _until_a_restart(scene, episode)
    return episode


def _until_a_restart(scene: Scene, episode: Episode) -> Episode:
    """A draining engine is as it was until it is stopped, at the latest when its time to drain is up."""
    stopped = [
        (at, at + (action.drain_seconds if isinstance(action, Restart) else 0.0))
        for at, action in scene.plan
        if isinstance(action, Restart | Crash)
        and action.engine in episode.affected
        and episode.onset_seconds <= at < episode.end_seconds
    ]
    if not stopped:
        return episode
    begins, ends = min(stopped)
    if begins <= episode.onset_seconds:
        raise SettingError(
            f"{episode.scenario} begins at {episode.onset_seconds:g} s, when {episode.affected[0]} is restarted, which "
            "mends it: take more engines"
        )
    return replace(episode, end_seconds=min(episode.end_seconds, ends))
