"""What other thresholds and other waits would have made of an alert: its lead against its noise, point by point.

    swept = sweep(alert, (Axis("kv_usage_full_ratio", (0.8, 0.85, 0.9)), Axis(FOR, (0, 60, 120))), subjects, settings)
    swept.best                       # points that no other beats in both

An alert is looked at by itself, whatever explains it otherwise: what is tuned is the alert.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from alerts.alert import Alert, Expression
from alerts.conditions import Condition, Reading, leaves
from alerts.pack_settings import PackSettings
from alerts.thresholds import NAMES, Thresholds
from analysis.backtest.frames import NEVER_RESTARTED, Ups, rule_of
from analysis.backtest.outcome import NO_MOMENT, WEEK_SECONDS, Labels, Measures, Moment, Rule
from analysis.backtest.subjects import Subject, Subjects
from analysis.firing import episodes
from analysis.firing_spans import Spans, firing_spans, merged_spans
from analysis.frame import Values

FOR, KEEP = "for", "keep_firing_for"
"""Axes that are no thresholds: the waits of the alert, in seconds."""
WAITS = (FOR, KEEP)
MOST_POINTS = 20_000


class SweepError(ValueError):
    """What can't be swept, and what can: one line."""


@dataclass(frozen=True, slots=True)
class Axis:
    """What is varied, and through which values."""

    name: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One setting and what it makes. ``best``: no other has both more lead, or as much, and less noise."""

    at: tuple[float, ...]
    measures: Measures
    shipped: bool = False
    best: bool = False


@dataclass(frozen=True, slots=True)
class Swept:
    """Of one alert. ``points`` are in the order of the axes, the last of which turns fastest."""

    rule: Rule
    axes: tuple[Axis, ...]
    points: tuple[Point, ...]

    @property
    def best(self) -> tuple[Point, ...]:
        """From the least noise to the most lead."""
        found = [point for point in self.points if point.best]
        return tuple(sorted(found, key=lambda point: (point.measures.noise, point.at)))


def axis(name: str, first: float, last: float, count: int) -> Axis:
    """From one value to another in even steps. Raises SweepError: no such name, values that can't be."""
    if name not in NAMES and name not in WAITS:
        raise SweepError(
            f"no threshold {name}: `thrashold alerts explain NAME` names those of an alert; and there are {FOR} and"
            f" {KEEP}"
        )
    if not 1 <= count <= MOST_POINTS:
        raise SweepError(f"{name}: {count} values; from 1 to {MOST_POINTS} can be tried")
    for value in (first, last):
        if name in WAITS:
            if not 0 <= value < np.inf:
                raise SweepError(f"{name}: {value:g} s is no time to wait")
        else:
            thresholds_with(Thresholds(), {name: value})
    return Axis(name, tuple(float(value) for value in np.linspace(first, last, count)))


def thresholds_with(thresholds: Thresholds, values: Mapping[str, float]) -> Thresholds:
    """The same but for these. Raises SweepError: what a threshold can't be."""
    try:
        return msgspec.convert({**msgspec.to_builtins(thresholds), **values}, Thresholds)
    except msgspec.ValidationError as error:
        told, _, where = str(error).partition(" - at `$.")
        raise SweepError(f"{where.rstrip('`')}: {told}") from error


def usual_axes(alert: Alert, settings: PackSettings, subjects: Subjects) -> tuple[Axis, ...]:
    """An alert's thresholds and its ``for``, about 1,000 points together: from half to twice of what each is.

    A threshold of 0 goes up to the most that was seen. Raises SweepError: an alert that only PromQL can say.
    """
    tree = _tree(alert)
    rule = rule_of(alert, settings)
    names = list(dict.fromkeys(leaf.limit for leaf in leaves(tree) if isinstance(leaf.limit, str)))[:2]
    count = {0: 0, 1: 40, 2: 10}[len(names)]
    axes = []
    for name in names:
        value = float(getattr(settings.thresholds, name))
        reading = next(leaf.reading for leaf in leaves(tree) if leaf.limit == name)
        most = 2 * value if value else _most(tree, reading, subjects)
        axes.append(_with(_within(name, value / 2, most, count), value))
    waits = {0: 61, 1: 25, 2: 10}[len(names)]
    return (*axes, _with(axis(FOR, 0.0, max(300.0, 4 * rule.for_seconds), waits), rule.for_seconds))


def sweep(  # noqa: PLR0913 -- what, over what, and how it is judged
    alert: Alert,
    axes: Sequence[Axis],
    subjects: Subjects,
    settings: PackSettings,
    *,
    moment: Moment = NO_MOMENT,
    ups: Ups = NEVER_RESTARTED,
    progress: Callable[[str], None] = lambda _: None,
) -> Swept:
    """Try every combination. ``progress`` is told how far it is.

    Raises SweepError: an alert that only PromQL can say, or that none of the axes touches; too many combinations.
    """
    tree = _tree(alert)
    used = {leaf.limit for leaf in leaves(tree)} | set(WAITS)
    for each in axes:
        if each.name not in used:
            raise SweepError(f"{alert.name} doesn't look at {each.name}")
    count = math.prod(len(each.values) for each in axes)
    if count > MOST_POINTS:
        raise SweepError(f"{count} combinations: {MOST_POINTS} are the most; take fewer values")
    rule = rule_of(alert, settings)
    combinations = list(itertools.product(*(each.values for each in axes)))
    names = [each.name for each in axes]
    frame = subjects.frame
    spans: list[dict[Labels, list[Spans]]] = [{} for _ in combinations]
    asked = list(subjects.of(tree))
    for done, subject in enumerate(asked):
        progress(f"{done} of {len(asked)} subjects")
        cluster = tuple((name, subject.labels[name]) for name in subjects.cluster_labels)
        for place, found in _of_subject(tree, subject, (names, combinations), (rule, settings, ups)):
            # what goes on at the end of the history ends there
            spans[place].setdefault(cluster, []).append(np.minimum(found, frame.end))
    weeks = (frame.end - frame.start) / WEEK_SECONDS
    points = [
        Point(at, _measures(by_cluster.values(), weeks, moment), _shipped(names, at, rule, settings))
        for at, by_cluster in zip(combinations, spans, strict=True)
    ]
    return Swept(rule, tuple(axes), tuple(_marked(points)))


def _of_subject(
    tree: Condition,
    subject: Subject,
    grid: tuple[Sequence[str], Sequence[tuple[float, ...]]],
    asked: tuple[Rule, PackSettings, Ups],
) -> Iterator[tuple[int, Spans]]:
    """Of each combination, by its place, when the alert fires of one subject; only where it does."""
    names, combinations = grid
    rule, settings, ups = asked
    frame = subject.all.frame
    values = _Read(subject)
    lines = [place for place, name in enumerate(names) if name not in WAITS]
    by_lines: dict[tuple[float, ...], list[int]] = {}
    for place, at in enumerate(combinations):
        by_lines.setdefault(tuple(at[line] for line in lines), []).append(place)
    for at, places in by_lines.items():
        changed = {names[line]: value for line, value in zip(lines, at, strict=True)}
        holds = tree.holds(values, replace(settings.thresholds, **changed))
        if not np.any(holds):
            continue
        truth = np.broadcast_to(holds, frame.times.shape)
        waits = [_waits(names, combinations[place], rule) for place in places]
        yield from zip(places, _firing(frame.times, truth, waits, ups), strict=True)


def _waits(names: Sequence[str], at: Sequence[float], rule: Rule) -> tuple[float, float]:
    told = dict(zip(names, at, strict=True))
    return told.get(FOR, rule.for_seconds), told.get(KEEP, rule.keep_firing_seconds)


def _firing(
    times: Values, truth: NDArray[np.bool_], waits: Sequence[tuple[float, float]], ups: Ups
) -> list[Spans]:
    if not ups.restarts:
        return firing_spans(times, truth, waits)
    return [
        np.array(
            [
                (each.fired_at, np.inf if each.ended_at is None else each.ended_at)
                for each in episodes(
                    times,
                    truth,
                    for_seconds=wait,
                    keep_firing_seconds=keep,
                    restarts=ups.restarts,
                    restoring=ups.restoring,
                )
                if each.fired_at is not None
            ]
        ).reshape(-1, 2)
        for wait, keep in waits
    ]


class _Read:
    """A subject whose readings are put together once."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._known: dict[Reading, Values | None] = {}

    def of(self, reading: Reading) -> Values | None:
        """See alerts.conditions.Values."""
        if reading not in self._known:
            self._known[reading] = self._subject.of(reading)
        return self._known[reading]


def _tree(alert: Alert) -> Condition:
    if isinstance(alert.condition, Expression):
        raise SweepError(
            f"{alert.name} is PromQL that only a server evaluates: its thresholds can't be swept"
        )
    return alert.condition


def _most(tree: Condition, reading: Reading, subjects: Subjects) -> float:
    """The largest value that is known of any subject; 1 where none is."""
    seen = [values for subject in subjects.of(tree) if (values := subject.of(reading)) is not None]
    known = [float(np.nanmax(values)) for values in seen if not np.isnan(values).all()]
    return max((value for value in known if value > 0), default=1.0)


def _with(given: Axis, value: float) -> Axis:
    """The same and one value more: what is set now has to be on the curve."""
    if any(np.isclose(value, each) for each in given.values):
        return given
    return Axis(given.name, tuple(sorted((*given.values, value))))


def _within(name: str, first: float, last: float, count: int) -> Axis:
    """From half to twice, as far as a threshold may go."""
    try:
        return axis(name, first, last, count)
    except SweepError:
        return axis(name, first, 1.0, count)


def _measures(clusters: Iterable[Sequence[Spans]], weeks: float, moment: Moment) -> Measures:
    """The same as ``outcome.measured`` says of notices, of which there would be hundreds of thousands here."""
    told = [merged_spans(parts) for parts in clusters]
    spans = np.concatenate(told) if told else np.empty((0, 2))
    belongs = np.zeros(len(spans), dtype=bool)
    lead = None
    if moment.at is not None:
        there = (spans[:, 0] <= moment.at) & (moment.at < spans[:, 1])
        belongs = there | (np.abs(spans[:, 0] - moment.at) <= moment.within_seconds)
        lead = moment.at - float(spans[belongs, 0].min()) if belongs.any() else None
    noise = len(spans) - int(belongs.sum())
    return Measures(len(spans), lead, noise, noise / weeks if weeks else 0.0)


def _shipped(names: Sequence[str], at: Sequence[float], rule: Rule, settings: PackSettings) -> bool:
    waits = {FOR: rule.for_seconds, KEEP: rule.keep_firing_seconds}
    is_now = (waits[name] if name in waits else float(getattr(settings.thresholds, name)) for name in names)
    return all(bool(np.isclose(value, now)) for value, now in zip(at, is_now, strict=True))


def _marked(points: Sequence[Point]) -> Iterator[Point]:
    """Those that no other beats: of one noise the most lead, and more lead than any with less noise.

    Where no moment was given there is no lead, and none is best.
    """
    most = -np.inf
    best: set[int] = set()
    told = [
        (each.measures.noise, -each.measures.lead_seconds, place)
        for place, each in enumerate(points)
        if each.measures.lead_seconds is not None
    ]
    for _, late, place in sorted(told):
        if -late > most:
            most = -late
            best.add(place)
    for place, each in enumerate(points):
        yield replace(each, best=place in best)
