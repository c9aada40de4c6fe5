"""A day of a real reasoning service (ServeGen's rate windows and lengths), heavy hours included: all is well.

Rates are scaled so that its heaviest ten minutes fill a third of the pools on average; bursts within them fill more.
Small runs take ten minutes alone, on one engine: those with most requests. Of the whole day those are the heaviest of
which most KV is held: at other hours a third of the requests, with longer answers, hold twice as much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
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


def _requests(_client: Client, _at: float) -> float:
    return 1.0


def held(client: Client, at: float) -> float:
    """KV that a request holds, times how long: in tokens by steps, of a mean one of ``client`` at that time.

    While an answer of n tokens is made, its prompt and half of it are held on average, for n steps.
    """
    prompts, answers = client.lengths(at)
    return prompts.mean(1) * answers.mean(1) + answers.mean(2) / 2


def heaviest(clients: list[Client], of_one: Callable[[Client, float], float]) -> tuple[float, float]:
    """When the window begins in which all clients together ask for most, and its requests a second."""
    asked: dict[float, float] = {}
    rates: dict[float, float] = {}
    for client in clients:
        for window in client.windows:
            asked[window.start] = asked.get(window.start, 0.0) + window.rate * of_one(client, window.start)
            rates[window.start] = rates.get(window.start, 0.0) + window.rate
    start = max(asked, key=lambda at: asked[at])
    return start, rates[start]


def _as_drawn(lengths: Iterable[int]) -> Weighted:
    counts = Counter(lengths)
    return Weighted(tuple(counts), tuple(map(float, counts.values())))


class _Heavy(NamedTuple):
    """The heaviest window, with a seed's chance: when it begins, its requests a second, and their lengths."""

    start: float
    rate: float
    prompts: Weighted
    answers: Weighted


@lru_cache(maxsize=4)
def _heavy(seed: int, of_one: Callable[[Client, float], float]) -> _Heavy:
    clients = servegen.clients(servegen.DEEPSEEK_R1)
    start, rate = heaviest(clients, of_one)
    heavy = list(servegen.servegen(clients, seed, start=start).between(0.0, float(_WINDOW_SECONDS)))
    prompts = _as_drawn(each.prompt_tokens for each in heavy)
    return _Heavy(start, rate, prompts, _as_drawn(each.output_tokens for each in heavy))


def _fleet(setting: Setting) -> Scene:
    clients = servegen.clients(servegen.DEEPSEEK_R1)
    heavy = _heavy(setting.seed, setting.choose(_requests, held))
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
