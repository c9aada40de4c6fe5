"""How much of a fleet is ill: what one engine suffers explains its own alerts, and those of a cluster if many do.

An Alertmanager can't count: one engine of a thousand must not hide that users of all of them wait, and wakes nobody.
"""

from __future__ import annotations

from functools import partial

from alerts.alert import Alert, Expression, Severity
from alerts.causes import Cause
from alerts.conditions import Rendering, number
from alerts.pack.cache import KV_THRASHING
from alerts.pack.engine import ENGINE_DEADLOCKED, ENGINE_DOWN, ENGINE_FROZEN, ENGINE_RESTARTING
from alerts.pack.explaining import CAPACITY_GONE, KEPT_SECONDS, REDUCED, STUCK
from alerts.pack.promql import by
from alerts.pack.swap import KV_SEQUENCES_SWAPPED
from alerts.pack.wording import PERCENT, named
from alerts.recording_ill import DOWN
from alerts.recording_presence import ENGINE_THERE, ENGINES_LATELY
from exporter.derive.ranks import ENGINE_INFO

_ENGINE = ENGINE_INFO.scope.labels
_STUCK = (KV_THRASHING, KV_SEQUENCES_SWAPPED, ENGINE_FROZEN, ENGINE_DEADLOCKED)
"""KvOffloadThrash is a kind of KvThrashing."""
_GONE = (ENGINE_DOWN, ENGINE_RESTARTING)
"""An engine whose GPU is lost is down."""


def _share(alerts: tuple[Alert, ...], rendering: Rendering) -> str:
    """Of the engines that were there within half an hour: those of which one of the alerts is true."""
    cluster, engine = by(rendering, ()), by(rendering, _ENGINE)
    ill = " or ".join(f"group by ({engine}) ({alert.promql(rendering)})" for alert in alerts)
    line = number(rendering.thresholds.fleet_share_ratio)
    return f"count by ({cluster}) ({ill})\n/ on ({cluster})\n{ENGINES_LATELY.name} >= {line}"


MANY_ENGINES_STUCK = Alert(
    STUCK,
    Severity.INFO,
    Cause.SLO_MISSED,
    Expression(partial(_share, _STUCK), ()),
    f"{PERCENT} of the fleet's engines thrash or stand still",
    "So many that it explains what the fleet's users suffer. Each of them has a page of its own, which is sent.",
    for_seconds=15,
    keep_firing_seconds=KEPT_SECONDS,
    counts=tuple(alert.name for alert in _STUCK),
)
MANY_ENGINES_GONE = Alert(
    REDUCED,
    Severity.INFO,
    Cause.ENGINE_DOWN,
    Expression(partial(_share, _GONE), ()),
    f"{PERCENT} of the fleet's engines are down or start over and over",
    "So many that it explains why the others have more to do. From a tenth on CapacityGone pages.",
    for_seconds=60,
    keep_firing_seconds=KEPT_SECONDS,
    counts=tuple(alert.name for alert in _GONE),
)


def _capacity_gone(rendering: Rendering) -> str:
    """Of the engines that answer or are down: those that are. An engine that has just gone is both, and counts once."""
    cluster, engine = by(rendering, ()), by(rendering, _ENGINE)
    down, line = DOWN.read(rendering), number(rendering.thresholds.capacity_gone_ratio)
    every = f"{ENGINE_THERE.name} or on ({engine}) ({down})"
    return f"count by ({cluster}) ({down})\n/ on ({cluster})\ncount by ({cluster}) ({every}) >= {line}"


def _which(rendering: Rendering) -> str:
    """Names of some that are down."""
    return named(f"topk({_NAMED}, {DOWN.name}{{%s}})", "Down:", "{{ .Labels.engine }}", rendering)


_NAMED = 5
CAPACITY_IS_GONE = Alert(
    CAPACITY_GONE,
    Severity.PAGE,
    Cause.ENGINE_DOWN,
    Expression(_capacity_gone, ()),
    f"{PERCENT} of the fleet's engines are down",
    "So much of the fleet is gone that the others may not carry what it did; of a small fleet one engine is enough.",
    for_seconds=90,  # an engine that is started again takes less, and another may fail to answer meanwhile
    keep_firing_seconds=KEPT_SECONDS,
    brought_by=("GpuLost", "EngineRestarting"),
    counts=(ENGINE_DOWN.name,),
    worst=_which,
)
FLEET_HEALTH = (CAPACITY_IS_GONE, MANY_ENGINES_STUCK, MANY_ENGINES_GONE)
