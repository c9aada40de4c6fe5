"""The watching itself: sidecars that are gone or blind, and the proof that the way to the pager is open."""

from __future__ import annotations

from alerts.alert import Alert, Expression, Severity
from alerts.causes import Cause
from alerts.conditions import Rendering
from alerts.pack.promql import by, gauge
from exporter.derive.ranks import ENGINE_INFO
from exporter.source_signals import BUILD_INFO, SOURCE_UP

_SOURCE = SOURCE_UP.scope.labels


def _blind(rendering: Rendering) -> str:
    """Any source but an engine, which has an alert of its own."""
    on = by(rendering, _SOURCE)
    engines = f'label_replace({gauge(rendering, ENGINE_INFO, window="6h")}, "source", "$1", "engine", "(.*)")'
    return f"max by ({on}) ({gauge(rendering, SOURCE_UP)}) == 0\nunless on ({on})\n({engines})"


SIDECAR_BLIND = Alert(
    "SidecarBlind",
    Severity.WARNING,
    Cause.SIDECAR_BLIND,
    Expression(_blind, _SOURCE),
    "A sidecar can't read {{ $labels.source }}",
    "What it told of the GPUs, the gateway or KV events is absent until it can: no alert about them fires.",
)


def _down(rendering: Rendering) -> str:
    """Scraped within the last six hours and not now, each by itself."""
    on = by(rendering, ("instance",))
    was = gauge(rendering, BUILD_INFO, window="6h")
    return f"group by ({on}) ({was})\nunless on ({on})\n(group by ({on}) ({gauge(rendering, BUILD_INFO, window='2m')}))"


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
