"""Which service or worker is unusual, whatever its signals are: a robust z without units, and who is to blame for whom.

    workers(frame, calm)                             # engines, gateways and GPUs, the most unusual first
    suspects(calls, "frontend", {"db": Strain(z=40.0, excess=900.0), ...})

It is for what no template knows. A z is that of ``analysis.robust``, of median and MAD with a floor, so that it means
the same of bytes and of ratios. Failures are counted, not taken as a ratio near 1: one of a hundred is an event.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from analysis.frame import Frame, Key, Values
from analysis.robust import scale

_TOTAL = "_total"
_WORKER_LABELS = ("engine", "gateway", "uuid")
MOST_Z = 1000.0
"""What never moved makes any change infinite; more than this is no more unusual."""
_ANOMALOUS_Z = 3.0
_MOST_OF_IT = 0.5
"""A callee explains its caller where it accounts for most of what the caller has too much."""


def surprise(values: Values, usual: Values, least: float = 0.0) -> float:
    """The largest z of values by what is usual, above or below; shape (n,) and (m,). 0 where either isn't known.

    ``least``: the smallest spread that is taken, in the unit of the values.
    """
    norm = scale(usual, least)
    known = values[~np.isnan(values)]
    if norm is None or not len(known):
        return 0.0
    return float(min(np.abs(norm.z(known)).max(), MOST_Z))


def event_surprise(counts: Values, usual: Values) -> float:
    """The same of counted events, above alone: a count is at least as uncertain as its own root, and as one."""
    known = usual[~np.isnan(usual)]
    if not len(known):
        return 0.0
    return max(
        0.0,
        surprise(np.maximum(counts, np.median(known)), usual, float(np.sqrt(max(1.0, np.median(known))))),
    )


@dataclass(frozen=True, slots=True)
class Worker:
    """``score``: the sum of log(1 + z) over its most unusual series, ``series``: these with their z."""

    label: str
    name: str
    score: float
    series: tuple[tuple[Key, float], ...]


def workers(frame: Frame, baseline: Frame, most_series: int = 5) -> tuple[Worker, ...]:
    """Engines, gateways and GPUs by how unusual they are beside a baseline of the same, the most unusual first.

    Gauges only: a total is unusual by being later.
    """
    before = dict(baseline.columns())
    found: dict[tuple[str, str], list[tuple[Key, float]]] = {}
    for key, values in frame.columns():
        if key.name.endswith(_TOTAL) or key not in before:
            continue
        for label in _WORKER_LABELS:
            if name := key.label(label):
                found.setdefault((label, name), []).append((key, surprise(values, before[key])))
    ranked = []
    for (label, name), series in found.items():
        top = tuple(sorted(series, key=lambda each: (-each[1], each[0]))[:most_series])
        ranked.append(Worker(label, name, float(sum(np.log1p(z) for _, z in top)), top))
    return tuple(sorted(ranked, key=lambda each: (-each.score, each.label, each.name)))


@dataclass(frozen=True, slots=True)
class Strain:
    """Of one service: ``z`` of what its caller complains of, and ``excess``: how much of it there is too much in all.

    Seconds of all calls together, or failures: what a caller and its callees can be compared by.
    """

    z: float
    excess: float


def suspects(
    calls: Mapping[str, Collection[str]], target: str, strained: Mapping[str, Strain]
) -> tuple[str, ...]:
    """Services by how likely they are why ``target`` suffers, the likeliest first; all of ``strained`` are in it.

    From the target along calls, to callees that are anomalous and account for most of their caller's excess. A service
    has the sum of log(1 + z) on the best such way to it, so that who is deepest comes first; who can't be reached
    follows by its own z.
    """
    calm = Strain(0.0, 0.0)
    best: dict[str, float] = {}

    def follow(name: str, seen: frozenset[str], score: float) -> None:
        best[name] = max(best.get(name, 0.0), score)
        mine = strained.get(name, calm)
        for callee in sorted(calls.get(name, ())):
            its = strained.get(callee, calm)
            explains = its.z >= _ANOMALOUS_Z and its.excess >= _MOST_OF_IT * mine.excess
            if explains and callee not in seen:
                follow(callee, seen | {callee}, score + float(np.log1p(min(its.z, MOST_Z))))

    follow(target, frozenset({target}), float(np.log1p(min(strained.get(target, calm).z, MOST_Z))))
    reached = sorted(best, key=lambda name: (-best[name], name))
    rest = sorted((name for name in strained if name not in best), key=lambda name: (-strained[name].z, name))
    return (*reached, *rest)
