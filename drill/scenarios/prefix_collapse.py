"""A new template puts something of its own at each prompt's beginning: no prefix is shared any more.

Hits of the prefix cache fall from most of the prompt to none; the same questions need several times the prefill and
each its own copy of what they shared. Time to first token rises, the pool fills.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from alerts.causes import Cause
from drill.scenarios.chat import END, ONSET, shared_fleet
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Episode, Scene
from drill.scenarios.setting import Setting, SettingError
from drill.serving.content import Segment
from drill.workload.arrivals import Arrival, Stream
from drill.workload.contents import content_id

_OWN_TOKENS = 12
"""A time of day and a number of the request, say."""
_KIND = 77


def unshared(load: Stream, start: float, end: float, seed: int) -> Stream:
    """The same requests, but that between two times each begins with tokens of its own."""

    def made() -> Iterator[Arrival]:
        for number, arrival in enumerate(load):
            if start <= arrival.seconds < end:
                own = Segment(content_id(seed, _KIND, number), _OWN_TOKENS)
                yield replace(arrival, content=(own, *arrival.content))
            else:
                yield arrival

    return Stream(made)


def _trouble(scene: Scene, setting: Setting) -> Scene:
    if any(arrival.turns for arrival in scene.load.between(0.0, END)):
        raise SettingError(
            "prefix-collapse: sessions go on with the template that they began with: take a fleet whose requests come "
            "one by one, as prefix-collapse's own"
        )
    return scene.loaded(unshared(scene.load, ONSET, END, setting.seed)).with_episode(
        Episode("prefix-collapse", Cause.PREFIX_COLLAPSE, ONSET, END, scene.names)
    )


PREFIX_COLLAPSE = Scenario(
    "prefix-collapse",
    Cause.PREFIX_COLLAPSE,
    "Prompts begin with something of their own for four minutes, and the prefix cache stops paying.",
    shared_fleet,
    _trouble,
    alerts=("PrefixHitsCollapsed",),
)
