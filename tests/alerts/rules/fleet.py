"""Trials of ``alerts/pack/fleet.py``."""

from __future__ import annotations

from exporter.derive.preemption import THRASHING
from exporter.derive.ranks import ENGINE_INFO
from exporter.source_signals import SOURCE_UP
from tests.alerts.rules.trials import Fires, Quiet, Told

_KIND = (("engine_kind", "vllm"), ("generation", "v1"))
_THERE, _GONE = Told(ENGINE_INFO, 1, 1, _KIND), Told(ENGINE_INFO, 1, None, _KIND)

TRIALS = (
    Fires(
        "CapacityGone",
        "one engine of two is down",
        (Told(SOURCE_UP, 1, 0), _GONE),
        "50% of the fleet's engines are down",
        worst="Down: a.",
    ),
    Quiet("CapacityGone", "all answer", (Told(SOURCE_UP, 1, 1), _THERE)),
    Fires(
        "ManyEnginesStuck",
        "one engine of two thrashes",
        (Told(THRASHING, 0, 1), _THERE),
        "50% of the fleet's engines thrash or stand still",
    ),
    Quiet("ManyEnginesStuck", "not known", (Told(THRASHING, 0, None), _THERE)),
    Fires(
        "ManyEnginesGone",
        "one engine of two is down",
        (Told(SOURCE_UP, 1, 0), _GONE),
        "50% of the fleet's engines are down or start over and over",
    ),
    Quiet("ManyEnginesGone", "all answer", (Told(SOURCE_UP, 1, 1), _THERE)),
)
