"""A backtest and a sweep for programs."""

from __future__ import annotations

from typing import Any

from analysis.backtest.outcome import Alarm, Backtest, Measures, Moment, Notice, measured, notices
from analysis.backtest.sweep import Point, Swept


def backtest_json(tested: Backtest, moment: Moment) -> dict[str, Any]:
    """Times in seconds since the epoch; None: not known, or not there."""
    told = notices(tested)
    return {
        "source": tested.source,
        "start": tested.start,
        "end": tested.end,
        "step_seconds": tested.step_seconds,
        "since": moment.at,
        "notes": list(tested.notes),
        "pages": _measures(measured([each for each in told if each.rule.wakes], tested.weeks, moment)),
        "others": _measures(measured([each for each in told if not each.rule.wakes], tested.weeks, moment)),
        "alerts": [
            {
                "name": outcome.rule.name,
                "severity": outcome.rule.severity,
                "wakes": outcome.rule.wakes,
                "for_seconds": outcome.rule.for_seconds,
                "keep_firing_seconds": outcome.rule.keep_firing_seconds,
                "tested": not outcome.not_said,
                "not_tested_because": outcome.not_said or None,
                "subjects": outcome.subjects,
                "episodes": [_alarm(alarm) for alarm in outcome.alarms],
                **_measures(
                    measured(
                        [each for each in told if each.rule.name == outcome.rule.name], tested.weeks, moment
                    )
                ),
            }
            for outcome in tested.outcomes
        ],
        "notices": [_notice(each) for each in told],
    }


def sweep_json(swept: Swept) -> dict[str, Any]:
    """All points, in the order of the axes."""
    return {
        "alert": swept.rule.name,
        "axes": [{"name": each.name, "values": list(each.values)} for each in swept.axes],
        "points": [_point(point) for point in swept.points],
    }


def _alarm(alarm: Alarm) -> dict[str, Any]:
    return {
        "labels": dict(alarm.labels),
        "active_at": alarm.episode.active_at,
        "fired_at": alarm.episode.fired_at,
        "ended_at": alarm.episode.ended_at,
    }


def _notice(notice: Notice) -> dict[str, Any]:
    return {
        "alert": notice.rule.name,
        "cluster": {name: text for name, text in notice.cluster if text},
        "wakes": notice.rule.wakes,
        "at": notice.at,
        "until": notice.until,
    }


def _measures(found: Measures) -> dict[str, Any]:
    return {
        "told": found.notices,
        "lead_seconds": found.lead_seconds,
        "noise": found.noise,
        "noise_per_week": found.noise_per_week,
    }


def _point(point: Point) -> dict[str, Any]:
    return {"at": list(point.at), "best": point.best, "as_set": point.shipped, **_measures(point.measures)}
