"""The GPUs of one engine exchange their parts more slowly: a bad NVLink, a wrong topology, a noisy neighbour.

Each all-reduce takes longer, so each token does: fewer bytes a second over NVLink with as many sequences running, the
gap between tokens longer on that engine and not on the others. What is usual has to be known first: five minutes of it.
"""

from __future__ import annotations

from alerts.causes import Cause
from drill.actions import SlowCollectives
from drill.scenarios.chat import chat_fleet
from drill.scenarios.fleets import decode_cost
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Episode, Scene
from drill.scenarios.setting import Setting, SettingError
from drill.serving.config import EngineConfig

_ONSET, _END, _SECONDS = 420.0, 660.0, 840
_TIMES_AS_LONG = 3.0
"""An iteration, as where collectives fall back from NVLink to the host's memory. (The incident's all-reduces lost 82 %
of their throughput: 5.6 times as long.)"""
_SEQUENCES, _CONTEXT_TOKENS = 24, 3_000
"""A usual batch, of whose time the slowdown is worked out."""


def slowdown(config: EngineConfig) -> float:
    """How many times longer collectives have to take."""
    cost = decode_cost(config, _SEQUENCES, _CONTEXT_TOKENS)
    return 1.0 + (_TIMES_AS_LONG - 1.0) * cost.seconds / cost.collective_seconds


def _fleet(setting: Setting) -> Scene:
    return chat_fleet(setting, seconds=_SECONDS)


def _trouble(scene: Scene, _setting: Setting) -> Scene:
    several = [name for name, config in scene.engines.items() if config.tensor_parallel > 1]
    if not several:
        raise SettingError(
            "collective-slow: each engine has one GPU, which exchanges nothing: take a larger model"
        )
    name = scene.one_engine(several)
    slow = SlowCollectives(name, slowdown(scene.engines[name]))
    return scene.with_plan((_ONSET, slow), (_END, SlowCollectives(name, 1.0))).with_episode(
        Episode("collective-slow", Cause.COLLECTIVE_SLOW, _ONSET, _END, (name,))
    )


COLLECTIVE_SLOW = Scenario(
    "collective-slow",
    Cause.COLLECTIVE_SLOW,
    "The all-reduces of an engine take so much longer that its tokens take three times as long.",
    _fleet,
    _trouble,
    alerts=("CollectivesSlow",),
)
