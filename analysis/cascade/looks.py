"""Ways to look for a link: conditions of alerts over arrays, and what a tree of comparisons can't say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from alerts.alert import Alert, Expression
from alerts.conditions import Compare, Condition, Reading, leaves
from alerts.thresholds import THRESHOLDS
from analysis.cascade.stretches import Truth
from analysis.cascade.subject import Subject, Where
from analysis.cascade.template import Look, Sign, Start
from analysis.frame import Values
from exporter.signal import Signal


def holding(condition: Condition, show: Compare | None = None) -> Look:
    """An alert's condition. ``show``: the comparison whose number tells most; None: its first one."""
    shown = show or leaves(condition)[0]

    def look(subject: Subject) -> Sign | None:
        values = subject.of(shown.reading)
        if values is None:
            return None
        held = np.broadcast_to(np.asarray(condition.holds(subject, THRESHOLDS), dtype=bool), values.shape)
        return Sign(
            held,
            ~np.isnan(values) | held,
            values,
            shown.reading.signal,
            shown.bound(THRESHOLDS),
            falls=shown.operator in {"<", "<="},
        )

    return look


def alerted(alert: Alert, show: Compare | None = None) -> Look:
    """What an alert fires on. Raises TypeError: it is PromQL text, which arrays can't say."""
    if isinstance(alert.condition, Expression):
        raise TypeError(f"{alert.name} is an expression: it has no face for arrays")
    return holding(alert.condition, show)


def compared(signal: Signal, operator: str, limit: str | float, where: Where = ()) -> Look:
    """One number beside a threshold."""
    return holding(Compare(Reading(signal, where), operator, limit))


def rising(signal: Signal, where: Where = (), *, seconds: float = 60.0, above: float = 0.0) -> Look:
    """A counter that rose by more than ``above`` within the trailing time."""

    def look(subject: Subject) -> Sign | None:
        values = subject.risen(signal, where, seconds)
        if values is None:
            return None
        return Sign(values > above, np.ones(len(values), dtype=bool), values, signal, above)

    return look


def computed(  # noqa: PLR0913 -- a number, how it is judged and how it is told
    signal: Signal,
    numbers: Callable[[Subject], Values | None],
    holds: Callable[[Values], Truth],
    limit: float | None = None,
    *,
    falls: bool = False,
    name: str = "",
) -> Look:
    """A number that is made of a signal and others. ``name``: what it is called, with its unit, as signals are."""

    def look(subject: Subject) -> Sign | None:
        values = numbers(subject)
        if values is None:
            return None
        with np.errstate(invalid="ignore"):
            held = holds(values)
        return Sign(held, ~np.isnan(values), values, signal, limit, falls, name)

    return look


def both(one: Look, other: Look) -> Look:
    """Two looks at once; the first one's number is told. Unknown where either is."""

    def look(subject: Subject) -> Sign | None:
        first, second = one(subject), other(subject)
        if first is None or second is None:
            return None
        return replace(first, held=first.held & second.held, known=first.known & second.known)

    return look


def either(one: Look, other: Look) -> Look:
    """One of two looks, or both; the number of the first that was watched is told."""

    def look(subject: Subject) -> Sign | None:
        first, second = one(subject), other(subject)
        if first is None or second is None:
            return first or second
        shown = first if first.held.any() or not second.held.any() else second
        return replace(shown, held=first.held | second.held, known=first.known | second.known)

    return look


def without(look: Look, excuse: Look) -> Look:
    """A look where another one doesn't hold; what isn't watched of the other is no excuse."""

    def looked(subject: Subject) -> Sign | None:
        found, excused = look(subject), excuse(subject)
        if found is None or excused is None:
            return found
        return replace(found, held=found.held & ~excused.held)

    return looked


def unbroken(look: Look, seconds: float) -> Look:
    """What held for so long at a stretch, from its beginning on."""

    def looked(subject: Subject) -> Sign | None:
        found = look(subject)
        if found is None:
            return None
        edges = np.flatnonzero(np.diff(np.concatenate(([False], found.held, [False]))))
        held = np.zeros(len(found.held), dtype=bool)
        for begin, end in edges.reshape(-1, 2):
            held[begin:end] = (end - begin) * subject.frame.step_seconds >= seconds
        return replace(found, held=held)

    return looked


def level(
    signal: Signal, way: int = 0, where: Where = (), *, counted: bool = False, is_mean: bool = False
) -> Start:
    """The sum of a signal's series bends where it begins. ``way``, ``counted``, ``is_mean``: as of a ``Start``."""
    return Start(lambda subject: subject.total(signal, where), signal, way, counted, is_mean)


def trailing_share(part: Values, whole: Values) -> Values:
    """One over the other, NaN where there is nothing of the whole."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 0, part / whole, np.nan)
