"""The engine as a process: down, frozen, deadlocked, restarting, out of balance; the fleet's progress."""

from __future__ import annotations

from alerts.alert import Alert, Expression, Severity
from alerts.causes import Cause
from alerts.conditions import Compare, Reading, Rendering, number
from alerts.pack.explaining import (
    BACK_SECONDS,
    CAPACITY_GONE,
    CAPACITY_GONE_WITH_GPUS,
    FLEET_WIDE,
    KEPT_SECONDS,
    STUCK_WIDE,
)
from alerts.pack.promql import by, gauge
from alerts.pack.wording import AN_ENGINE, NUMBER, PERCENT
from alerts.recording_fleet import HELD, TOKENS
from alerts.recording_ill import DEADLOCKS, DOWN, FREEZES, RESTARTING
from alerts.recording_presence import USAGE_THERE
from exporter.derive.blocks import KV_USAGE
from exporter.derive.ranks import ENGINE_INFO, IMBALANCE

_ENGINE = ENGINE_INFO.scope.labels


def _down(rendering: Rendering) -> str:
    return f"{DOWN.read(rendering)} == 0"


ENGINE_DOWN = Alert(
    "EngineDown",
    Severity.WARNING,
    Cause.ENGINE_DOWN,
    Expression(_down, _ENGINE),
    "{{ $labels.engine }} answers no more",
    "The engine's metrics can't be read, and could within the last six hours. Its load has gone to the others. Where it"
    " is much of the fleet, CapacityGone pages.",
    for_seconds=60,
    keep_firing_seconds=BACK_SECONDS,
    consequence_of=(CAPACITY_GONE, CAPACITY_GONE_WITH_GPUS, *STUCK_WIDE),
    brought_by=("GpuLost", "EngineRestarting"),
)
ENGINE_FROZEN = Alert(
    "EngineFrozen",
    Severity.PAGE,
    Cause.ENGINE_FROZEN,
    FREEZES,
    "{{ $labels.engine }} stands still with sequences in it",
    "Nothing has moved for far longer than its longest prefill, though its front end still takes requests.",
    for_seconds=0,
    keep_firing_seconds=KEPT_SECONDS,
)
ENGINE_DEADLOCKED = Alert(
    "EngineDeadlocked",
    Severity.PAGE,
    Cause.ENGINE_DEADLOCKED,
    DEADLOCKS,
    "{{ $labels.engine }}: requests wait and none runs",
    "For a minute requests have waited while nothing ran: the scheduler can let nobody in, or has stopped.",
    for_seconds=0,
    keep_firing_seconds=KEPT_SECONDS,
    quiet_under=("EngineFrozen",),
)


def _restarting(rendering: Rendering) -> str:
    line = number(rendering.thresholds.engine_restarts)
    return f"{RESTARTING.read(rendering)} >= {line}"


ENGINE_RESTARTING = Alert(
    "EngineRestarting",
    Severity.PAGE,
    Cause.ENGINE_RESTARTS,
    Expression(_restarting, _ENGINE),
    '{{ $labels.engine }} was started {{ $value | printf "%.0f" }} times within half an hour',
    "It dies and is started again, over and over: each time it loses what it had and takes minutes to load.",
    for_seconds=0,
    keep_firing_seconds=600,
)
RANKS_OUT_OF_BALANCE = Alert(
    "RanksOutOfBalance",
    Severity.WARNING,
    Cause.RANK_IMBALANCE,
    Compare(Reading(IMBALANCE), ">", "rank_imbalance_ratio"),
    f"{AN_ENGINE}: its busiest rank has {NUMBER} times the mean",
    "One data-parallel rank is full while others idle: the router doesn't spread requests by what they hold.",
    for_seconds=300,
    quiet_under=("EngineDown",),
)


def _falling(rendering: Rendering) -> str:
    """Half the tokens of ten minutes ago, with as many sequences or more: of the fleet's recorded sums.

    Of few sequences that is chance: one long prompt among three, or answers that come and go between two looks.
    """
    cluster = by(rendering, ())
    lines = rendering.thresholds

    def total(series: str, before: str = "") -> str:
        return f"sum by ({cluster}) (avg_over_time({series}[2m]{before}))"

    ago = " offset 10m"
    held = f'{HELD.name}{{state=~"running|waiting|swapped"}}'
    rate = f"{total(TOKENS.name)} / ({total(TOKENS.name, ago)} > 0)"
    return (
        f"{rate} < {number(lines.fleet_progress_ratio)}\nand on ({cluster})\n"
        f"({total(held)} >= {total(held, ago)})\nand on ({cluster})\n"
        f"({total(held, ago)} > {number(lines.fleet_progress_sequences)})"
    )


FLEET_PROGRESS_FALLING = Alert(
    "FleetProgressFalling",
    Severity.PAGE,
    Cause.SLO_MISSED,
    Expression(_falling, ()),
    f"The fleet makes {PERCENT} of the tokens of ten minutes ago, with as many sequences",
    "More is in the engines than before and less comes out of them, whatever each of them says of itself.",
    for_seconds=120,
    consequence_of=FLEET_WIDE,
)


def _absent(rendering: Rendering) -> str:
    """There within the last hour, gone now, while the engine answers."""
    on = by(rendering, _ENGINE)
    was, now = f"last_over_time({USAGE_THERE.name}[1h])", gauge(rendering, KV_USAGE, window="2m")
    answers = gauge(rendering, ENGINE_INFO)
    return f"group by ({on}) ({was} unless on ({on}) {now})\nand on ({on})\n({answers})"


SIGNAL_ABSENT = Alert(
    "SignalAbsent",
    Severity.WARNING,
    Cause.METRIC_RENAME,
    Expression(_absent, _ENGINE),
    "{{ $labels.engine }} no longer tells its KV usage",
    "It did within the last hour, and it still answers: an upgrade renamed its metrics, and alerts on them are blind.",
    for_seconds=60,
    keep_firing_seconds=0,
)
ENGINE = (
    ENGINE_DOWN,
    ENGINE_FROZEN,
    ENGINE_DEADLOCKED,
    ENGINE_RESTARTING,
    RANKS_OUT_OF_BALANCE,
    FLEET_PROGRESS_FALLING,
    SIGNAL_ABSENT,
)
