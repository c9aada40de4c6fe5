from __future__ import annotations

import numpy as np
import pytest

from analysis.scores import period
from tests.evaluation.detection_others import poly, spectral_residual
from tests.evaluation.labelled import DATA, is_there, microsoft, nab, published
from tests.evaluation.vus import vus_pr

needs_series = pytest.mark.skipif(not is_there(), reason=f"{DATA} lacks the labelled series")


def by_definition(scores: np.ndarray, labels: np.ndarray, period_: int) -> float:
    """Point by point, threshold by threshold."""
    places = np.flatnonzero(np.diff(np.concatenate(([0], labels.astype(int), [0])))).reshape(-1, 2)
    cuts = np.sort(scores)[::-1][np.linspace(0, len(scores) - 1, 250).astype(int)]
    areas = []
    for width in range(period_ + 1):
        weights = labels.astype(float)
        near = [range(max(0, a - width // 2), min(len(labels), b + width // 2)) for a, b in places]
        for (a, b), zone in zip(places, near, strict=True):
            for each in zone:
                away = a - each if each < a else each - b + 1
                if away > 0:
                    weights[each] += np.sqrt(1 - away / width)
        weights = np.minimum(weights, 1.0)
        zones: list[set[int]] = []
        for zone in near:
            if zones and min(zone) - 1 in zones[-1] | {max(zones[-1]) + 1} and min(zone) <= max(zones[-1]):
                zones[-1] |= set(zone)
            else:
                zones.append(set(zone))
        area = before = 0.0
        for cut in cuts:
            hit = scores >= cut
            true = float(weights[hit].sum())
            slope = float(weights[hit & ~labels].sum())
            recall = min(true / (labels.sum() + slope / 2), 1.0)
            recall *= sum(bool(hit[sorted(zone)].any()) for zone in zones) / len(zones)
            area += (recall - before) * true / hit.sum()
            before = recall
        areas.append(area)
    return float(np.mean(areas))


@pytest.mark.parametrize("seed", range(4))
def test_it_is_what_the_definition_says(seed: int) -> None:
    chance = np.random.default_rng(seed)
    labels = np.zeros(300, dtype=bool)
    labels[40:60] = labels[150:152] = True
    scores = chance.normal(size=300) + labels
    assert vus_pr(scores, labels, 12) == pytest.approx(by_definition(scores, labels, 12), abs=1e-12)


def test_finding_all_and_nothing_else_is_one() -> None:
    labels = np.zeros(500, dtype=bool)
    labels[200:240] = True
    assert vus_pr(labels.astype(float), labels, 0) == pytest.approx(1.0)
    assert vus_pr(-labels.astype(float), labels, 0) < 0.15


def test_what_can_not_be_judged_is_refused() -> None:
    labels = np.ones(3, dtype=bool)
    with pytest.raises(ValueError, match="no instant is labelled"):
        vus_pr(np.zeros(3), ~labels, 2)
    with pytest.raises(ValueError, match="finite"):
        vus_pr(np.array([0.0, np.nan, 1.0]), labels, 2)
    with pytest.raises(ValueError, match="shape"):
        vus_pr(np.zeros(4), labels, 2)


@needs_series
def test_methods_of_others_have_the_published_value_on_each_series() -> None:
    assert (len(nab()), len(microsoft())) == (16, 53)
    for each in nab():
        row = published()[each.name]
        for name, method in (("POLY", poly), ("SR", spectral_residual)):
            found = vus_pr(method(each.values), each.labels, period(each.values))
            assert found == pytest.approx(row[name], abs=5e-5), (each.name, name)
