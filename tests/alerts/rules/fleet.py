"""Trials of ``alerts/pack/fleet.py``."""

from __future__ import annotations

from exporter.derive.inventory import GPU_DOWN_INFO, GPU_UP
from exporter.derive.latency import SLO_EVENTS
from exporter.derive.preemption import THRASHING
from exporter.derive.ranks import ENGINE_INFO
from exporter.source_signals import SOURCE_UP
from tests.alerts.rules.trials import Fires, Quiet, Told

_MINUTE = 60
_LATE = (
    Told(SLO_EVENTS, 1, 0.2, (("slo", "ttft"), ("good", "true"))),
    Told(SLO_EVENTS, 0, 0.8, (("slo", "ttft"), ("good", "false"))),
)
"""One of two engines misses: 0.8 of 2 events a second."""
_KIND = (("engine_kind", "vllm"), ("generation", "v1"))
_LOST = (Told(GPU_UP, 1, 0), Told(GPU_DOWN_INFO, None, 1, (("reason", "gpu_lost"),)))
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
        "CapacityGoneWithGpus",
        "one engine of two is down, and a GPU is lost",
        (Told(SOURCE_UP, 1, 0), _GONE, *_LOST),
        "50% of the fleet's engines are down, and GPUs are lost",
        worst="Lost: GPU-east-a-1.",
    ),
    Quiet("CapacityGoneWithGpus", "no GPU is lost", (Told(SOURCE_UP, 1, 0), _GONE, Told(GPU_UP, 1, 1))),
    Quiet("CapacityGoneWithGpus", "its engine answers", (Told(SOURCE_UP, 1, 1), _THERE, *_LOST)),
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
    Fires(
        "UsersStillWait",
        "one engine of two thrashed for some minutes, and users wait",
        (Told(THRASHING, 0, (1, 1, 1, 0)), _THERE, *_LATE),
        "Engines are no longer stuck, and 40% of the fleet's users wait too long",
        within_seconds=6 * _MINUTE,
        ends_within_seconds=6 * _MINUTE,
        calm_seconds=10 * _MINUTE,
        step=_MINUTE,
        steady=False,
        twice=False,
    ),
    Quiet("UsersStillWait", "no engine was stuck", (Told(THRASHING, 0, 0), _THERE, *_LATE), step=_MINUTE),
    Quiet("UsersStillWait", "one still is", (Told(THRASHING, 0, 1, after=1), _THERE, *_LATE), step=_MINUTE),
    Quiet("UsersStillWait", "nobody waits", (Told(THRASHING, 0, (1, 1, 1, 0)), _THERE), step=_MINUTE),
    Quiet("ManyEnginesGone", "all answer", (Told(SOURCE_UP, 1, 1), _THERE)),
)
