"""What is wrong with engines, where several alerts ask it: each is looked for once, and only who is ill is recorded.

The alert that pages on one stands in the same group, behind it, and reads it at the same instant. Alerts of other
groups may read it as it was at their last evaluation: they say how many are ill, and whose fault something isn't.
"""

from __future__ import annotations

from alerts.conditions import Compare, Reading, Recorded, Rendering, number
from alerts.pack.promql import by, gauge
from alerts.recording import Recording, RecordingGroup, recording
from alerts.recording_presence import ENGINE_KNOWN
from exporter.derive.blocks import KV_USAGE
from exporter.derive.preemption import PREEMPTION_RATE, THRASHING
from exporter.derive.ranks import ENGINE_INFO, RESTARTS
from exporter.derive.stalls import DEADLOCKED, FROZEN
from exporter.derive.swap import SWAPPED
from exporter.signal import Signal
from exporter.source_signals import SOURCE_UP

_ENGINE = ENGINE_INFO.scope.labels


def _flag(signal: Signal) -> Recorded:
    return Recorded(Compare(Reading(signal), ">=", 1.0), f"cluster_rank:{signal.full_name}_true:max")


THRASHES, FREEZES, DEADLOCKS = _flag(THRASHING), _flag(FROZEN), _flag(DEADLOCKED)
SWAPS = Recorded(
    Compare(Reading(SWAPPED), ">", "swapped_sequences"), f"cluster_rank:{SWAPPED.full_name}_above:max"
)


def _down(rendering: Rendering) -> str:
    """A source that none who reads it can read, and that was an engine within six hours: its name is the engine's."""
    on, source = by(rendering, _ENGINE), by(rendering, SOURCE_UP.scope.labels)
    unread = f"max by ({source}) ({gauge(rendering, SOURCE_UP)}) == 0"
    named = f'max by ({on}) (label_replace({unread}, "engine", "$1", "source", "(.*)"))'
    return f"{named}\nand on ({on})\n({ENGINE_KNOWN.name})"


DOWN = Recording(
    f"cluster_engine:{SOURCE_UP.full_name}_none:max",
    "0 for each engine that no sidecar can read, and that was there within six hours; absent for others.",
    _down,
    _ENGINE,
)


def _restarting(rendering: Rendering) -> str:
    name = RESTARTS.full_name + rendering.matchers()
    line = number(rendering.thresholds.engine_restarts)
    return f"max by ({by(rendering, _ENGINE)}) (increase({name}[30m])) >= {line}"


RESTARTING = Recording(
    f"cluster_engine:{RESTARTS.full_name.removesuffix('_total')}_above:increase30m",
    "Starts of each engine within half an hour, from `engine_restarts` on; absent for others.",
    _restarting,
    _ENGINE,
)
FULL = Recorded(
    Compare(Reading(KV_USAGE), ">=", "kv_usage_full_ratio"), f"cluster_rank:{KV_USAGE.full_name}_above:max"
)
PREEMPTS = Recorded(
    Compare(Reading(PREEMPTION_RATE), ">", "preemptions_per_second"),
    f"cluster_rank:{PREEMPTION_RATE.full_name}_above:max",
)
THRASHING_NOW = RecordingGroup(
    (
        recording(THRASHES, "1 for each rank that thrashes; absent for others."),
        recording(FULL, "KV usage of each rank, from `kv_usage_full_ratio` on; absent below."),
        recording(
            PREEMPTS,
            "Preemptions a second of each rank, where they are above `preemptions_per_second`; absent elsewhere.",
        ),
    ),
    before="cache",
)
SWAPPING_NOW = RecordingGroup(
    (recording(SWAPS, "Sequences swapped out, where they are above `swapped_sequences`; absent elsewhere."),),
    before="swap",
)
ENGINES_NOW = RecordingGroup(
    (
        DOWN,
        recording(FREEZES, "1 for each rank that stands still; absent for others."),
        recording(DEADLOCKS, "1 for each rank that lets nobody in; absent for others."),
        RESTARTING,
    ),
    before="engine",
)
