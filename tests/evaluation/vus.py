"""VUS-PR as TSB-AD defines it: how well scores find labelled ranges, whatever the threshold and whatever the tolerance.

Around each labelled range lies a slope: a point at distance d has the weight sqrt(1 - d / w) up to w // 2, where the
tolerance w goes from 0 to the series' period. At each of 250 thresholds, taken by rank, recall counts weights of what
is found, times the share of ranges in which anything is; precision is over all points found. VUS-PR is the mean over w
of the area under the steps of precision over recall. Written from the paper (Paparrizos et al., "Volume under the
surface", VLDB 2022) and the definition in TSB-AD (NeurIPS 2024).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_THRESHOLDS = 250


def vus_pr(scores: NDArray[np.float64], labels: NDArray[np.bool_], period: int) -> float:
    """Of ``scores`` and ``labels``, both of shape (n,), with tolerances up to ``period`` instants.

    Raises ValueError: shapes that differ, no label, scores that aren't finite.
    """
    if scores.shape != labels.shape or scores.ndim != 1:
        raise ValueError(
            f"scores of shape {scores.shape} and labels of shape {labels.shape}: give one of each"
        )
    if not np.isfinite(scores).all():
        raise ValueError("scores have to be finite")
    runs = _runs(labels)
    if not len(runs):
        raise ValueError("no instant is labelled")
    rising = np.sort(scores)
    cuts = rising[::-1][np.linspace(0, len(scores) - 1, _THRESHOLDS).astype(int)]
    found = len(scores) - np.searchsorted(rising, cuts, "left")
    # the first threshold at which each point is found; cuts fall
    first = np.searchsorted(-cuts, -scores, "left")
    inside = np.cumsum(np.bincount(first[labels], minlength=_THRESHOLDS)).astype(np.float64)
    areas = [_area(runs, labels, tolerance, (first, found, inside)) for tolerance in range(period + 1)]
    return float(np.mean(areas))


def _area(
    runs: NDArray[np.int64],
    labels: NDArray[np.bool_],
    tolerance: int,
    ranked: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]],
) -> float:
    """Under one tolerance's curve. ``ranked``: each point's threshold, points and labelled points found at each."""
    first, found, inside = ranked
    half = tolerance // 2
    places, weights = _slopes(runs, labels, tolerance)
    slope = np.cumsum(np.bincount(first[places], weights=weights, minlength=_THRESHOLDS))
    weight = inside + slope
    recall = np.minimum(weight / (inside[-1] + slope / 2), 1.0)
    begins, ends = runs[:, 0] - half, runs[:, 1] + half
    apart = ends[:-1] < begins[1:]
    starts = np.maximum(np.concatenate((begins[:1], begins[1:][apart])), 0)
    stops = np.minimum(np.concatenate((ends[:-1][apart], ends[-1:])), len(labels) - 1)
    earliest = [int(first[a : b + 1].min()) for a, b in zip(starts, stops, strict=True)]
    touched = np.cumsum(np.bincount(earliest, minlength=_THRESHOLDS)) / len(earliest)
    return float(np.dot(np.diff(recall * touched, prepend=0.0), weight / found))


def _slopes(
    runs: NDArray[np.int64], labels: NDArray[np.bool_], tolerance: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Unlabelled points near labelled ones, and their weights; where slopes meet they add up to 1 at most."""
    distance = np.arange(1, tolerance // 2 + 1)
    if not len(distance):
        return np.empty(0, dtype=np.int64), np.empty(0)
    heights = np.sqrt(1 - distance / tolerance)
    places = np.concatenate(((runs[:, :1] - distance).ravel(), (runs[:, 1:] + distance).ravel()))
    weights = np.tile(heights, 2 * len(runs))
    kept = (places >= 0) & (places < len(labels))
    kept[kept] &= ~labels[places[kept]]
    unique, where = np.unique(places[kept], return_inverse=True)
    return unique, np.minimum(np.bincount(where, weights=weights[kept]), 1.0)


def _runs(labels: NDArray[np.bool_]) -> NDArray[np.int64]:
    """First and last place of each labelled range, shape (k, 2)."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], labels, [False]))))
    return np.asarray(edges.reshape(-1, 2) - [0, 1], dtype=np.int64)
