"""Grids of thresholds and waits: each point is what the alert would have made, and the best are no other's worse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from alerts.catalogue import ALERTS
from alerts.pack_settings import AlertSettings, PackSettings
from analysis.backtest.frames import backtest, subjects_of
from analysis.backtest.outcome import Backtest, Moment, measured, notices
from analysis.backtest.sweep import FOR, KEEP, Axis, SweepError, axis, sweep, usual_axes
from analysis.frame import Frame, Key
from analysis.history.history import History
from exporter.derive.headroom import DEMAND
from exporter.derive.ranks import IMBALANCE

ALERT = ALERTS["KvDemandBeyondPool"]
STEP = 15.0
COUNT = 4000
SETTINGS = PackSettings()


def demand() -> History:
    """Two engines that are asked for more now and then, and for long from the middle on."""
    chance = np.random.default_rng(20261201)
    columns = []
    for _ in range(2):
        bursts = np.repeat(chance.uniform(0.2, 1.6, COUNT // 5), 5)
        bursts[chance.random(COUNT) < 0.05] = np.nan
        bursts[COUNT // 2 : COUNT // 2 + 100] = np.linspace(0.8, 3.0, 100)
        columns.append(bursts)
    keys = tuple(
        Key.of(DEMAND.full_name, {"engine": engine, "rank": "0", "model_name": "m"}) for engine in "ab"
    )
    return History(Frame(np.arange(COUNT) * STEP, STEP, keys, np.array(columns).T), "made up")


HISTORY = demand()
SUBJECTS = subjects_of(HISTORY, SETTINGS)
MOMENT = Moment((COUNT // 2 + 30) * STEP, within_seconds=900)


def _by_itself(settings: PackSettings) -> Backtest:
    return backtest(HISTORY, [ALERT], settings)


def test_each_point_is_what_a_backtest_with_that_setting_says() -> None:
    axes = (axis("kv_demand_ratio", 0.5, 1.5, 3), axis(FOR, 0, 120, 3), axis(KEEP, 0, 60, 2))
    swept = sweep(ALERT, axes, SUBJECTS, SETTINGS, moment=MOMENT)
    assert len(swept.points) == 18
    noises = set()
    for point in swept.points:
        line, wait, keep = point.at
        settings = PackSettings(
            thresholds=replace(SETTINGS.thresholds, kv_demand_ratio=line),
            alerts={ALERT.name: AlertSettings(for_seconds=int(wait), keep_firing_seconds=int(keep))},
        )
        tested = _by_itself(settings)
        assert point.measures == measured(notices(tested), tested.weeks, MOMENT)
        noises.add(point.measures.noise)
    assert len(noises) > 10


def test_no_other_point_beats_the_best_in_both() -> None:
    swept = sweep(ALERT, usual_axes(ALERT, SETTINGS, SUBJECTS), SUBJECTS, SETTINGS, moment=MOMENT)
    assert len(swept.points) >= 1000
    assert len(swept.best) > 1
    leads = [(point.measures.noise, point.measures.lead_seconds) for point in swept.points]
    for best in swept.best:
        noise, lead = best.measures.noise, best.measures.lead_seconds
        assert lead is not None
        for other_noise, other_lead in leads:
            if other_lead is not None:
                assert not (other_noise <= noise and other_lead > lead)
                assert not (other_noise < noise and other_lead >= lead)
    (shipped,) = [point for point in swept.points if point.shipped]
    assert shipped.at == (SETTINGS.thresholds.kv_demand_ratio, float(ALERT.for_seconds))


def test_longer_waits_never_make_more_of_it_and_without_a_moment_none_is_best() -> None:
    swept = sweep(ALERT, (axis(FOR, 0, 600, 41),), SUBJECTS, SETTINGS)
    assert swept.best == ()
    alarms = [point.measures.noise for point in swept.points]
    assert alarms[0] > 20 > alarms[-1] > 0
    assert all(point.measures.lead_seconds is None for point in swept.points)


@pytest.mark.parametrize(
    ("name", "first", "last", "count", "told"),
    [
        ("kv_demand", 0.0, 1.0, 3, "no threshold kv_demand"),
        ("kv_usage_full_ratio", 0.5, 1.5, 3, "kv_usage_full_ratio: Expected `float` <= 1.0"),
        (FOR, -1.0, 3.0, 3, "no time to wait"),
        (FOR, 0.0, 3.0, 0, "0 values"),
    ],
)
def test_what_can_not_be_swept_is_said(name: str, first: float, last: float, count: int, told: str) -> None:
    with pytest.raises(SweepError, match=told):
        axis(name, first, last, count)


def test_an_alert_has_to_look_at_what_is_varied() -> None:
    with pytest.raises(SweepError, match="doesn't look at rank_imbalance_ratio"):
        sweep(ALERT, (axis("rank_imbalance_ratio", 1, 2, 2),), SUBJECTS, SETTINGS)
    with pytest.raises(SweepError, match="PromQL"):
        sweep(ALERTS["EngineDown"], (axis(FOR, 0, 60, 2),), SUBJECTS, SETTINGS)
    many = (Axis("kv_demand_ratio", (1.0,) * 200), Axis(FOR, (0.0,) * 200))
    with pytest.raises(SweepError, match="40000 combinations"):
        sweep(ALERT, many, SUBJECTS, SETTINGS)


def test_a_history_without_the_signal_says_so() -> None:
    (outcome,) = backtest(HISTORY, [ALERTS["RanksOutOfBalance"]], SETTINGS).outcomes
    assert outcome.not_said == f"the history has no {IMBALANCE.full_name}"
    (server,) = backtest(HISTORY, [ALERTS["EngineDown"]], SETTINGS).outcomes
    assert server.not_said.startswith("needs a server")
