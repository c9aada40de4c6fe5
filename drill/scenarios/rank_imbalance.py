"""One data-parallel rank of an engine gets all requests of a busy tenant, and its other rank idles.

Engines of two ranks behind one server each. The gateway's routing is changed to prefixes without a bound on loads, as
with sticky sessions or a fixed rank in a header: a tenant whose prompts begin alike goes to one rank, however much that
has to do already. ``rank_imbalance_ratio`` rises towards 2, the share of two ranks; the engine as a whole looks half
empty, and gaps between tokens are longer for whoever is on the busy one. V0 has one rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from alerts.causes import Cause
from drill.actions import ChangeGateway
from drill.gateway_config import Routing
from drill.routing import Choice, pick
from drill.scenarios.chat import (
    ANSWERS,
    HANDBOOK_TOKENS,
    QUESTIONS,
    chat_fleet,
    chat_load,
    chat_rate,
)
from drill.scenarios.fleets import rising
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Episode, Scene
from drill.scenarios.setting import Setting, SettingError
from drill.serving.config import Generation
from drill.serving.content import Segment
from drill.workload.rates import Rate
from drill.workload.synthetic import Load, open_loop

ONSET, END = 180.0, 600.0
_USAGE_RATIO = 0.12
_TIMES = 5.0
"""Requests of the busy tenant over those that a rank had before."""
_UNBOUNDED_SLACK = 1e6
_AFFINITY = {"routing": Routing.PREFIX, "prefix_slack": _UNBOUNDED_SLACK}
_TENANT = Load(QUESTIONS, ANSWERS, system_tokens=HANDBOOK_TOKENS, tenant="handbook", clients=20)


def _home(scene: Scene, content: Sequence[Segment]) -> int:
    """The engine that such prompts go to, by index."""
    choices = [Choice(index, 0) for index in range(len(scene.engines))]
    return pick(replace(scene.gateway, **_AFFINITY), choices, content, 0)  # type: ignore[arg-type]


def _fleet(setting: Setting) -> Scene:
    if setting.generation is Generation.V0:
        raise SettingError("rank-imbalance: V0 has no data-parallel ranks: take generation v1")
    count = setting.engines or setting.choose(1, 3)
    single = chat_fleet(replace(setting, engines=count), seconds=780)
    second = {f"{name}/1": name for name in single.names}
    engines = {rank: config for name, config in single.engines.items() for rank in (name, f"{name}/1")}
    scene = replace(single, engines=engines, rank_of=second)
    rate = Rate.constant(chat_rate(scene, _USAGE_RATIO), float(scene.seconds))
    return scene.loaded(open_loop(chat_load(), rate, setting.seed))


def _trouble(scene: Scene, setting: Setting) -> Scene:
    if not scene.rank_of:
        raise SettingError(
            "rank-imbalance: no engine has more than one rank: take rank-imbalance first, and the others with --with"
        )
    each = chat_rate(scene, _USAGE_RATIO) / len(scene.engines)
    load = open_loop(_TENANT, rising(_TIMES * each, (ONSET, END), setting), setting.seed + 8)
    busy = scene.names[_home(scene, next(iter(load)).content)]
    return (
        scene.with_load(load)
        .with_plan((ONSET, ChangeGateway(_AFFINITY, END - ONSET)))
        .with_episode(
            Episode("rank-imbalance", Cause.RANK_IMBALANCE, ONSET, END, (scene.rank_of.get(busy, busy),))
        )
    )


RANK_IMBALANCE = Scenario(
    "rank-imbalance",
    Cause.RANK_IMBALANCE,
    "Routing by prefix without a bound sends a busy tenant to one of an engine's two ranks.",
    _fleet,
    _trouble,
    alerts=("RanksOutOfBalance",),
)
