"""Long answers grow together until the pool runs dry, and who is thrown out comes back at once to be thrown out again.

The engines are of a V1 before 0.19, without a prefix cache: a preempted sequence is let in as soon as the first chunk
of it finds blocks, the next chunk finds none, and all of it is computed once more. Preemptions hit the same sequences
within seconds, ``tokens_per_preemption`` falls to a fraction of what a sequence holds, nearly all tokens are computed
again (``wasted_work_ratio``), tokens a second fall at a full pool, and ``thrashing`` is 1. It outlasts the load that
brought it about by minutes, until enough of the long answers are done. Engines that let in only whom the free blocks
hold entirely (V1 from 0.19, V0) preempt under the same load, but somebody has to end first, and half of the work at
most is done again.

``recompute-unreserved`` is the same on vLLM 0.32, whose reservation somebody has turned off
(``--no-scheduler-reserve-full-isl``) to let more in at once. That release counts preemptions by request: who finishes
has been thrown out time and again, and ``pingpong_ratio{method="histogram"}`` says so. Before 0.30 nothing but the
probe can: there are fewer preemptions than sequences, so that the bound proves none.
"""

from __future__ import annotations

from dataclasses import replace

from alerts.causes import Cause
from drill.clients import ClientConfig, Patience
from drill.expose.release import NEWEST_V1, Release
from drill.scenarios.chat import chat_fleet, chat_load, chat_rate
from drill.scenarios.long_answers import (
    BEFORE_RESERVATION,
    LongAnswers,
    with_long_answers,
    without_reservation,
)
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Episode, Scene
from drill.scenarios.setting import Setting
from drill.workload.rates import Rate
from drill.workload.synthetic import open_loop

ONSET, END = 120.0, 270.0
_USAGE_RATIO = 0.12
"""With prefixes that are held once; without a cache each sequence has its own."""
_ANSWERS = LongAnswers(1_800, 0.17, 1.25)
_WHY_NOT_V0 = (
    "recompute-thrash: V0 lets a preempted sequence back only once all of it fits, and recomputes no more than plain "
    "contention does: take generation v1"
)


def _fleet(setting: Setting) -> Scene:
    scene = chat_fleet(
        setting,
        seconds=setting.choose(720, 1_800),
        clients=ClientConfig(timeout_seconds=30, patience=Patience.FIRST_TOKEN, retries=0),
    )
    rate = Rate.constant(chat_rate(scene, _USAGE_RATIO), float(scene.seconds))
    return scene.loaded(open_loop(chat_load(), rate, setting.seed))


def _thrashing(scene: Scene, setting: Setting, name: str, newest: Release) -> Scene:
    eager = without_reservation(
        scene, _WHY_NOT_V0, lambda config: replace(config, prefix_caching=False), newest
    )
    return with_long_answers(eager, setting, _ANSWERS, (ONSET, END)).with_episode(
        Episode(name, Cause.RECOMPUTE_THRASH, ONSET, END, scene.names)
    )


def _trouble(scene: Scene, setting: Setting) -> Scene:
    return _thrashing(scene, setting, "recompute-thrash", BEFORE_RESERVATION)


def _trouble_unreserved(scene: Scene, setting: Setting) -> Scene:
    return _thrashing(scene, setting, "recompute-unreserved", NEWEST_V1)


RECOMPUTE_THRASH = Scenario(
    "recompute-thrash",
    Cause.RECOMPUTE_THRASH,
    "Long answers run the pools dry, and sequences are thrown out and computed again, over and over.",
    _fleet,
    _trouble,
    alerts=("KvThrashing",),
)
RECOMPUTE_UNRESERVED = Scenario(
    "recompute-unreserved",
    Cause.RECOMPUTE_THRASH,
    "The same on vLLM 0.32 with its reservation turned off, where preemptions are counted by request.",
    _fleet,
    _trouble_unreserved,
    alerts=("KvThrashing", "KvPingPong"),
)
