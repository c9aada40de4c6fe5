"""The watching itself: sidecars that are gone or blind, and the proof that the way to the pager is open."""

from __future__ import annotations

from alerts.alert import Alert, Expression, Severity
from alerts.causes import Cause
from alerts.conditions import Rendering
from alerts.pack.promql import by, gauge
from alerts.recording_presence import ENGINE_THERE, SIDECAR_THERE
from exporter.source_signals import BUILD_INFO, SOURCE_UP

_SOURCE = ("instance", *SOURCE_UP.scope.labels)
"""Sidecars read sources of the same name: each has an ``nvml`` of its own."""


def _blind(rendering: Rendering) -> str:
    """Any source but an engine that nobody can read, which has an alert of its own."""
    on, shared = by(rendering, _SOURCE), by(rendering, SOURCE_UP.scope.labels)
    up = gauge(rendering, SOURCE_UP)
    engines = f'label_replace(last_over_time({ENGINE_THERE.name}[6h]), "source", "$1", "engine", "(.*)")'
    down = f"{engines} unless on ({shared}) (max by ({shared}) ({up}) > 0)"
    return f"max by ({on}) ({up}) == 0\nunless on ({shared})\n({down})"


SIDECAR_BLIND = Alert(
    "SidecarBlind",
    Severity.WARNING,
    Cause.SIDECAR_BLIND,
    Expression(_blind, _SOURCE),
    "The sidecar at {{ $labels.instance }} can't read {{ $labels.source }}",
    "What it told of the GPUs, the gateway or KV events is absent until it can: no alert about them fires.",
)


_INSTANCE = ("instance",)


def _seen(rendering: Rendering) -> str:
    return gauge(rendering, BUILD_INFO, window="2m")


def _gone(rendering: Rendering) -> str:
    """Scraped within the last six hours and not now, each by itself."""
    on = by(rendering, _INSTANCE)
    was = f"last_over_time({SIDECAR_THERE.name}[6h])"
    return f"group by ({on}) ({was} unless on ({on}) {_seen(rendering)})"


def _unanswered(rendering: Rendering) -> str:
    """Gone while Prometheus still goes there: what was scaled down or rolled out is no target any more."""
    on = by(rendering, _INSTANCE)
    targets = f"last_over_time(up{rendering.matchers()}[{rendering.lookback}])"
    return f"({_gone(rendering)} and on ({on}) ({targets} == 0))"


def _down(rendering: Rendering) -> str:
    """Or gone with all others of its cluster, which is no scaling down: discovery of targets may be what failed."""
    on, cluster = by(rendering, _INSTANCE), by(rendering, ())
    with_all = f"({_gone(rendering)} unless on ({cluster}) {_seen(rendering)})"
    return f"{_unanswered(rendering)} > 0\nor on ({on})\n{with_all}"


SIDECAR_DOWN = Alert(
    "SidecarDown",
    Severity.WARNING,
    Cause.NOT_WATCHED,
    Expression(_down, _INSTANCE),
    "The sidecar at {{ $labels.instance }} is gone",
    "It was scraped within the last six hours and doesn't answer any more: its engines are not watched.",
    quiet_under=("FleetUnseen",),
)


def _unseen(rendering: Rendering) -> str:
    cluster = by(rendering, ())
    return f"count by ({cluster}) {_unanswered(rendering)} > 0\nunless on ({cluster})\n{_seen(rendering)}"


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
