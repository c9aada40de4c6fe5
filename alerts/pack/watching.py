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
    """Any source but an engine, which has an alert of its own."""
    on = by(rendering, _SOURCE)
    engines = f'label_replace(last_over_time({ENGINE_THERE.name}[6h]), "source", "$1", "engine", "(.*)")'
    shared = by(rendering, SOURCE_UP.scope.labels)
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
    """Scraped within the last six hours and not now, each by itself."""
    on = by(rendering, ("instance",))
    was, now = f"last_over_time({SIDECAR_THERE.name}[6h])", gauge(rendering, BUILD_INFO, window="2m")
    return f"group by ({on}) ({was} unless on ({on}) {now}) > 0"


SIDECAR_DOWN = Alert(
    "SidecarDown",
    Severity.WARNING,
    Cause.NOT_WATCHED,
    Expression(_down, ("instance",)),
    "The sidecar at {{ $labels.instance }} is gone",
    "It was scraped within the last six hours and isn't any more: its engines are not watched.",
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
WATCHING = (SIDECAR_BLIND, SIDECAR_DOWN, WATCHDOG)
