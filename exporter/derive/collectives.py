"""Collectives between the GPUs of an engine: what their NVLinks carry, and whether it is less than usual."""

from __future__ import annotations

import itertools
import math
import statistics
from dataclasses import dataclass, replace
from typing import NamedTuple

from exporter.derive.flow import RATE_SECONDS
from exporter.derive.phenomenon import EngineFacts, Phenomenon
from exporter.gpu_sample import GpuSample
from exporter.join import Join
from exporter.sample import EngineSample
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import Window

DROP_SECONDS = 30.0
LEARN_EVERY_SECONDS = 60.0
REMEMBER_SECONDS = 7200.0
"""Twice the longest incident that is to be seen to its end."""
ENOUGH_LESSONS = 5
MOST_LESSONS = 30
ALIKE = 1.05
"""Sequences that run now over those of a lesson that still counts as no more of them."""
LEARN_BELOW = 0.3
"""What is seen in a larger drop is not what is usual."""

COLLECTIVE_RATE = Signal(
    "collective_bytes_per_second",
    Kind.GAUGE,
    Scope.ENGINE,
    "Bytes a second that the GPUs of the engine sent one another over NVLink over the trailing 10 s: its collectives, "
    "and any copies from GPU to GPU.",
    Confidence.ESTIMATE,
    "outgoing NVLink bytes of all GPUs of the engine over time, so that each byte counts once",
    ("out_bytes_total", "out_bytes_per_second", "bytes_per_second"),
    window_seconds=RATE_SECONDS,
)
COLLECTIVE_DROP = Signal(
    "collective_drop_ratio",
    Kind.GAUGE,
    Scope.ENGINE,
    "How much less the collectives of the engine carry than is usual with as many sequences running, over the trailing "
    "30 s: 0 as usual, 0.8 a fifth of it. Longer contexts and throttled clocks show here too. Absent without NVLink or "
    "tokens, until 5 min of as many sequences or fewer were seen, and for as long after a restart.",
    Confidence.ESTIMATE,
    "1 - the larger of NVLink bytes a second and generated tokens a second, each over its median in those of the last "
    "2 h in which as many sequences ran as now, or fewer: more sequences never carry less. Bytes alone fall when "
    "prefill ends, tokens alone when it begins; what was seen in a drop is not learned from",
    ("out_bytes_total", "out_bytes_per_second", "bytes_per_second", "generation_tokens_total", "running"),
    window_seconds=DROP_SECONDS,
)


class Lesson(NamedTuple):
    """What was seen at ``at``: mean sequences running, bytes and tokens a second."""

    at: float
    running: float
    bytes_per_second: float
    tokens_per_second: float


@dataclass(frozen=True, slots=True)
class CollectiveState:
    """What is usual, oldest first, and when the engine was last seen to restart."""

    lessons: tuple[Lesson, ...] = ()
    restarted_at: float = 0.0


def _derive(join: Join, _facts: EngineFacts, state: CollectiveState) -> tuple[CollectiveState, list[Point]]:
    if join.engine.restarts and join.engine.restarts[-1] > state.restarted_at:
        # another process, maybe of another model
        state = CollectiveState((), join.engine.restarts[-1])
    points: list[Point] = []
    if join.gpus_stale or not join.gpus:
        return state, points
    rate = _sent(join, RATE_SECONDS)
    if rate is not None:
        points.append(Point(COLLECTIVE_RATE, (), rate))
    now = _lesson(join)
    if now is None:
        return state, points
    drop = _drop(now, state.lessons)
    if drop is not None:
        points.append(Point(COLLECTIVE_DROP, (), drop))
    last = state.lessons[-1].at if state.lessons else 0.0
    if now.at - last >= LEARN_EVERY_SECONDS and (drop is None or drop < LEARN_BELOW):
        kept = tuple(each for each in state.lessons if each.at > now.at - REMEMBER_SECONDS)
        state = replace(state, lessons=(*kept, now))
    return state, points


def _sent(join: Join, seconds: float) -> float | None:
    """Bytes a second out of all GPUs; each of them has to tell, from one end of the time to the other."""
    total = 0.0
    for window in join.gpus:
        ends = window.ends(seconds)
        if ends is None:
            return None
        then, now = (_counted(sample) for sample in ends)
        if then is not None and now is not None:
            if then.source != now.source or now.at <= then.at:
                return None
            rate = (now.out_bytes - then.out_bytes) / (now.at - then.at)
        else:
            told = [_out_rate(sample) for sample in window.trailing(seconds)[1:]]
            known = [each for each in told if each is not None]
            rate = statistics.fmean(known) if len(known) == len(told) else -1.0
        if not 0.0 <= rate < math.inf:
            return None
        total += rate
    return total


class _Counted(NamedTuple):
    at: float
    source: str
    out_bytes: float


def _counted(sample: GpuSample) -> _Counted | None:
    """What left the GPU so far, by a source that adds up."""
    nvlink = sample.nvlink
    if nvlink is None or nvlink.out_bytes_total is None:
        return None
    at = sample.at if nvlink.read_at is None else nvlink.read_at
    return _Counted(at, nvlink.source, nvlink.out_bytes_total)


def _out_rate(sample: GpuSample) -> float | None:
    """Of a source that can't tell the directions apart, half: what one GPU sends another takes in."""
    nvlink = sample.nvlink
    if nvlink is None or nvlink.out_bytes_per_second is not None:
        return None if nvlink is None else nvlink.out_bytes_per_second
    return None if nvlink.bytes_per_second is None else nvlink.bytes_per_second / 2


def _lesson(join: Join) -> Lesson | None:
    """The trailing 30 s; None without NVLink traffic, sequences or tokens."""
    sent = _sent(join, DROP_SECONDS)  # asked first: nearly every engine on one GPU has none
    if not sent:
        return None
    running = _running(join.engine)
    tokens = 0.0
    for window in join.ranks:
        made = window.delta(lambda sample: sample.tokens_so_far, DROP_SECONDS)
        if made is None:
            return None
        tokens += made.per_second
    if not running or not tokens:
        return None
    return Lesson(join.engine.newest.at, running, sent, tokens)


def _running(window: Window[EngineSample]) -> float | None:
    """Mean sequences that ran on all ranks."""
    held = seconds = 0.0
    for before, after in itertools.pairwise(window.trailing(DROP_SECONDS)):
        counts = [rank.running for rank in after.ranks]
        if not counts or None in counts:
            return None
        held += sum(count for count in counts if count is not None) * (after.at - before.at)
        seconds += after.at - before.at
    return held / seconds if seconds else None


def _drop(now: Lesson, lessons: tuple[Lesson, ...]) -> float | None:
    """Against the lessons with the most sequences among those with no more than now."""
    alike = sorted(each for each in _by_running(lessons) if each[0] <= now.running * ALIKE)
    if len(alike) < ENOUGH_LESSONS:
        return None
    nearest = alike[-MOST_LESSONS:]
    usual_bytes = statistics.median(each[1] for each in nearest)
    usual_tokens = statistics.median(each[2] for each in nearest)
    kept = max(now.bytes_per_second / usual_bytes, now.tokens_per_second / usual_tokens)
    return max(0.0, 1.0 - kept)


def _by_running(lessons: tuple[Lesson, ...]) -> list[tuple[float, float, float]]:
    return [(each.running, each.bytes_per_second, each.tokens_per_second) for each in lessons]


COLLECTIVES = Phenomenon("collectives", (COLLECTIVE_RATE, COLLECTIVE_DROP), _derive, CollectiveState())
