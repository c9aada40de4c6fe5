"""The watching itself: sidecars that are gone or blind, and the proof that the way to the pager is open."""

from __future__ import annotations

from alerts.alert import Alert, Expression, Severity
from alerts.causes import Cause
from alerts.conditions import Rendering
from alerts.pack.promql import by, gauge
from alerts.recording_ill import DOWN
from alerts.recording_watching import GONE, INSTANCE, SEEN, UNANSWERED
from exporter.source_signals import SOURCE_UP

_SOURCE = ("instance", *SOURCE_UP.scope.labels)
"""Sidecars read sources of the same name: each has an ``nvml`` of its own."""


def _blind(rendering: Rendering) -> str:
    """Any source but an engine that nobody can read, which has an alert of its own."""
    on, shared = by(rendering, _SOURCE), by(rendering, SOURCE_UP.scope.labels)
    engines = f'label_replace({DOWN.name}, "source", "$1", "engine", "(.*)")'
    return f"max by ({on}) ({gauge(rendering, SOURCE_UP)}) == 0\nunless on ({shared})\n({engines})"


SIDECAR_BLIND = Alert(
    "SidecarBlind",
    Severity.WARNING,
    Cause.SIDECAR_BLIND,
    Expression(_blind, _SOURCE),
    "The sidecar at {{ $labels.instance }} can't read {{ $labels.source }}",
    "What it told of the GPUs, the gateway or KV events is absent until it can: no alert about them fires.",
)


def _down(rendering: Rendering) -> str:
    """Or gone with all others of its cluster, which is no scaling down: discovery of targets may be what failed."""
    on, cluster = by(rendering, INSTANCE), by(rendering, ())
    with_all = f"({GONE.name} unless on ({cluster}) {SEEN.name})"
    return f"{UNANSWERED.name} > 0\nor on ({on})\n{with_all}"


SIDECAR_DOWN = Alert(
    "SidecarDown",
    Severity.WARNING,
    Cause.NOT_WATCHED,
    Expression(_down, INSTANCE),
    "The sidecar at {{ $labels.instance }} is gone",
    "It was scraped within the last six hours and doesn't answer any more: its engines are not watched.",
    quiet_under=("FleetUnseen",),
)


def _unseen(rendering: Rendering) -> str:
    cluster = by(rendering, ())
    return f"count by ({cluster}) ({UNANSWERED.name}) > 0\nunless on ({cluster})\n{SEEN.name}"


FLEET_UNSEEN = Alert(
    "FleetUnseen",
    Severity.PAGE,
    Cause.NOT_WATCHED,
    Expression(_unseen, ()),
    'No sidecar of the fleet is left, of {{ $value | printf "%.0f" }} before',
    "No machine of the fleet answers: all of it may be down, and no other alert would say so.",
)
WATCHDOG = Alert(
    "Watchdog",
    Severity.INFO,
    Cause.NOT_WATCHED,
    Expression(lambda _: "vector(1)", ()),
    "The way from Prometheus to the pager is open",
    "Always fires. Let something outside tell you when it stops.",
    for_seconds=0,
    keep_firing_seconds=0,
)
WATCHING = (SIDECAR_BLIND, SIDECAR_DOWN, FLEET_UNSEEN, WATCHDOG)
