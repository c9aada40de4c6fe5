"""Trials of ``alerts/pack/engine.py``."""

from __future__ import annotations

from exporter.derive.blocks import KV_USAGE
from exporter.derive.ranks import ENGINE_INFO, IMBALANCE, RESTARTS
from exporter.derive.stalls import DEADLOCKED, FROZEN
from exporter.derive.traffic import GENERATION_RATE, SEQUENCES
from exporter.source_signals import SOURCE_UP
from tests.alerts.rules.trials import Fires, Quiet, Told

_KIND = (("engine_kind", "vllm"), ("generation", "v1"))
_ENGINE = {"cluster": "east", "engine": "a"}
_FLEET = {"cluster": "east"}
_THERE = Told(ENGINE_INFO, 1, 1, _KIND)
_GONE = Told(ENGINE_INFO, 1, None, _KIND)
_SEQUENCES = tuple(
    Told(SEQUENCES, value, value, (("state", state),)) for state, value in (("running", 8), ("waiting", 2))
)

TRIALS = (
    Fires("EngineDown", "it answers no more", (Told(SOURCE_UP, 1, 0), _GONE), "a answers no more"),
    Quiet(
        "EngineDown",
        "what doesn't answer is no engine",
        (Told(SOURCE_UP, 1, 0, at={**_FLEET, "instance": "east-a:9807", "source": "nvml"}), _THERE),
    ),
    Quiet(
        "EngineDown",
        "the engine of that name answers in its own cluster",
        (Told(SOURCE_UP, 1, 0), Told(ENGINE_INFO, None, None, _KIND)),
    ),
    Fires("EngineFrozen", "nothing moves", (Told(FROZEN, 0, 1),), "a stands still with sequences in it"),
    Quiet("EngineFrozen", "not known", (Told(FROZEN, 0, None), _THERE)),
    Fires(
        "EngineDeadlocked",
        "requests wait, none runs",
        (Told(DEADLOCKED, 0, 1),),
        "a: requests wait and none runs",
    ),
    Quiet("EngineDeadlocked", "not known", (Told(DEADLOCKED, 0, None), _THERE)),
    Fires(
        "EngineRestarting",
        "three starts in three minutes",
        (Told(RESTARTS, 0, (1, 2, 3), after=3, raw=True),),
        "a was started 3 times within half an hour",
        calm_seconds=35 * 60,
        within_seconds=120,
        ends_within_seconds=30 * 60,
        step=60,
    ),
    Quiet(
        "EngineRestarting",
        "a roll-out",
        (Told(RESTARTS, 0, (1, 1, 2), after=2, raw=True),),
        calm_seconds=35 * 60,
        step=60,
    ),
    Fires(
        "RanksOutOfBalance",
        "one rank has it all",
        (Told(IMBALANCE, 1.05, 1.9),),
        "a: its busiest rank has 1.9 times the mean",
    ),
    Quiet("RanksOutOfBalance", "a little more", (Told(IMBALANCE, 1.05, 1.3),)),
    Fires(
        "FleetProgressFalling",
        "a fifth of the tokens, as many sequences",
        (Told(GENERATION_RATE, 100, 20, at=_FLEET), *_SEQUENCES),
        "The fleet makes 20% of the tokens of ten minutes ago, with as many sequences",
        calm_seconds=13 * 60,
        within_seconds=120,
        ends_within_seconds=120,
        steady=False,
    ),
    Quiet(
        "FleetProgressFalling",
        "the evening: fewer sequences, fewer tokens",
        (
            Told(GENERATION_RATE, 100, 20, at=_FLEET),
            Told(SEQUENCES, 8, 1, (("state", "running"),), at=_FLEET),
            Told(SEQUENCES, 2, 0, (("state", "waiting"),), at=_FLEET),
        ),
        calm_seconds=13 * 60,
    ),
    Quiet(
        "FleetProgressFalling",
        "one rank of the fleet",
        (Told(GENERATION_RATE, 100, 20), *_SEQUENCES),
        calm_seconds=13 * 60,
    ),
    Fires(
        "SignalAbsent",
        "usage is gone and the engine answers",
        (Told(KV_USAGE, 0.5, None, at=_ENGINE), _THERE),
        "a no longer tells its KV usage",
        within_seconds=150,
    ),
    Quiet("SignalAbsent", "the engine is gone too", (Told(KV_USAGE, 0.5, None, at=_ENGINE), _GONE)),
    Quiet("SignalAbsent", "one rank is gone", (Told(KV_USAGE, 0.5, None), _THERE)),
    Quiet("SignalAbsent", "it never told", (Told(KV_USAGE, None, None), _THERE)),
)
