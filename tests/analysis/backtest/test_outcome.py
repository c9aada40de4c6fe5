"""What people would have got, and what it is worth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from analysis.backtest.outcome import (
    Alarm,
    Backtest,
    Moment,
    Outcome,
    Rule,
    measured,
    merged,
    notices,
    without,
)
from analysis.firing import Episode

HOUR = 3600.0


def alarm(start: float, end: float | None, **labels: str) -> Alarm:
    return Alarm(tuple(labels.items()), Episode(start, start, end))


def outcome(name: str, *alarms: Alarm, wakes: bool = True, **more: tuple[str, ...]) -> Outcome:
    return Outcome(Rule(name, "page" if wakes else "warning", wakes, False, 0.0, 0.0, **more), alarms)


def over_a_week(*outcomes: Outcome) -> Backtest:
    return Backtest("s", 0.0, 7 * 86_400.0, 15.0, outcomes, ("cluster",))


def test_a_fleet_is_one_notice_while_any_of_it_fires() -> None:
    told = notices(
        over_a_week(
            outcome(
                "A",
                alarm(0, 100, cluster="east", engine="a"),
                alarm(50, 200, cluster="east", engine="b"),
                alarm(200, 210, cluster="east", engine="a"),
                alarm(60, None, cluster="west", engine="a"),
                Alarm((("cluster", "east"),), Episode(300.0, None, 310.0)),
            )
        )
    )
    assert [(each.at, each.until, dict(each.cluster)["cluster"]) for each in told] == [
        (0, 210, "east"),
        (60, 7 * 86_400.0, "west"),
    ]


def test_what_explains_it_has_to_be_of_the_same_subject_or_of_the_same_cluster() -> None:
    explained = outcome(
        "Explained",
        alarm(10, 100, cluster="east", engine="a"),
        alarm(10, 100, cluster="east", engine="b"),
        alarm(10, 100, cluster="west", engine="a"),
        quiet_under=("Why",),
        consequence_of=("Fleet",),
    )
    why = outcome("Why", alarm(0, 60, cluster="east", engine="a"))
    fleet = outcome("Fleet", alarm(0, 100, cluster="west"))
    told = [each for each in notices(over_a_week(explained, why, fleet)) if each.rule.name == "Explained"]
    assert [(dict(each.cluster)["cluster"], each.at) for each in told] == [("east", 10)]
    only_a = outcome("Explained", explained.alarms[0], quiet_under=("Why",))
    assert [each.at for each in notices(over_a_week(only_a, why)) if each.rule is only_a.rule] == [60]


def test_labels_that_a_rule_sets_itself_are_no_subject() -> None:
    # a server's results bear them, and they differ between any two alerts
    explained = outcome(
        "Explained",
        alarm(10, 100, engine="a", severity="warning", cause="queue"),
        wakes=False,
        quiet_under=("Why",),
    )
    why = outcome("Why", alarm(0, 100, engine="a", severity="page", cause="swap"))
    assert [each.rule.name for each in notices(over_a_week(explained, why))] == ["Why"]


def test_lead_is_by_the_first_that_belongs_to_the_moment_and_the_rest_is_noise() -> None:
    told = notices(
        over_a_week(
            outcome(
                "A",
                alarm(10 * HOUR, 11 * HOUR),
                alarm(49.5 * HOUR, 49.6 * HOUR),
                alarm(49.9 * HOUR, 52 * HOUR),
                alarm(50.5 * HOUR, 51 * HOUR),
                alarm(90 * HOUR, 91 * HOUR),
            )
        )
    )
    found = measured(told, 1.0, Moment(50 * HOUR))
    assert (found.notices, found.noise, found.noise_per_week) == (4, 2, 2.0)
    assert found.lead_seconds == pytest.approx(HOUR / 2)
    early = measured(told, 1.0, Moment(10.9 * HOUR, within_seconds=60))
    assert (early.lead_seconds, early.noise) == (pytest.approx(0.9 * HOUR), 3)
    assert measured(told, 1.0, Moment(70 * HOUR)).lead_seconds is None
    assert measured(told, 2.0, Moment()).noise_per_week == 2.0


@given(
    span=some.tuples(some.integers(0, 20), some.integers(1, 20)),
    others=some.lists(some.tuples(some.integers(0, 40), some.integers(1, 9)), max_size=6),
)
def test_what_is_left_of_a_span_is_what_no_other_covers(
    span: tuple[int, int], others: list[tuple[int, int]]
) -> None:
    begin, end = span[0], span[0] + span[1]
    spans = [(first, first + length) for first, length in others]
    left = list(without((begin, end), spans))
    covered = {second for first, last in spans for second in range(first, last)}
    assert {second for first, last in left for second in range(int(first), int(last))} == (
        set(range(begin, end)) - covered
    )
    assert merged(left) == left
