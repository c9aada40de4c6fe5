"""Trials of ``alerts/pack/watching.py``, but for the watchdog, which is never quiet."""

from __future__ import annotations

from exporter.derive.ranks import ENGINE_INFO
from exporter.source_signals import BUILD_INFO, SOURCE_UP
from tests.alerts.rules.trials import UP, Fires, Quiet, Told

_THERE = Told(ENGINE_INFO, 1, 1, (("engine_kind", "vllm"), ("generation", "v1")))
_FLEET = {"cluster": "east"}
_SIDECAR = {"cluster": "east", "instance": "east-a:9807"}

TRIALS = (
    Fires(
        "SidecarBlind",
        "one sidecar's GPUs can't be read, those of others can",
        (Told(SOURCE_UP, 1, 0, at={**_SIDECAR, "source": "nvml"}), _THERE),
        "The sidecar at east-a:9807 can't read nvml",
        labels={"source": "nvml"},
    ),
    Quiet("SidecarBlind", "an engine can't be read", (Told(SOURCE_UP, 1, 0), _THERE)),
    Quiet(
        "SidecarBlind",
        "the sidecar is gone with all it read",
        (Told(SOURCE_UP, 1, None, at=_SIDECAR), _THERE),
    ),
    Fires(
        "SidecarDown",
        "one of several is gone",
        (Told(BUILD_INFO, 1, None, (("version", "0.1.0"),)), Told(UP, 1, 0)),
        "The sidecar at east-a:9807 is gone",
        within_seconds=150,
    ),
    Quiet(
        "SidecarDown",
        "scaled away",
        (Told(BUILD_INFO, 1, None, (("version", "0.1.0"),)), Told(UP, 1, None)),
    ),
    Fires(
        "FleetUnseen",
        "all of a cluster are gone",
        (Told(BUILD_INFO, 1, None, (("version", "0.1.0"),), at=_FLEET), Told(UP, 1, 0, at=_FLEET)),
        "No sidecar of the fleet is left, of 2 before",
        within_seconds=150,
    ),
    Quiet(
        "FleetUnseen",
        "one is left",
        (Told(BUILD_INFO, 1, None, (("version", "0.1.0"),)), Told(UP, 1, 0)),
    ),
    Quiet(
        "SidecarDown",
        "an upgrade",
        (
            Told(BUILD_INFO, 1, None, (("version", "0.1.0"),), after=None),
            Told(BUILD_INFO, None, 1, (("version", "0.2.0"),), after=1),
        ),
    ),
)
