"""What happened when: levels and lines, alerts that would have fired, what was done, and what people noted."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from alerts.alert import Severity
from alerts.thresholds import THRESHOLDS, Thresholds
from analysis.changepoint import change_points
from analysis.incident.actions import Action
from analysis.incident.annotations import Annotation
from analysis.incident.evidence import Seen, seen
from analysis.incident.measures import (
    FIRST_P99,
    PACE_P99,
    PCIE_BYTES,
    SESSIONS,
    SWAPPED_SEQUENCES,
    TOKENS,
    USAGE,
    WAITING,
    Measure,
)
from analysis.incident.phase import Incident
from analysis.incident.phases import holes
from analysis.incident.subject import Subject
from analysis.incident.unit import Unit, duration
from exporter.signal import Confidence

NEAR_SECONDS = 600.0
"""What is told of the time around an incident."""


LEAST_STRENGTH = 3.0
"""Of a change point, in what it has to be worth to be one: what is told of is clear without a ruler."""
CHANGING = (SESSIONS, USAGE, WAITING, SWAPPED_SEQUENCES, PACE_P99, FIRST_P99, TOKENS, PCIE_BYTES)
"""Measures whose change points tell a story."""


class Kind(enum.StrEnum):
    """What an entry is."""

    PHASE = "phase"
    CHANGE = "change"
    LINE = "line crossed"
    OVER = "back within the line"
    ALERT = "alert"
    ACTION = "done"
    NOTE = "note"
    HOLE = "hole"


@dataclass(frozen=True, slots=True)
class Fired:
    """An alert as a Prometheus would have had it. ``ended_at`` None: it goes on. ``silenced``: another explains it."""

    name: str
    severity: Severity
    at: float
    ended_at: float | None
    subject: str
    silenced: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """``at``: seconds since the epoch. ``confidence`` None: a person's word, or plain fact."""

    at: float
    kind: Kind
    where: str
    words: str
    confidence: Confidence | None = None


def timeline(  # noqa: PLR0913 -- one each of what it is merged from
    subject: Subject,
    incident: Incident,
    *,
    fired: Sequence[Fired] = (),
    actions: Sequence[Action] = (),
    annotations: Sequence[Annotation] = (),
    thresholds: Thresholds = THRESHOLDS,
) -> tuple[Entry, ...]:
    """Of one incident and of ten minutes around it, in order."""
    end = incident.end.at if incident.end is not None else subject.frame.end
    since, until = incident.begin.at - NEAR_SECONDS, end + NEAR_SECONDS
    entries = [
        *_phases(incident),
        *(each for one in seen(subject, thresholds) for each in _lines(subject, one, thresholds)),
        *(each for measure in CHANGING for each in _changes(subject, measure, since, until)),
        *_alerts(fired),
        *(Entry(each.at, Kind.ACTION, each.where, each.words, each.confidence) for each in actions),
        *_noted(annotations),
        *_holes(subject),
    ]
    inside = (each for each in entries if since <= each.at <= until)
    order = list(Kind)
    return tuple(sorted(inside, key=lambda each: (each.at, order.index(each.kind), each.where, each.words)))


def minutes(entries: Iterable[Entry]) -> Iterator[tuple[float, tuple[Entry, ...]]]:
    """By minute: its beginning, and what is of it."""
    by_minute: dict[float, list[Entry]] = {}
    for each in entries:
        by_minute.setdefault(each.at // 60 * 60, []).append(each)
    for minute in sorted(by_minute):
        yield minute, tuple(by_minute[minute])


def _phases(incident: Incident) -> Iterator[Entry]:
    for phase in incident.phases[0 if incident.begins_inside else 1 :]:
        said = phase.begin.said_by[:4]
        by = f" ({', '.join(said)})" if said else f" ({phase.begin.note})" if phase.begin.note else ""
        yield Entry(phase.begin.at, Kind.PHASE, "", f"{phase.name}: {phase.name.meaning}{by}")
    if incident.end is not None:
        yield Entry(incident.end.at, Kind.PHASE, "", "over")


def _lines(subject: Subject, each: Seen, thresholds: Thresholds) -> Iterator[Entry]:
    """Each time that a line was crossed, with the worst that came of it."""
    measure, times = each.measure, subject.frame.times
    line = measure.limit(thresholds)
    if line is None:
        return
    for span in each.beyond:
        beyond = each.values[span.begin : span.end]
        beyond_words = "under" if measure.worse < 0 else "over"
        worst = float(np.nanmin(beyond) if measure.worse < 0 else np.nanmax(beyond))
        if measure.unit is Unit.FLAG:
            words = measure.title
        else:
            words = f"{measure.title} {beyond_words} {measure.unit.words(line)}; at worst {measure.unit.words(worst)}"
        yield Entry(float(times[span.begin]), Kind.LINE, subject.engine, words, measure.signal.confidence)
        if span.end < len(times):
            lasted = duration(span.length * subject.frame.step_seconds)
            yield Entry(
                float(times[span.end]),
                Kind.OVER,
                subject.engine,
                f"{measure.title}, after {lasted}",
                measure.signal.confidence,
            )


def _changes(subject: Subject, measure: Measure, since: float, until: float) -> Iterator[Entry]:
    """Where a measure went to another level, of the time that is told of."""
    part = subject.frame.between(since, until)
    inside = np.searchsorted(subject.frame.times, (since, until))
    values = measure.read(subject)[inside[0] : inside[1]]
    for change in change_points(values, part.times):
        if change.strength >= LEAST_STRENGTH and change.time is not None:
            yield Entry(
                change.time,
                Kind.CHANGE,
                subject.engine,
                f"{measure.title} from {measure.unit.words(change.before)} to {measure.unit.words(change.after)}",
                measure.signal.confidence,
            )


def _alerts(fired: Iterable[Fired]) -> Iterator[Entry]:
    for each in fired:
        quiet = ", explained by another" if each.silenced else ""
        lasted = f" for {duration(each.ended_at - each.at)}" if each.ended_at is not None else ", and goes on"
        yield Entry(each.at, Kind.ALERT, each.subject, f"{each.name} ({each.severity}{quiet}){lasted}")


def _noted(annotations: Iterable[Annotation]) -> Iterator[Entry]:
    for each in annotations:
        yield Entry(each.at, Kind.ACTION if each.is_action else Kind.NOTE, each.where, each.text)


def _holes(subject: Subject) -> Iterator[Entry]:
    for since, until in holes(subject.frame):
        yield Entry(since, Kind.HOLE, "", f"nothing was recorded for {duration(until - since)}")
