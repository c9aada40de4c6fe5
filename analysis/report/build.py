"""From a history to a report: incidents, their causes and figures, what would have paged, and what doesn't fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from analysis.cascade.ranking import Answer, Ranking, causes
from analysis.cascade.template import Evidence, Verdict
from analysis.consistency import consistency
from analysis.history.history import History
from analysis.incident.actions import Action, actions
from analysis.incident.annotations import Annotation
from analysis.incident.key_metrics import Cell, Row, key_metrics
from analysis.incident.phase import Boundary, Incident, Phase, PhaseName
from analysis.incident.phases import incidents
from analysis.incident.subject import FLEET, Subject, fleet
from analysis.incident.timeline import NEAR_SECONDS, Fired, timeline
from analysis.report.action_items import action_items
from analysis.report.coverage import caveats
from analysis.report.paging import fired, pages, tried, untested
from analysis.report.report import (
    CauseFound,
    Disagreement,
    Episode,
    Figure,
    Metric,
    OfEngine,
    Proof,
    Report,
)
from analysis.report.sentences import answerless, headline, statements

Progress = Callable[[str], None]
_BEFORE_SECONDS = 60.0
"""How long before an incident a page still is about it."""


def report(
    history: History,
    annotations: Sequence[Annotation] = (),
    *,
    progress: Progress = lambda _: None,
) -> Report:
    """All of a history. ``progress`` is called with what is done next."""
    frame = history.frame
    everybody = fleet(frame)
    progress("what was done")
    done = actions(everybody)
    acted = [each.at for each in done] + [each.at for each in annotations if each.is_action]
    progress("incidents")
    found = incidents(frame, actions=acted)
    progress("causes")
    whole = causes(frame)
    progress("what would have paged")
    tested = tried(history)
    told = fired(tested)
    progress("figures")
    stretches = found.fleet or tuple(_of_causes(history, whole))
    made = []
    for place, incident in enumerate(stretches):
        ranking = whole if len(stretches) == 1 else _ranked_alone(history, stretches, place)
        engines = [
            OfEngine(name, each.begin.at, None if each.end is None else each.end.at, each.crossed)
            for name, of_engine in found.engines.items()
            for each in of_engine
            if _meet(each, incident)
        ]
        made.append(_episode(everybody, incident, ranking.found, engines, told, done, annotations))
    answer = Answer.CAUSES if made and whole.answer is not Answer.NOT_ENOUGH_DATA else whole.answer
    return Report(
        history.source,
        frame.start,
        frame.end,
        frame.step_seconds,
        answer,
        _headline(answer, made),
        tuple(made),
        caveats(history, found, whole),
        untested(tested),
    )


def _headline(answer: Answer, episodes: Sequence[Episode]) -> str:
    if answer is Answer.NOT_ENOUGH_DATA:
        return "Not enough data to say anything"
    if not episodes:
        return answerless(None)
    if len(episodes) == 1:
        return episodes[0].headline
    return f"{len(episodes)} incidents: " + "; ".join(each.headline for each in episodes)


def _ranked_alone(history: History, stretches: Sequence[Incident], place: int) -> Ranking:
    """Of several incidents each has causes of its own: what lies between its neighbours is looked at alone."""
    frame = history.frame
    before = stretches[place - 1].end if place else None
    start = before.at if before is not None else frame.start
    end = stretches[place + 1].begin.at if place + 1 < len(stretches) else frame.end
    return causes(frame.between(start, end))


def _of_causes(history: History, ranking: Ranking) -> Iterator[Incident]:
    """Causes of which nobody suffered: no line was crossed, and there is something to tell all the same."""
    known = [each for each in ranking.found if each.onset is not None]
    if not known:
        return
    frame = history.frame
    begin = min(each.onset for each in known if each.onset is not None)
    end = max(each.end or frame.end for each in known)
    step = frame.step_seconds
    opens, closes = (Boundary(at, at - step, at) for at in (begin, min(end, frame.end - step)))
    baseline = Phase(PhaseName.BASELINE, Boundary(frame.start, frame.start, frame.start), opens)
    note = "No line that hurts was crossed: begin and end are those of the cause."
    yield Incident(FLEET, (baseline, Phase(PhaseName.PEAK, opens, closes)), False, False, begin, (), (note,))


def _meet(one: Incident, other: Incident) -> bool:
    ends = [each.end.at if each.end is not None else float("inf") for each in (one, other)]
    return one.begin.at <= ends[1] and other.begin.at <= ends[0]


def _episode(  # noqa: PLR0913, PLR0917 -- all that a report of one incident is made of
    everybody: Subject,
    incident: Incident,
    verdicts: Sequence[Verdict],
    engines: Sequence[OfEngine],
    told: Sequence[Fired],
    done: Sequence[Action],
    annotations: Sequence[Annotation],
) -> Episode:
    rows = key_metrics(everybody, incident)
    begin = incident.begin
    end = incident.end.at if incident.end is not None else None
    until = everybody.frame.end if end is None else end
    paged = pages(told, begin.at, begin.earliest - _BEFORE_SECONDS, until)
    return Episode(
        headline(incident, verdicts),
        statements(incident, verdicts, rows, paged, done, annotations),
        begin.at,
        begin.earliest,
        begin.latest,
        end,
        incident.worst_at,
        incident.begins_inside,
        incident.phases,
        tuple(sorted(engines, key=lambda each: (each.begin, each.engine))),
        tuple(_metric(row) for row in rows),
        tuple(_cause(each) for each in verdicts),
        timeline(
            everybody,
            incident,
            fired=[each for each in told if begin.at - NEAR_SECONDS <= each.at <= until + NEAR_SECONDS],
            actions=done,
            annotations=annotations,
        ),
        paged,
        tuple(
            Disagreement(each.title, each.words, each.contradicts)
            for each in consistency(everybody, incident)
        ),
        action_items([each.cause for each in verdicts]),
        incident.notes,
    )


def _metric(row: Row) -> Metric:
    return Metric(
        row.title,
        row.signal.full_name,
        row.unit.value,
        _figure(row, row.baseline),
        _figure(row, row.peak),
        _figure(row, row.after),
        row.factor_words,
        row.confidence,
        row.note,
    )


def _figure(row: Row, cell: Cell) -> Figure:
    bounds = (cell.bucket.low, cell.bucket.high) if cell.bucket is not None else None
    return Figure(cell.value, row.words(cell), cell.is_floor, bounds)


def _cause(verdict: Verdict) -> CauseFound:
    return CauseFound(
        verdict.cause,
        verdict.cause.sentence,
        verdict.score,
        verdict.confidence,
        str(verdict.certainty),
        verdict.onset,
        verdict.end,
        verdict.affected,
        verdict.explained_by,
        tuple(_proof(each) for each in verdict.evidence),
        verdict.caveats,
    )


def _proof(evidence: Evidence) -> Proof:
    signal = evidence.signal
    return Proof(
        evidence.words,
        str(evidence.link.role),
        evidence.held,
        None if signal is None else signal.full_name,
        None if signal is None else signal.confidence,
        evidence.since,
        evidence.until,
        evidence.baseline,
        evidence.worst,
        evidence.z,
        evidence.threshold,
    )
