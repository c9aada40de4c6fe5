"""What the causes are evaluated on: every scenario, as it is and moved, alone and with another one, seed by seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum
from typing import NamedTuple

from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.setting import Setting, SettingError
from drill.serving.config import EngineConfigError, Generation
from tests.evaluation.playing import Case

FAULTS = tuple(name for name, scenario in SCENARIOS.items() if scenario.cause is not None)
CALM = tuple(name for name, scenario in SCENARIOS.items() if scenario.cause is None)
_MODELS, _GPUS, _RAMPS = ("llama-8b", "qwen3-32b"), ("h100", "h200", "a100"), (30.0, 60.0)
_TRIES = 20
_ENGINES_FOR_TWO = 3


class Kind(Enum):
    """What is made of a scenario."""

    PLAIN = "as it is"
    MOVED = "moved"
    WITH_ANOTHER = "with another"


class Wanted(NamedTuple):
    """One run. Which case it is, ``chosen`` says: finding one that can be played takes a while."""

    scenario: str
    seed: int
    kind: Kind


def wanted(seeds: Sequence[int], only: Sequence[str] = ()) -> Iterator[Wanted]:
    """Each scenario with each seed: as it is, moved, and with another fault, in turn over seeds and scenarios."""
    kinds = tuple(Kind)
    for number, name in enumerate(FAULTS):
        for place, seed in enumerate(seeds):
            if not only or name in only:
                yield Wanted(name, seed, kinds[(number + place) % len(kinds)])
    for name in CALM:
        for seed in seeds:
            if not only or name in only:
                yield Wanted(name, seed, Kind.PLAIN)


def chosen(one: Wanted) -> Case:
    """The case of a run, the same one each time."""
    plain = Case(one.scenario, Setting(seed=one.seed))
    if one.kind is Kind.MOVED:
        return _moved(plain)
    return _with_another(plain) if one.kind is Kind.WITH_ANOTHER else plain


def _moved(case: Case) -> Case:
    """Another generation, GPU, model, number of engines or ramp, one at a time, that it can be played with."""
    chance = random.Random(f"{case.title} moved")  # noqa: S311 -- no secret
    for _ in range(_TRIES):
        change = chance.choice(
            (
                {"generation": chance.choice(tuple(Generation))},
                {"gpu": chance.choice(_GPUS)},
                {"model": chance.choice(_MODELS)},
                {"engines": chance.choice((2, 3))},
                {"ramp_seconds": chance.choice(_RAMPS)},
            )
        )
        moved = replace(case, setting=replace(case.setting, **change))
        if _possible(moved):
            return moved
    return case


def _with_another(case: Case) -> Case:
    """Another fault on the same fleet, on three engines, since both are to be seen."""
    chance = random.Random(f"{case.title} with")  # noqa: S311 -- no secret
    wide = replace(case, setting=replace(case.setting, engines=_ENGINES_FOR_TWO))
    cause = SCENARIOS[case.scenario].cause
    for _ in range(_TRIES):
        other = chance.choice([name for name in FAULTS if SCENARIOS[name].cause is not cause])
        both = replace(wide, others=(other,))
        if _possible(both):
            return both
    return case


def _possible(case: Case) -> bool:
    others = [SCENARIOS[name] for name in case.others]
    try:
        SCENARIOS[case.scenario].scene(case.setting, others)
    except (SettingError, EngineConfigError):
        return False
    return True
