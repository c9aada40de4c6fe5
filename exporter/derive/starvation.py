"""GPUs that have work and stand idle, because PCIe can't bring what they need fast enough."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from exporter.derive.flow import RATE_SECONDS, Reading
from exporter.derive.pcie import DOWNGRADED_SECONDS, TRAFFIC_OF_LINK, capacity, left_of, readings
from exporter.derive.phenomenon import EngineFacts, Phenomenon
from exporter.gpu_sample import GpuSample, GpuUtilisation
from exporter.join import Join
from exporter.sample import EngineSample
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import LONGEST_GAP_SECONDS, MERGE_BELOW_SECONDS, START_SLACK_SECONDS, Window

STARVED_SECONDS = 60.0
SATURATED_FROM = 0.8
"""Of what the link carries, in the fuller direction. Copies fill a link to 0.9 and more while they last: a second
with this mean is one in which they took most of it."""
IDLE_UP_TO = 0.2
"""What is left for work in such a second if the GPU stands still while the link is full."""

STARVED = Signal(
    "gpu_starved_ratio",
    Kind.GAUGE,
    Scope.ENGINE,
    "Share of the trailing 60 s in which the GPU was idle while the engine had sequences running and the GPU's PCIe "
    "link was full in one direction. If pcie_swap_share_ratio is high too, let the engine swap less: fewer sequences, "
    "shorter prompts, more KV cache; else look for what else loads it.",
    Confidence.ESTIMATE,
    f"seconds with running > 0, PCIe at {SATURATED_FROM:g} or more of its link (while downgraded, of what is left of "
    f"it), and SMs active for {IDLE_UP_TO:g} of it or less; without profiling counters, kernels running that much or "
    "less, which sees less: one that waits runs. Absent where an engine shows gauges of a moment ago (SGLang): whether "
    "it had sequences in those seconds is not known",
    (
        "running",
        "sm_active_ratio",
        "busy_ratio",
        "out_bytes_total",
        "in_bytes_total",
        "out_bytes_per_second",
        "in_bytes_per_second",
        "generation",
        "width",
        "max_generation",
        "max_width",
    ),
    labels=("uuid",),
    window_seconds=STARVED_SECONDS,
    follows_reads=True,
)


class Stretch(NamedTuple):
    """A time over which the GPU was known to starve, or known not to."""

    began_at: float
    at: float
    starved: bool


class Slow(NamedTuple):
    """Since when a link has carried traffic at a lower generation than it can, and when it last did."""

    since: float
    traffic_at: float


class Watch(NamedTuple):
    """One GPU: since when it is watched, when it was last looked at, and the stretches of its trailing minute."""

    began_at: float
    newest_at: float
    stretches: tuple[Stretch, ...] = ()
    slow: Slow | None = None

    def seconds(self) -> tuple[float, float]:
        """Of the trailing minute, the seconds of which it is known and those in which it starved."""
        known = starved = 0.0
        for began_at, at, is_starved in self.stretches:
            lasted = at - max(began_at, self.newest_at - STARVED_SECONDS)
            known += lasted
            starved += lasted if is_starved else 0.0
        return known, starved


@dataclass(frozen=True, slots=True)
class StarvationState:
    """All GPUs of the engine by UUID."""

    watches: Mapping[str, Watch] = field(default_factory=dict)


def _derive(join: Join, _facts: EngineFacts, state: StarvationState) -> tuple[StarvationState, list[Point]]:
    works = _works(join.engine.newest)
    watches: dict[str, Watch] = {}
    points: list[Point] = []
    for window in join.gpus:
        uuid, now = window.newest.identity.uuid, window.newest.at
        watch = state.watches.get(uuid) or Watch(now, now)
        if now > watch.newest_at:
            watch = _seen(watch, window, works)
        watches[uuid] = watch
        if now - watch.began_at < STARVED_SECONDS - START_SLACK_SECONDS:
            continue
        known, starved = watch.seconds()
        if known >= 0.5 * STARVED_SECONDS:
            points.append(Point(STARVED, (uuid,), min(1.0, starved / known)))
    return StarvationState(watches), points


def _works(engine: EngineSample) -> bool | None:
    """Whether any rank has sequences running now; None where none tells, or one that may tells of a moment ago."""
    ranks = [rank for rank in engine.ranks if rank.running is not None]
    if any(rank.running for rank in ranks if rank.gauges_are_fresh):
        return True
    return False if ranks and all(rank.gauges_are_fresh for rank in ranks) else None


def _seen(watch: Watch, window: Window[GpuSample], works: bool | None) -> Watch:  # noqa: FBT001 -- a fact
    before, after = window.samples[-2:] if len(window.samples) > 1 else (window.newest, window.newest)
    stretches, slow = watch.stretches, watch.slow
    while stretches and stretches[0].at <= after.at - STARVED_SECONDS:
        stretches = stretches[1:]
    if MERGE_BELOW_SECONDS <= after.at - before.at <= LONGEST_GAP_SECONDS and not window.restarted():
        idle = _idle(after.utilisation)
        if _is_slower(after) or not (works is False or idle is False):
            rates = _rates(before, after)
            slow = _slow(after, rates, watch.slow)
            starved = _starved(works, idle, _saturated(after, rates, slow))
        else:  # as of nearly every GPU that is used: whatever its link carries, it doesn't wait for it
            slow, starved = None, False
        if starved is not None:
            began_at = before.at
            if stretches and stretches[-1].at == before.at and stretches[-1].starved is starved:
                began_at, stretches = stretches[-1].began_at, stretches[:-1]
            stretches = (*stretches, Stretch(began_at, after.at, starved))
    return Watch(watch.began_at, after.at, stretches, slow)


def _starved(*told: bool | None) -> bool | None:
    """Whether all of them hold; one that is known not to is enough."""
    if any(each is False for each in told):
        return False
    return None if any(each is None for each in told) else True


def _idle(load: GpuUtilisation | None) -> bool | None:
    if load is None:
        return None
    active = load.busy_ratio if load.sm_active_ratio is None else load.sm_active_ratio
    return None if active is None else active <= IDLE_UP_TO


def _rates(before: GpuSample, after: GpuSample) -> tuple[float, float]:
    """Bytes a second (in, out) between two samples; NaN for a direction of which it isn't known."""
    if before.pcie is None or after.pcie is None:
        return math.nan, math.nan
    then_in, then_out = readings(before.at, before.pcie)
    now_in, now_out = readings(after.at, after.pcie)
    return _rate(then_in, now_in), _rate(then_out, now_out)


def _rate(then: Reading, now: Reading) -> float:
    moved = now.moved_since(then) if then.known and now.known else None
    told = moved is not None and now.untold_total == then.untold_total
    return (moved or 0.0) / (now.at - then.at) if told else math.nan


def _is_slower(now: GpuSample) -> bool:
    """Whether the link runs at a lower generation than it can."""
    link = now.link
    return link is not None and 0 < (link.generation or 0) < (link.max_generation or 0)


def _slow(now: GpuSample, rates: tuple[float, float], before: Slow | None) -> Slow | None:
    """What ``before`` has become: a link that wakes, or carries nothing for as long as rates go back, isn't slow."""
    link = now.link
    if link is None or not _is_slower(now):
        return None
    most = capacity(link)
    if most is not None and any(rate >= TRAFFIC_OF_LINK * most for rate in rates):
        return Slow(now.at if before is None else before.since, now.at)
    return before if before is not None and now.at - before.traffic_at < RATE_SECONDS else None


def _saturated(now: GpuSample, rates: tuple[float, float], slow: Slow | None) -> bool | None:
    """Whether the fuller direction of the link was; None where a direction that could have been is not known."""
    if now.link is None:
        return None
    stays_slow = slow is not None and now.at - slow.since >= DOWNGRADED_SECONDS
    most = capacity(left_of(now.link, stays_slow=stays_slow))
    if most is None:
        return None
    if any(rate >= SATURATED_FROM * most for rate in rates):
        return True
    return None if any(math.isnan(rate) for rate in rates) else False


STARVATION = Phenomenon("gpu_starvation", (STARVED,), _derive, StarvationState())
