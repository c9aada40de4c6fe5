"""A backtest and a sweep for people, as lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from analysis.backtest.curve import curve
from analysis.backtest.outcome import (
    OF_THE_RULE,
    WEEK_SECONDS,
    Alarm,
    Backtest,
    Measures,
    Moment,
    Notice,
    Outcome,
    measured,
    notices,
)
from analysis.backtest.sweep import WAITS, Point, Swept
from analysis.wording import columns, count, duration
from exporter.recorder_times import shown

_MOST_EPISODES = 20
COMMON = OF_THE_RULE | {"instance", "job"}
"""Labels that don't tell one alarm of an alert from another."""


def backtest_lines(tested: Backtest, moment: Moment) -> Iterator[str]:
    """What would have been: by alert, episode by episode, and what it comes to."""
    yield (
        f"{tested.source}: {shown(tested.start)} to {shown(tested.end)} ({duration(tested.end - tested.start)}),"
        f" evaluated every {tested.step_seconds:g} s"
    )
    yield from (f"note: {note}" for note in tested.notes)
    yield ""
    told = notices(tested)
    yield from _table(tested, told, moment)
    yield ""
    for outcome in tested.outcomes:
        yield from _episodes(outcome, tested)
    yield from _not_said(tested.outcomes)
    yield from _conclusion(tested, told, moment)


def _table(tested: Backtest, told: Sequence[Notice], moment: Moment) -> Iterator[str]:
    rows = [("alert", "severity", "fired", "only pending", "told", "lead", "noise a week")]
    for outcome in tested.outcomes:
        if outcome.not_said or not outcome.alarms:
            continue
        found = measured([each for each in told if each.rule.name == outcome.rule.name], tested.weeks, moment)
        rows.append(
            (
                outcome.rule.name,
                outcome.rule.severity or "-",
                str(len(outcome.fired)),
                str(outcome.only_pending),
                *(
                    ("-", "-", "-")
                    if outcome.rule.silent
                    else (str(found.notices), lead(found), count(found.noise_per_week))
                ),
            )
        )
    if len(rows) > 1:
        yield from columns(rows)
    quiet = [each.rule.name for each in tested.outcomes if not each.not_said and not each.alarms]
    if quiet:
        yield f"never true: {', '.join(quiet)}"


def _episodes(outcome: Outcome, tested: Backtest) -> Iterator[str]:
    fired = outcome.fired
    if not fired:
        return
    yield outcome.rule.name
    for alarm in fired[:_MOST_EPISODES]:
        yield f"  {episode(alarm, tested)}"
    if len(fired) > _MOST_EPISODES:
        yield f"  and {len(fired) - _MOST_EPISODES} more; --json has them all"


def episode(alarm: Alarm, tested: Backtest) -> str:
    """When, for how long, of what."""
    span = alarm.span(tested.end)
    assert span is not None  # noqa: S101 - the caller took those that fired
    waited = span[0] - alarm.episode.active_at
    lasts = f"for {duration(span[1] - span[0])}" if alarm.episode.ended_at else "until the end of the history"
    subject = " ".join(f"{name}={text}" for name, text in alarm.labels if name not in COMMON)
    pending = f", {duration(waited)} after it began to be pending" if waited else ""
    return f"{shown(span[0])}  {lasts}{pending}  {subject}".rstrip()


def _not_said(outcomes: Iterable[Outcome]) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for each in outcomes:
        if each.not_said:
            by_reason.setdefault(each.not_said, []).append(each.rule.name)
    for reason, names in by_reason.items():
        yield f"not tested ({reason}): {', '.join(names)}"


def _conclusion(tested: Backtest, told: Sequence[Notice], moment: Moment) -> Iterator[str]:
    waking = measured([each for each in told if each.rule.wakes], tested.weeks, moment)
    rest = measured([each for each in told if not each.rule.wakes], tested.weeks, moment)
    if moment.at is not None:
        yield f"{shown(moment.at)}: {_told(waking)} by a page, {_told(rest)} by others"
    yield (
        f"pages: {waking.notices}, of which {waking.noise} noise ({count(waking.noise_per_week)} a week);"
        f" others: {rest.notices}, of which {rest.noise} noise ({count(rest.noise_per_week)} a week)"
    )
    if tested.end - tested.start < WEEK_SECONDS:
        yield f"a week is taken from {duration(tested.end - tested.start)}: so short a history says little of noise"


def _told(found: Measures) -> str:
    if found.lead_seconds is None:
        return "not told"
    return f"told {lead(found)}"


def lead(found: Measures) -> str:
    """In words: how long before its moment, or after it."""
    if found.lead_seconds is None:
        return "-"
    if not found.lead_seconds:
        return "just then"
    side = "before" if found.lead_seconds >= 0 else "after"
    return f"{duration(abs(found.lead_seconds))} {side}"


def sweep_lines(swept: Swept, moment: Moment) -> Iterator[str]:
    """The points that matter, and the curve."""
    grid = " x ".join(f"{len(each.values)} of {each.name}" for each in swept.axes)
    yield f"{swept.rule.name}: {len(swept.points)} settings ({grid})"
    rows = [(*(each.name for each in swept.axes), "told", "lead", "noise a week", "")]
    now = [point for point in swept.points if point.shipped]
    listed = [*swept.best, *(point for point in now if not point.best)]
    if moment.at is None:
        listed = _spread(swept.points)
    rows += [row(point, swept) for point in listed]
    yield from columns(rows)
    if moment.at is None:
        yield "no moment was given (--since), so that there is no lead to weigh noise against"
        return
    if not swept.best:
        yield "no setting tells of that moment"
        return
    yield ""
    yield from curve(swept)


def row(point: Point, swept: Swept) -> tuple[str, ...]:
    """A setting: its values, and what it makes."""
    shown_values = (
        f"{value:g} s" if axis.name in WAITS else f"{value:.4g}"
        for axis, value in zip(swept.axes, point.at, strict=True)
    )
    marks = ", ".join(
        word for word, is_so in (("best", point.best), ("as it is set", point.shipped)) if is_so
    )
    found = point.measures
    return (*shown_values, str(found.notices), lead(found), count(found.noise_per_week), marks)


def _spread(points: Sequence[Point]) -> list[Point]:
    """One for each count of notices, so that a grid of hundreds stays a table."""
    by_count: dict[int, Point] = {}
    for point in points:
        if point.shipped or point.measures.notices not in by_count:
            by_count[point.measures.notices] = point
    found = [by_count[count] for count in sorted(by_count)]
    places = sorted({round(part * (len(found) - 1) / (_MOST_EPISODES - 1)) for part in range(_MOST_EPISODES)})
    return found if len(found) <= _MOST_EPISODES else [found[place] for place in places]
