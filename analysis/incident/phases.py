"""An incident in phases, of a fleet and of each engine, with how sure each boundary is and who says so.

    found = incidents(frame)
    found.fleet[0].begin.at                        # seconds since the epoch

Lines that alerts draw say that there is an incident and where its core is; what was usual before says how far back its
first signs reach, and when all was well again. Nothing beyond a line: nothing happened, whatever else moved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from alerts.thresholds import THRESHOLDS, Thresholds
from analysis.frame import Frame, Values
from analysis.incident.boundaries import first_signs, settled, widened
from analysis.incident.evidence import UNUSUAL_SPREADS, Seen, seen, usual
from analysis.incident.phase import Boundary, Incident, Incidents, Phase, PhaseName
from analysis.incident.spans import Span, merged, spans
from analysis.incident.subject import Subject, engines, fleet
from analysis.incident.unit import duration
from analysis.robust import Scale

CALM_SECONDS = 120.0
"""So long within all lines between two incidents, or they are one."""
LEAST_SECONDS = 30.0
"""A shorter one is none: somebody looked at a screen for longer."""
GUARD_SECONDS = 180.0
"""Before the first line is crossed: what is usual is taken from what lies before, or before half of it."""
USUAL_SECONDS = 900.0
"""How far back what is usual is taken from."""
LEAST_USUAL_SECONDS = 20.0
HOLE_SECONDS = 10.0
"""Without a single value: a hole. A sidecar that is restarted takes less."""
PEAK_SHARE = 0.8
"""Of the worst severity, from which on it is the peak."""
_SMOOTH_SECONDS = 15.0
NO_USUAL = "The history begins amid it: nothing is known of what was usual, nor of how it began."


def incidents(
    frame: Frame, *, actions: Sequence[float] = (), thresholds: Thresholds = THRESHOLDS
) -> Incidents:
    """Find all of a history. ``actions``: instants at which somebody did something; mitigation begins with one."""
    everybody = fleet(frame)
    each = {one.engine: _found(one, thresholds, actions) for one in engines(everybody)}
    return Incidents(
        _found(everybody, thresholds, actions),
        {name: found for name, found in each.items() if found},
        tuple(_notes(frame)),
    )


def holes(frame: Frame) -> tuple[tuple[float, float], ...]:
    """When nothing was recorded at all: (from, until), seconds since the epoch."""
    return tuple(
        (float(frame.times[each.begin]), float(frame.times[each.end - 1]) + frame.step_seconds)
        for each in _dark(frame)
    )


def _dark(frame: Frame) -> tuple[Span, ...]:
    if not len(frame):
        return ()
    dark = np.asarray(np.isnan(frame.values).all(axis=1), dtype=bool)
    return spans(dark, 0, max(2, round(HOLE_SECONDS / frame.step_seconds)))


def _notes(frame: Frame) -> Iterator[str]:
    dark = holes(frame)
    if dark:
        lost = sum(until - since for since, until in dark)
        yield (
            f"{len(dark)} hole{'s' if len(dark) > 1 else ''} in the history, {duration(lost)} together:"
            " nothing is known of that time, and nothing is made up for it."
        )


@dataclass(frozen=True, slots=True)
class _Case:
    """What is known of one incident while it is put together. ``calm``: by measure, what was usual."""

    subject: Subject
    all_seen: tuple[Seen, ...]
    core: Span
    floor: int
    calm: tuple[tuple[Seen, Scale], ...]
    dark: tuple[Span, ...]


def _found(subject: Subject, thresholds: Thresholds, actions: Sequence[float]) -> tuple[Incident, ...]:
    step = subject.frame.step_seconds
    all_seen = seen(subject, thresholds)
    cores = [
        core
        for core in merged((each for one in all_seen for each in one.beyond), round(CALM_SECONDS / step))
        if core.length * step >= LEAST_SECONDS
    ]
    dark, floor, made = _dark(subject.frame), 0, []
    while cores:
        core = cores.pop(0)
        calm = _usual(subject.frame, all_seen, core, floor)
        # what had not calmed down when lines were crossed again is one with it
        while cores and settled(subject.frame, calm, core, cores[0].begin) == cores[0].begin:
            core = Span(core.begin, cores.pop(0).end)
        ceiling = cores[0].begin if cores else len(subject.frame)
        incident, floor = _incident(_Case(subject, all_seen, core, floor, calm, dark), ceiling, actions)
        made.append(incident)
    return tuple(made)


def _usual(frame: Frame, all_seen: Sequence[Seen], core: Span, floor: int) -> tuple[tuple[Seen, Scale], ...]:
    """What each measure was before the core; nothing where too little of it is known."""
    step = frame.step_seconds
    until = core.begin - min(round(GUARD_SECONDS / step), (core.begin - floor) // 2)
    since = max(floor, until - round(USUAL_SECONDS / step))
    least = max(2, round(LEAST_USUAL_SECONDS / step))
    if until - since < least:
        return ()
    calm = Span(since, until)
    return tuple(
        (each, found)
        for each in all_seen
        if np.count_nonzero(each.known[since:until]) >= least and (found := usual(each, calm)) is not None
    )


def _incident(case: _Case, ceiling: int, actions: Sequence[float]) -> tuple[Incident, int]:
    """One, and the place at which it is over."""
    frame, core = case.subject.frame, case.core
    begins_inside = not case.calm
    begin = (
        _at(frame, core.begin, NO_USUAL) if begins_inside else first_signs(frame, case.calm, core, case.floor)
    )
    crossed = _at(frame, core.begin, said_by=_titles(case, core.begin))
    severity = _severity(case)
    worst = core.begin + int(np.argmax(severity)) if len(severity) else core.begin
    peak = _peak(severity, core.begin, worst)
    over = settled(frame, case.calm, core, ceiling)
    goes_on = over is None
    end = len(frame) if over is None else over
    marks = _marks(case, begin, crossed, peak, actions, end)
    marks = [(name, widened(frame, mark, case.dark)) for name, mark in marks]
    last = None if goes_on else widened(frame, _at(frame, min(end, len(frame) - 1)), case.dark)
    phases = tuple(_phases(frame, marks, last, case.floor, begins_inside=begins_inside))
    notes = tuple(_costs(phases, goes_on=goes_on, begins_inside=begins_inside))
    titles = tuple(
        each.measure.title
        for each in sorted(case.all_seen, key=lambda each: _first_in(each, core))
        if any(_meets(span, core) for span in each.beyond)
    )
    return (
        Incident(
            case.subject.engine, phases, goes_on, begins_inside, float(frame.times[worst]), titles, notes
        ),
        end,
    )


def _severity(case: _Case) -> Values:
    """How bad each instant of the core is, from 0 to 1: the mean of measures, each as a share of its own worst.

    Shape (length of the core,). Only measures beyond their line or away from what was usual take part, users' waits
    with twice the weight; what isn't known at an instant takes no part in it.
    """
    core = case.core
    middles = {each.measure.title: calm for each, calm in case.calm}
    total = np.zeros(core.length)
    weights = np.zeros(core.length)
    for each in case.all_seen:
        calm = middles.get(each.measure.title)
        if not each.measure.worse or (calm is None and not any(_meets(span, core) for span in each.beyond)):
            continue
        rise = (each.values[core.begin : core.end] - (calm.middle if calm else 0.0)) * each.measure.worse
        known = ~np.isnan(rise)
        most = float(rise[known].max()) if known.any() else 0.0
        if most <= UNUSUAL_SPREADS * (calm.spread if calm else 0.0) or most <= 0:
            continue
        share = np.clip(np.where(known, rise, 0.0) / most, 0.0, 1.0)
        total += each.measure.weight * share
        weights += each.measure.weight * known
    severity = np.divide(total, weights, out=np.zeros(core.length), where=weights > 0)
    places = max(1, round(_SMOOTH_SECONDS / case.subject.frame.step_seconds))
    return np.convolve(severity, np.ones(places) / places, mode="same") if core.length >= places else severity


def _peak(severity: Values, offset: int, worst: int) -> Span:
    """Around the worst instant, what is nearly as bad; dips of less than a tenth of its length are no end."""
    if not len(severity):
        return Span(worst, worst + 1)
    bad = severity >= PEAK_SHARE * severity.max()
    around = [each for each in spans(bad, max(1, len(bad) // 10)) if worst - offset in each]
    found = around[0] if around else Span(worst - offset, worst - offset + 1)
    return Span(found.begin + offset, found.end + offset)


def _marks(  # noqa: PLR0913, PLR0917 -- the boundaries as they were found, one each
    case: _Case, begin: Boundary, crossed: Boundary, peak: Span, actions: Sequence[float], end: int
) -> list[tuple[PhaseName, Boundary]]:
    """Where each phase begins, in order."""
    frame, core = case.subject.frame, case.core
    last = min(core.end, len(frame) - 1)
    peak_begin, peak_end = float(frame.times[peak.begin]), float(frame.times[min(peak.end, last)])
    done = [at for at in actions if peak_begin < at <= float(frame.times[last])]
    if done:
        mitigation = Boundary(
            min(done), min(done) - frame.step_seconds, min(done), (), "the first thing that was done about it"
        )
    else:
        mitigation = Boundary(peak_end, peak_end - _SMOOTH_SECONDS, peak_end + _SMOOTH_SECONDS)
    peaks = Boundary(
        peak_begin, peak_begin - _SMOOTH_SECONDS, peak_begin + _SMOOTH_SECONDS, _titles(case, peak.begin)
    )
    marks = [
        (PhaseName.ONSET, begin),
        (PhaseName.ESCALATION, crossed),
        (PhaseName.PEAK, peaks),
        (PhaseName.MITIGATION, mitigation),
    ]
    if core.end < min(end, len(frame)):
        marks.append((PhaseName.RECOVERY, _late(frame, case, core.end)))
    # what begins later than what follows it has no length
    ordered: list[tuple[PhaseName, Boundary]] = []
    for name, mark in marks:
        floor = ordered[-1][1].at if ordered else mark.at
        ordered.append((name, replace(mark, at=max(mark.at, floor), latest=max(mark.latest, floor))))
    return ordered


def _late(frame: Frame, case: _Case, place: int) -> Boundary:
    """When the last line was left: measures over a window say so when it is over for up to as long."""
    said = [each for each in case.all_seen if any(abs(span.end - place) <= 1 for span in each.beyond)]
    window = min((each.measure.window_seconds for each in said), default=0.0)
    at = float(frame.times[place])
    return Boundary(at, at - window, at, tuple(each.measure.title for each in said))


def _phases(
    frame: Frame,
    marks: Sequence[tuple[PhaseName, Boundary]],
    last: Boundary | None,
    floor: int,
    *,
    begins_inside: bool,
) -> Iterator[Phase]:
    if not begins_inside:
        start = float(frame.times[floor])
        yield Phase(PhaseName.BASELINE, Boundary(start, start, start, (), "the history begins"), marks[0][1])
    for (name, begin), following in zip(marks, [*(mark for _, mark in marks[1:]), last], strict=True):
        if following is None or following.at > begin.at:
            yield Phase(name, begin, following)


def _costs(phases: Sequence[Phase], *, goes_on: bool, begins_inside: bool) -> Iterator[str]:
    if begins_inside:
        yield NO_USUAL
    if goes_on:
        yield "It goes on where the history ends: its peak may be yet to come, and nothing is said of afterwards."
    for phase in phases:
        if phase.begin.note.startswith("a hole"):
            yield (
                f"A hole in the history lies across the beginning of {phase.name}: it is known to within"
                f" {duration(phase.begin.uncertainty_seconds)} only."
            )


def _at(frame: Frame, place: int, note: str = "", said_by: tuple[str, ...] = ()) -> Boundary:
    at = float(frame.times[min(place, len(frame) - 1)])
    return Boundary(at, at - frame.step_seconds, at, said_by, note)


def _titles(case: _Case, place: int) -> tuple[str, ...]:
    """Measures that are beyond a line about that place."""
    near = max(1, round(10.0 / case.subject.frame.step_seconds))
    return tuple(
        each.measure.title
        for each in case.all_seen
        if any(span.begin - near <= place < span.end for span in each.beyond)
    )


def _meets(span: Span, other: Span) -> bool:
    return span.begin < other.end and other.begin < span.end


def _first_in(each: Seen, core: Span) -> int:
    return min((span.begin for span in each.beyond if _meets(span, core)), default=core.end)
