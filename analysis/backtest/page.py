"""A backtest and a sweep as a page in one file: episodes on the charts of the signals that they come from."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from alerts.alert import Expression
from alerts.catalogue import ALERTS
from alerts.conditions import Compare, Condition, leaves
from alerts.pack_settings import PackSettings
from analysis.backtest.curve_svg import curve_svg
from analysis.backtest.frames import subjects_of
from analysis.backtest.outcome import Alarm, Backtest, Moment, Outcome, measured, notices
from analysis.backtest.subjects import Subject, Subjects, series_name
from analysis.backtest.sweep import Swept
from analysis.backtest.text import COMMON, lead, row
from analysis.frame import Frame
from analysis.history.history import History
from analysis.page.chart import Chart, Interval, IntervalKind, Marker, Series, Threshold
from analysis.page.charts import charts_html
from analysis.page.document import Block, document, heading, listing, note, paragraph, table
from analysis.wording import count, duration
from exporter.catalogue import SIGNALS
from exporter.recorder_times import shown

_MOST_LINES = 8
"""Subjects on a chart; those of which the alert fired come first."""
_MOST_EPISODES = 200


def backtest_page(tested: Backtest, history: History | None, moment: Moment, settings: PackSettings) -> str:
    """The whole page, HTML. Without a history there are episodes alone, as of a server's rules."""
    told = notices(tested)
    waking = measured([each for each in told if each.rule.wakes], tested.weeks, moment)
    rest = measured([each for each in told if not each.rule.wakes], tested.weeks, moment)
    blocks = [
        paragraph(
            f"Pages: {waking.notices}, of which {waking.noise} noise ({count(waking.noise_per_week)} a week). Others:"
            f" {rest.notices}, of which {rest.noise} noise ({count(rest.noise_per_week)} a week)."
        )
    ]
    if moment.at is not None:
        blocks.append(
            paragraph(f"{shown(moment.at)}: told by a page {lead(waking)}, by others {lead(rest)}.")
        )
    blocks += [note(each) for each in tested.notes]
    blocks += [heading("Alerts"), _alerts(tested, moment)]
    charts = list(_charts(tested, history, moment, settings))
    if charts:
        blocks += [heading("Episodes on their signals"), charts_html(charts, name="episodes")]
    blocks += [heading("All that fired"), _episodes(tested)]
    untold = [f"{each.rule.name}: {each.not_said}" for each in tested.outcomes if each.not_said]
    if untold:
        blocks += [heading("Not tested"), listing(untold)]
    return document("Would it have paged?", blocks, _under(tested))


def sweep_page(swept: Sequence[Swept], history: History, moment: Moment) -> str:
    """The whole page, HTML: a curve and the best settings of each alert."""
    blocks: list[Block] = []
    for each in swept:
        blocks += [heading(each.rule.name), curve_svg(each)]
        listed = list(each.best) + [point for point in each.points if point.shipped and not point.best]
        blocks.append(
            table(
                (*(axis.name for axis in each.axes), "told", "lead", "noise a week", ""),
                [row(point, each) for point in listed],
                "What no other setting beats, and what is set now",
            )
        )
    frame = history.frame
    under = [f"{history.source}, {shown(frame.start)} to {shown(frame.end)}"]
    under += [f"lead over {shown(moment.at)}"] if moment.at is not None else []
    return document("Lead against noise", blocks, under)


def _under(tested: Backtest) -> tuple[str, ...]:
    return (
        f"{tested.source}, {shown(tested.start)} to {shown(tested.end)} ({duration(tested.end - tested.start)})",
        f"evaluated every {tested.step_seconds:g} s",
    )


def _alerts(tested: Backtest, moment: Moment) -> Block:
    told = notices(tested)
    rows = []
    for outcome in tested.outcomes:
        if outcome.alarms:
            found = measured(
                [each for each in told if each.rule.name == outcome.rule.name], tested.weeks, moment
            )
            rows.append(
                (
                    outcome.rule.name,
                    outcome.rule.severity,
                    len(outcome.fired),
                    outcome.only_pending,
                    found.notices,
                    lead(found),
                    count(found.noise_per_week),
                )
            )
    head = ("alert", "severity", "fired", "only pending", "told", "lead", "noise a week")
    quiet = [each.rule.name for each in tested.outcomes if not each.not_said and not each.alarms]
    return table(head, rows, f"Never true: {', '.join(quiet)}." if quiet else "", (2, 3, 4, 6))


def _episodes(tested: Backtest) -> Block:
    every = [(outcome, alarm) for outcome in tested.outcomes for alarm in outcome.fired]
    every.sort(key=lambda each: each[1].episode.fired_at or 0.0)
    rows = []
    for outcome, alarm in every[:_MOST_EPISODES]:
        begin, end = alarm.span(tested.end) or (0.0, 0.0)
        until = duration(end - begin) + ("" if alarm.episode.ended_at else ", and on")
        rows.append((shown(begin), until, outcome.rule.name, _subject(alarm)))
    left = len(every) - len(rows)
    return table(("fired", "for", "alert", "of"), rows, f"{left} more aren't listed." if left else "")


def _charts(
    tested: Backtest, history: History | None, moment: Moment, settings: PackSettings
) -> Iterator[Chart]:
    """Of each alert that was ever pending: each number that it compares, with its line."""
    subjects = None if history is None else subjects_of(history, settings)
    markers = () if moment.at is None else (Marker(moment.at, "since"),)
    for outcome in tested.outcomes:
        if not outcome.alarms:
            continue
        shaded = _shaded(outcome, tested.end)
        alert = ALERTS.get(outcome.rule.name)
        if subjects is not None and alert is not None and not isinstance(alert.condition, Expression):
            yield from _of_condition(outcome, alert.condition, subjects, settings, (shaded, markers))
        elif subjects is not None and subjects.names & set(outcome.rule.signals):
            yield from _of_series(outcome, subjects.frame, (shaded, markers))
        else:
            yield Chart(outcome.rule.name, "", (), intervals=shaded, markers=markers)


def _of_series(
    outcome: Outcome, frame: Frame, over: tuple[tuple[Interval, ...], tuple[Marker, ...]]
) -> Iterator[Chart]:
    """Of a rule in PromQL: the series that it reads, as they are."""
    for name in outcome.rule.signals:
        there = frame.select(name)
        lines = tuple(
            Series(str(key).removeprefix(name) or name, frame.times, values)
            for key, values in itertools.islice(there.columns(), _MOST_LINES)
        )
        if lines:
            left = len(there.keys) - len(lines)
            more = f"{left} more series aren't drawn." if left else ""
            title = f"{outcome.rule.name}: {name}"
            yield Chart(title, "", lines, intervals=over[0], markers=over[1], note=more)


def _of_condition(
    outcome: Outcome,
    condition: Condition,
    subjects: Subjects,
    settings: PackSettings,
    over: tuple[tuple[Interval, ...], tuple[Marker, ...]],
) -> Iterator[Chart]:
    firing = {alarm.labels for alarm in outcome.alarms}
    asked = sorted(subjects.of(condition), key=lambda subject: _labels(subject) not in firing)
    for leaf in dict.fromkeys(leaves(condition)):
        lines = []
        for subject in asked[:_MOST_LINES]:
            values = subject.of(leaf.reading)
            if values is not None:
                lines.append(Series(_words(subject), subjects.frame.times, values))
        if lines:
            bound = leaf.bound(settings.thresholds)
            named = leaf.limit if isinstance(leaf.limit, str) else f"{bound:g}"
            yield Chart(
                f"{outcome.rule.name}: {_title(leaf)}",
                _unit(leaf),
                tuple(lines),
                thresholds=(Threshold(bound, f"{leaf.operator} {named}"),),
                intervals=over[0],
                markers=over[1],
                note=_more(asked),
            )


def _title(leaf: Compare) -> str:
    which = ", ".join(f"{label} {text}" for label, text in leaf.reading.where)
    name = series_name(leaf.reading)
    return f"{name} ({which})" if which else name


def _unit(leaf: Compare) -> str:
    """What a signal's name ends in, where that is a unit."""
    name = leaf.reading.signal.name
    assert leaf.reading.signal in SIGNALS  # noqa: S101 - conditions compare signals of the catalogue
    return next((unit for unit in ("ratio", "seconds", "bytes", "per_second") if name.endswith(unit)), "")


def _more(asked: Sequence[Subject]) -> str:
    left = len(asked) - _MOST_LINES
    return f"{left} more subjects aren't drawn." if left > 0 else ""


def _shaded(outcome: Outcome, end: float) -> tuple[Interval, ...]:
    found = []
    for alarm in outcome.alarms:
        over = end if alarm.episode.ended_at is None else alarm.episode.ended_at
        fired = alarm.episode.fired_at
        label = f"{outcome.rule.name} {_subject(alarm)}".rstrip()
        until = over if fired is None else fired
        if until > alarm.episode.active_at:
            found.append(Interval(alarm.episode.active_at, until, label, IntervalKind.PENDING))
        if fired is not None:
            found.append(Interval(fired, over, label, IntervalKind.FIRING))
    return tuple(found)


def _labels(subject: Subject) -> tuple[tuple[str, str], ...]:
    return tuple((name, text) for name, text in subject.labels.items() if text)


def _words(subject: Subject) -> str:
    return " ".join(text for _, text in _labels(subject)) or "all"


def _subject(alarm: Alarm) -> str:
    return " ".join(text for name, text in alarm.labels if name not in COMMON)
