"""A day of a real reasoning service (ServeGen's rate windows and lengths), heavy hours included: all is well.

Small runs take the busiest ten minutes, on one engine. Rates are scaled so that these fill a third of the pools on
average; bursts within them fill more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache, partial
from typing import NamedTuple

from drill.scenarios.chat import chat_fleet
from drill.scenarios.fleets import requests_per_second
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Scene
from drill.scenarios.setting import Setting
from drill.workload import servegen
from drill.workload.lengths import Weighted
from drill.workload.servegen import Client

_DAY_SECONDS = 86_400
_USAGE_RATIO = 0.35
_WINDOW_SECONDS = 600


def _busiest(clients: list[Client]) -> tuple[float, float]:
    """When the busiest window of all clients together begins, and its requests a second."""
    rates: dict[float, float] = {}
    for client in clients:
        for window in client.windows:
            rates[window.start] = rates.get(window.start, 0.0) + window.rate
    start = max(rates, key=lambda at: rates[at])
    return start, rates[start]


def _as_drawn(lengths: Iterable[int]) -> Weighted:
    counts = Counter(lengths)
    return Weighted(tuple(counts), tuple(map(float, counts.values())))


class _Heavy(NamedTuple):
    """The busiest window, with a seed's chance: when it begins, its requests a second, and their lengths."""

    start: float
    rate: float
    prompts: Weighted
    answers: Weighted


@lru_cache(maxsize=4)
def _heavy(seed: int) -> _Heavy:
    clients = servegen.clients(servegen.DEEPSEEK_R1)
    start, rate = _busiest(clients)
    heavy = list(servegen.servegen(clients, seed, start=start).between(0.0, float(_WINDOW_SECONDS)))
    prompts = _as_drawn(each.prompt_tokens for each in heavy)
    return _Heavy(start, rate, prompts, _as_drawn(each.output_tokens for each in heavy))


def _fleet(setting: Setting) -> Scene:
    clients = servegen.clients(servegen.DEEPSEEK_R1)
    heavy = _heavy(setting.seed)
    setting = replace(setting, engines=setting.engines or setting.choose(1, 2))
    scene = chat_fleet(setting, seconds=setting.choose(_WINDOW_SECONDS, _DAY_SECONDS))
    carried = sum(
        requests_per_second(each, heavy.prompts, heavy.answers, _USAGE_RATIO)
        for each in scene.engines.values()
    )
    begin = setting.choose(heavy.start, 0.0)
    make = partial(servegen.servegen, clients, setting.seed, scale=carried / heavy.rate, start=begin)
    return scene.loaded(make())


def _trouble(scene: Scene, _setting: Setting) -> Scene:
    return scene


BENIGN_DAY = Scenario(
    "benign-day", None, "A day of a real service, heavy hours included: nothing goes wrong.", _fleet, _trouble
)
