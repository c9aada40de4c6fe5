"""Why it happened: causes of a frame, ranked, each with its evidence for and against.

ranking = causes(history.frame)
ranking.answer                   # CAUSES, NOTHING_UNUSUAL or NOT_ENOUGH_DATA
ranking.found[0].cause           # the first cause, with evidence, onset, affected engines
ranking.engines["engine-0"]      # verdicts on one engine
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from alerts.causes import Cause
from analysis.cascade.catalogue import TEMPLATES
from analysis.cascade.judging import Judged, judge
from analysis.cascade.limits import behind, is_unwatched, of_holes, of_watching
from analysis.cascade.onset import onset
from analysis.cascade.subject import Fleet, Subject
from analysis.cascade.template import LEAST_SCORE, Breadth, Template, Verdict
from analysis.frame import Frame

LEAST_SECONDS = 60.0
"""Of history in which something was told: less shows no cause, and no calm either."""
_AFTER_SECONDS = 600.0
"""For how long a cause explains what comes after its end."""
_WITH_A_HOLE, _BEHIND_UNWATCHED = 0.7, 0.8
"""How much surer a verdict would be without a hole while it came about, and with all watched that may be behind it."""


_BROUGHT_BY = {cause: sum(cause in each.explains for each in TEMPLATES.values()) for cause in TEMPLATES}
"""How many causes bring it about as a rule: the more, the less it says where it is found."""


class Answer(StrEnum):
    """What a ranking says on the whole."""

    CAUSES = "causes"
    NOTHING_UNUSUAL = "nothing unusual"
    NOT_ENOUGH_DATA = "not enough data"


@dataclass(frozen=True, slots=True)
class Ranking:
    """``fleet``: a verdict on every cause, those that were found first and in order. ``engines``: those of one engine.

    ``caveats``: what was not watched and what it costs, one line each.
    """

    answer: Answer
    fleet: tuple[Verdict, ...]
    engines: Mapping[str, tuple[Verdict, ...]]
    caveats: tuple[str, ...] = ()

    @property
    def found(self) -> tuple[Verdict, ...]:
        """The causes that are held to be there, in order."""
        return tuple(each for each in self.fleet if each.found)


def causes(frame: Frame, baseline: Frame | None = None) -> Ranking:
    """Rank what a frame shows. ``baseline``: a frame in which all was well; without one, what came before is usual."""
    fleet = Fleet(frame)
    calm = Fleet(baseline) if baseline is not None else None
    judged = {cause: _judged(template, fleet, calm) for cause, template in TEMPLATES.items()}
    verdicts = [_verdict(TEMPLATES[cause], each, fleet) for cause, each in judged.items()]
    engines = {
        name: _ordered(
            _verdict(TEMPLATES[cause], own, fleet)
            for cause, each in judged.items()
            if (own := [one for one in each if one.subject.engine in {"", name}])
        )
        for name in fleet.engines
    }
    ordered = _ordered(verdicts)
    return Ranking(_answer(fleet, ordered), ordered, engines, of_watching(fleet))


def _judged(template: Template, fleet: Fleet, calm: Fleet | None) -> list[Judged]:
    return [
        judge(template, subject, None if calm is None else replace(subject, fleet=calm))
        for subject in _subjects(template, fleet)
    ]


def _subjects(template: Template, fleet: Fleet) -> tuple[Subject, ...]:
    if template.breadth is Breadth.GPU and fleet.uuids:
        return fleet.each_gpu()
    if template.breadth is Breadth.FLEET or not fleet.engines:
        return (Subject(fleet),)
    if template.breadth is Breadth.ENGINE:
        return tuple(Subject(fleet, name) for name in fleet.engines)
    return tuple(rank for name in fleet.engines for rank in fleet.ranks(name))


def _verdict(template: Template, judged: Sequence[Judged], fleet: Fleet) -> Verdict:
    """Of all subjects together: the evidence is that of the one that shows most of it."""
    best = max(judged, key=lambda each: (each.score, each.known))
    if best.score < LEAST_SCORE:
        return Verdict(template.cause, best.score, best.known, best.evidence, shown_by=best.subject.engine)
    there = [each for each in judged if each.score >= LEAST_SCORE]
    affected = tuple(sorted({each.subject.engine for each in there} - {""}))
    proofs = [each.since for each in there if each.since is not None]
    ends = [each.until for each in there if each.until is not None]
    begun = onset(template, fleet, affected, min(proofs))
    caveats = of_holes(fleet, affected, begun, min(proofs))
    confidence = best.known * (_WITH_A_HOLE if caveats else 1.0)
    return Verdict(
        template.cause,
        best.score,
        confidence,
        best.evidence,
        begun,
        min(proofs),
        max(ends),
        affected or fleet.engines,
        best.subject.engine,
        caveats=caveats,
    )


def _ordered(verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """Those that explain others before those that are explained, and what isn't there last."""
    every = list(verdicts)
    there = [each for each in every if each.found]
    unwatched = [each.cause for each in every if is_unwatched(each)]
    told = [
        replace(
            _doubted(each, unwatched),
            explained_by=_explaining(each, there, lambda template: template.explains),
            perhaps_by=_explaining(each, there, lambda template: template.may_explain),
        )
        for each in every
    ]
    told = [replace(each, onset=_no_later(each, told)) for each in told]
    order = list(TEMPLATES)

    def place(verdict: Verdict) -> tuple[bool, int, int, int, float, int]:
        return (
            not verdict.found,
            len(verdict.explained_by),
            len(verdict.perhaps_by),
            _BROUGHT_BY[verdict.cause],
            -round(verdict.score, 6),
            order.index(verdict.cause),
        )

    return tuple(sorted(told, key=place))


def _no_later(verdict: Verdict, told: Iterable[Verdict]) -> float | None:
    """A cause begins no later than what it alone explains, where no sign shows it from its beginning on."""
    if TEMPLATES[verdict.cause].first_sign is not None:
        return verdict.onset
    begun = [each.onset for each in told if each.explained_by == (verdict.cause,) and not each.perhaps_by]
    known = [each for each in (verdict.onset, *begun) if each is not None]
    return min(known) if verdict.onset is not None else None


def _doubted(verdict: Verdict, unwatched: Sequence[Cause]) -> Verdict:
    """Less sure where what may be behind it was not watched."""
    if not verdict.found:
        return verdict
    names = [cause.value for cause in unwatched if verdict.cause in TEMPLATES[cause].explains]
    if not names:
        return verdict
    return replace(
        verdict,
        confidence=verdict.confidence * _BEHIND_UNWATCHED,
        caveats=(*verdict.caveats, *behind(names)),
    )


def _explaining(
    verdict: Verdict, there: Iterable[Verdict], consequences: Callable[[Template], frozenset[Cause]]
) -> tuple[Cause, ...]:
    if not verdict.found or verdict.proven is None or verdict.end is None:
        return ()
    return tuple(
        each.cause
        for each in there
        if verdict.cause in consequences(TEMPLATES[each.cause])
        and each.onset is not None
        and each.end is not None
        and each.onset <= verdict.end
        and each.onset - TEMPLATES[each.cause].early_seconds <= verdict.proven <= each.end + _AFTER_SECONDS
    )


def _answer(fleet: Fleet, verdicts: Sequence[Verdict]) -> Answer:
    if any(each.found for each in verdicts):
        return Answer.CAUSES
    told = ~np.isnan(fleet.frame.values).all(axis=1) if fleet.frame.keys else np.zeros(0, dtype=bool)
    judged = any(each.held is not None for verdict in verdicts for each in verdict.evidence)
    if not judged or np.count_nonzero(told) * fleet.frame.step_seconds < LEAST_SECONDS:
        return Answer.NOT_ENOUGH_DATA
    return Answer.NOTHING_UNUSUAL
