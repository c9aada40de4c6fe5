"""An engine as a whole: what it is, how often it began anew, how evenly its ranks are loaded."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from exporter.derive.phenomenon import EngineFacts, Phenomenon
from exporter.sample import ALL_RANKS, EngineSample
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import Window

BALANCE_SECONDS = 60.0

ENGINE_INFO = Signal(
    "engine_info",
    Kind.GAUGE,
    Scope.ENGINE,
    "1, with what the engine is: its kind and, where they differ in what they tell, its generation.",
    Confidence.MEASURED,
    "told by the names of its series",
    (),
    labels=("engine_kind", "generation"),
)
RESTARTS = Signal(
    "engine_restarts_total",
    Kind.COUNTER,
    Scope.ENGINE,
    "Times the engine began anew under the sidecar's eyes.",
    Confidence.MEASURED,
    "a later process start time; where none is told, a token counter that fell",
    ("started_at", "generation_tokens_total", "prompt_tokens_total"),
)
IMBALANCE = Signal(
    "rank_imbalance_ratio",
    Kind.GAUGE,
    Scope.ENGINE,
    "Sequences on the fullest data-parallel rank over the mean of all, over the trailing 60 s; 1 is even.",
    Confidence.MEASURED,
    "max / mean of time-averaged running + waiting; absent with one rank or nothing to do",
    ("running", "waiting"),
    window_seconds=BALANCE_SECONDS,
    above_one=True,
)


@dataclass(frozen=True, slots=True)
class RanksState:
    """Restarts so far."""

    restarts: int = 0


def _derive(
    window: Window[EngineSample], _facts: EngineFacts, state: RanksState
) -> tuple[RanksState, list[Point]]:
    now = window.newest
    state = RanksState(state.restarts + window.restarted())
    points = [
        Point(ENGINE_INFO, (now.kind, now.generation), 1.0),
        Point(RESTARTS, (), float(state.restarts)),
    ]
    imbalance = _imbalance(window)
    if imbalance is not None:
        points.append(Point(IMBALANCE, (), imbalance))
    return state, points


def _imbalance(window: Window[EngineSample]) -> float | None:
    samples = window.trailing(BALANCE_SECONDS)
    if not samples:
        return None
    if len({rank.rank for sample in samples for rank in sample.ranks}) < 2:  # noqa: PLR2004 -- as below
        return None
    # a rank that serves several models is still one; each is averaged over the time it was seen
    seconds_seen: dict[str, float] = {}
    sequence_seconds: dict[str, float] = {}
    for before, after in itertools.pairwise(samples):
        seconds = after.at - before.at
        single = [rank for rank in after.ranks if rank.rank != ALL_RANKS]
        for name in {rank.rank for rank in single}:
            seconds_seen[name] = seconds_seen.get(name, 0.0) + seconds
        for rank in single:
            if rank.running is None or rank.waiting is None:
                return None
            held = (rank.running + rank.waiting) * seconds
            sequence_seconds[rank.rank] = sequence_seconds.get(rank.rank, 0.0) + held
    loads = [sequence_seconds[name] / seconds for name, seconds in seconds_seen.items()]
    if len(loads) < 2:  # noqa: PLR2004 -- one rank is always even
        return None
    mean = sum(loads) / len(loads)
    return max(loads) / mean if mean > 0 else None


RANKS = Phenomenon("ranks", (ENGINE_INFO, RESTARTS, IMBALANCE), _derive, RanksState())
