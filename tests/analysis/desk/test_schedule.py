"""When reports of incidents that go on are made, and what of a long one they look at."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from analysis.desk.schedule import NEWS_SECONDS, SELDOMEST_SECONDS, Schedule

HOUR = 3600.0
OPENED = 1_800_000_000.0
SHIPPED = Schedule(HOUR, 6 * HOUR, 300.0)


def reports(schedule: Schedule, first: float, over: float) -> list[float]:
    """When those are made that nobody asks for, in seconds since the opening; the first one as the page comes."""
    made = [first]
    while True:
        due = schedule.due(OPENED, schedule.looked_at(OPENED, OPENED + made[-1])[1], OPENED + made[-1])
        if due > OPENED + over:
            return made
        made.append(due - OPENED)


def test_of_an_alert_that_lasts_three_hours() -> None:
    made = reports(SHIPPED, 120.0, 3 * HOUR)
    assert made == [120.0, 420.0, 840.0, 1680.0, 3360.0, 6720.0, 10_320.0]
    # and the last one, once it is over, has all of it
    assert SHIPPED.looked_at(OPENED, OPENED + 3 * HOUR) == (OPENED - HOUR, OPENED + 3 * HOUR)


def test_one_that_goes_on_for_days_is_told_by_how_it_began_and_then_no_more() -> None:
    made = reports(SHIPPED, 120.0, 72 * HOUR)
    assert made[-2] < 6 * HOUR <= made[-1] <= 7 * HOUR
    assert SHIPPED.looked_at(OPENED, OPENED + 72 * HOUR) == (OPENED - HOUR, OPENED + 6 * HOUR)


def test_one_whose_report_could_not_be_made_is_tried_again_at_the_same_pace() -> None:
    assert SHIPPED.due(OPENED, None, OPENED + 60) == OPENED + 360
    assert SHIPPED.due(OPENED, None, OPENED + 3 * HOUR) == OPENED + 4 * HOUR
    assert SHIPPED.due(OPENED, OPENED + 900, OPENED + 1800) == OPENED + 3600
    # a desk that was restarted knows of no attempt
    assert SHIPPED.due(OPENED, None, None) == OPENED + 300


def test_a_rule_that_fires_later_is_told_of_once_there_is_something_to_tell() -> None:
    """A warning opens it, and the page comes half a minute after the report: that may not stand for five minutes."""
    page = OPENED + 42
    assert SHIPPED.due(OPENED, OPENED + 10, OPENED + 10, (page,)) == page + NEWS_SECONDS
    # one that the report saw the very beginning of is news as well, one that it has looked at for long enough isn't
    assert SHIPPED.due(OPENED, OPENED + 50, OPENED + 50, (page,)) == page + NEWS_SECONDS
    assert SHIPPED.due(OPENED, OPENED + 72, OPENED + 72, (page,)) == OPENED + 372
    # of several the first, and what came since with it
    assert SHIPPED.due(OPENED, OPENED + 10, OPENED + 10, (page, page + 20)) == page + NEWS_SECONDS
    assert SHIPPED.due(OPENED, page + 31, page + 31, (page, page + 20)) == page + 50
    # one that could not be made isn't tried again and again
    assert SHIPPED.due(OPENED, OPENED + 10, OPENED + 80, (page,)) == OPENED + 380
    assert SHIPPED.due(OPENED, OPENED + 6 * HOUR, OPENED + 6 * HOUR, (OPENED + 6 * HOUR,)) == math.inf


@given(
    st.floats(60, 1e5),
    st.floats(HOUR, 48 * HOUR),
    st.floats(10, 86_400),
    st.floats(0, 1e6),
    st.floats(0, 1e6),
)
def test_what_is_due_comes_after_the_last_one_and_within_an_hour_or_the_set_time(
    look_back: float, longest: float, again: float, reported: float, tried: float
) -> None:
    schedule = Schedule(look_back, longest, again)
    due = schedule.due(OPENED, OPENED + reported, OPENED + tried)
    if reported >= longest:
        assert due == math.inf
    else:
        waited = due - OPENED - max(reported, tried)
        assert again - 1e-3 <= waited <= max(again, SELDOMEST_SECONDS) + 1e-3
    start, end = schedule.looked_at(OPENED, OPENED + tried)
    assert start < OPENED <= end <= OPENED + longest
