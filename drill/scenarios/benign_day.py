"""A day of a real service (ServeGen's rate windows and lengths), heavy hours included: nothing is wrong with it.

Small runs take the busiest ten minutes, on one engine. Rates are scaled so that these fill a third of the pools on
average; bursts within them fill more.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from drill.scenarios.chat import chat_fleet
from drill.scenarios.fleets import requests_per_second
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Scene
from drill.scenarios.setting import Setting
from drill.workload import servegen
from drill.workload.lengths import Fixed
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


def _fleet(setting: Setting) -> Scene:
    clients = servegen.clients(servegen.M_LARGE)
    start, rate = _busiest(clients)
    heavy = list(servegen.servegen(clients, setting.seed, start=start).between(0.0, float(_WINDOW_SECONDS)))
    prompts = Fixed(max(1, round(sum(each.prompt_tokens for each in heavy) / len(heavy))))
    answers = Fixed(max(1, round(sum(each.output_tokens for each in heavy) / len(heavy))))
    setting = replace(setting, engines=setting.engines or setting.choose(1, 2))
    scene = chat_fleet(setting, seconds=setting.choose(_WINDOW_SECONDS, _DAY_SECONDS))
    carried = sum(
        requests_per_second(each, prompts, answers, _USAGE_RATIO) for each in scene.engines.values()
    )
    begin = setting.choose(start, 0.0)
    make = partial(servegen.servegen, clients, setting.seed, scale=carried / rate, start=begin)
    return scene.loaded(make())


def _trouble(scene: Scene, _setting: Setting) -> Scene:
    return scene


BENIGN_DAY = Scenario(
    "benign-day", None, "A day of a real service, heavy hours included: nothing goes wrong.", _fleet, _trouble
)
