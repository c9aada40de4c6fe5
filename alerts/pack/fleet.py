"""How much of a fleet is ill: what one engine suffers explains its own alerts, and those of a cluster if many do.

An Alertmanager can't count: one engine of a thousand must not hide that users of all of them wait, and wakes nobody.
"""

from __future__ import annotations

from alerts.alert import Alert, Expression, Severity
from alerts.causes import Cause
from alerts.conditions import Rendering, number
from alerts.pack.cache import KV_THRASHING
from alerts.pack.engine import ENGINE_DEADLOCKED, ENGINE_DOWN, ENGINE_FROZEN, ENGINE_RESTARTING
from alerts.pack.explaining import (
    BACK_SECONDS,
    CAPACITY_GONE,
    CAPACITY_GONE_WITH_GPUS,
    KEPT_SECONDS,
    REDUCED,
    STILL,
    STILL_BURN,
    STUCK,
)
from alerts.pack.promql import by
from alerts.pack.swap import KV_SEQUENCES_SWAPPED
from alerts.pack.wording import PERCENT, named
from alerts.recording_gpus import LOST
from alerts.recording_ill import DOWN
from alerts.recording_presence import ENGINE_THERE
from alerts.recording_slo import BASE_WINDOW, EVENTS, LABELS, MISSED_RATIOS
from alerts.recording_stuck import MANY_STUCK, REMEMBERED, THERE_AMID_TROUBLE, share_of_engines
from exporter.derive.ranks import ENGINE_INFO

_ENGINE = ENGINE_INFO.scope.labels
_STUCK = (KV_THRASHING, KV_SEQUENCES_SWAPPED, ENGINE_FROZEN, ENGINE_DEADLOCKED)
"""KvOffloadThrash is a kind of KvThrashing."""
_GONE = (ENGINE_DOWN, ENGINE_RESTARTING)
"""An engine whose GPU is lost is down."""
_MENDING = "15m"
"""So long a drain, a start and the loading of weights may take; an engine that isn't back by then is gone."""


def _many_gone(rendering: Rendering) -> str:
    return share_of_engines((alert.promql(rendering) for alert in _GONE), rendering)


def _many_stuck(rendering: Rendering) -> str:
    """As it is recorded, with what it is held to for whoever reads the rule."""
    return f"{MANY_STUCK.read(rendering)} >= {number(rendering.thresholds.fleet_share_ratio)}"


MANY_ENGINES_STUCK = Alert(
    STUCK,
    Severity.INFO,
    Cause.SLO_MISSED,
    Expression(_many_stuck, ()),
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
    Expression(_many_gone, ()),
    f"{PERCENT} of the fleet's engines are down or start over and over",
    "So many that it explains why the others have more to do. From a tenth on CapacityGone pages.",
    for_seconds=60,
    keep_firing_seconds=KEPT_SECONDS,
    counts=tuple(alert.name for alert in _GONE),
)


def _capacity_gone(rendering: Rendering) -> str:
    """Of the engines that answer or are down: those that are. An engine that has just gone is both, and counts once.

    One that went while many were stuck already is being started anew by whoever was woken for that, and is given time
    to come back. One that went first may be why they are stuck.
    """
    cluster, engine = by(rendering, ()), by(rendering, _ENGINE)
    down, line = DOWN.read(rendering), number(rendering.thresholds.capacity_gone_ratio)
    every = f"{ENGINE_THERE.name} or on ({engine}) ({down})"
    mended = f"last_over_time({THERE_AMID_TROUBLE.name}[{_MENDING}])"
    lost = f"count by ({cluster}) ({down} unless on ({engine}) ({mended}))"
    return f"{lost}\n/ on ({cluster})\ncount by ({cluster}) ({every}) >= {line}"


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
    consequence_of=(CAPACITY_GONE_WITH_GPUS,),
    brought_by=("GpuLost", "EngineRestarting"),
    counts=(ENGINE_DOWN.name,),
    worst=_which,
)


def _gone_with_gpus(rendering: Rendering) -> str:
    """Where at least as many GPUs are lost as engines are down: others may be down for other reasons."""
    cluster = by(rendering, ())
    lost, down = (
        f"count by ({cluster}) ({LOST.promql(rendering)})",
        f"count by ({cluster}) ({DOWN.read(rendering)})",
    )
    return f"{_capacity_gone(rendering)}\nand on ({cluster})\n({lost} >= {down})"


def _lost(rendering: Rendering) -> str:
    """Names of GPUs that are lost."""
    return named(f"topk({_NAMED}, {LOST.record}{{%s}})", "Lost:", "{{ .Labels.uuid }}", rendering)


CAPACITY_IS_GONE_WITH_GPUS = Alert(
    CAPACITY_GONE_WITH_GPUS,
    Severity.PAGE,
    Cause.GPU_LOST,
    Expression(_gone_with_gpus, ()),
    f"{PERCENT} of the fleet's engines are down, and GPUs are lost",
    "GPUs fell off the bus or need a reset, and took so much of the fleet along that the others may not carry what it"
    " did. Engines aren't coming back by themselves.",
    for_seconds=15,
    keep_firing_seconds=KEPT_SECONDS,
    counts=("GpuLost",),
    worst=_lost,
)


def _still(rendering: Rendering) -> str:
    """As many misses as page over hours, of five minutes, after many engines were stuck and now that none of them is.

    It is about those that the first page was about: whoever was woken is told that it isn't over.
    """
    cluster, lines = by(rendering, ()), rendering.thresholds
    line = number(round(STILL_BURN * lines.slo_budget_ratio, 12))
    late = f"{MISSED_RATIOS[BASE_WINDOW].name} > {line}"
    many = f"{EVENTS.name} > {number(lines.slo_events_per_second)}"
    users = f"max by ({cluster}) (({late}) and on ({by(rendering, LABELS)}) ({many}))"
    stuck = f"last_over_time({MANY_STUCK.name}[{REMEMBERED}])"
    return f"{users}\nand on ({cluster})\n({stuck})\nunless on ({cluster})\n({MANY_STUCK.name})"


USERS_STILL_WAIT = Alert(
    STILL,
    Severity.PAGE,
    Cause.SLO_MISSED,
    Expression(_still, ()),
    f"Engines are no longer stuck, and {PERCENT} of the fleet's users wait too long",
    "Many engines thrashed or stood still within the hour. They don't any more, but answers are as late as that would"
    " page by itself: it isn't over.",
    for_seconds=60,
    keep_firing_seconds=BACK_SECONDS,
    consequence_of=(STUCK,),
)
FLEET_HEALTH = (
    CAPACITY_IS_GONE,
    CAPACITY_IS_GONE_WITH_GPUS,
    USERS_STILL_WAIT,
    MANY_ENGINES_STUCK,
    MANY_ENGINES_GONE,
)
