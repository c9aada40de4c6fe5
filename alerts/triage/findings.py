"""What is found: alerts whose conditions hold of the engine now, whatever ``for`` they would wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from alerts.alert import Alert, Expression
from alerts.catalogue import ALERTS
from alerts.conditions import All, Compare, Condition, Either, OnGpus, Recorded, Unless
from alerts.thresholds import Thresholds
from alerts.triage.known import Known, Told
from alerts.triage.numbers import of_signal
from exporter.signal import Confidence, Scope


class Certainty(StrEnum):
    """How sure a verdict is."""

    CERTAIN = "certain"
    """All that it rests on was measured."""
    LIKELY = "likely"
    """An estimate is among it, or a rate of a second or so."""
    POSSIBLE = "possible"
    """It looks so, and so does something else: only a longer look tells."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A number, by the signal's name and labels, beside the line that it is past, where there is one."""

    name: str
    told: Told
    operator: str = ""
    bound: float | None = None

    @property
    def limit(self) -> str:
        """The line in words."""
        return self.operator if self.bound is None else f"{self.operator} {of_signal(self.name, self.bound)}"


@dataclass(frozen=True, slots=True)
class Finding:
    """An alert that holds. ``settles_seconds``: how long a look has to be to be sure, of one that is possible only."""

    alert: Alert
    certainty: Certainty
    evidence: tuple[Evidence, ...]
    says: str = ""
    settles_seconds: int = 0


@dataclass(frozen=True, slots=True)
class Subjects:
    """Whom conditions are about: the engine's ranks, its GPUs, the gateways before it."""

    ranks: tuple[Known, ...]
    gpus: tuple[Known, ...] = ()
    gateways: tuple[Known, ...] = ()

    def of(self, scope: Scope) -> tuple[Known, ...]:
        """Those that a condition of ``scope`` is to be asked of."""
        if scope is Scope.GPU:
            return self.gpus
        if scope is Scope.GATEWAY:
            return self.gateways
        return self.ranks if scope in {Scope.RANK, Scope.ENGINE} else ()


def by_conditions(subjects: Subjects, thresholds: Thresholds) -> Iterator[Finding]:
    """Each alert of the pack that is a tree of comparisons and holds of one of its subjects, once."""
    for alert in ALERTS.values():
        condition = alert.condition
        if isinstance(condition, Expression):
            continue
        for known in subjects.of(condition.scope):
            if condition.holds(known, thresholds):
                evidence = tuple(_evidence(condition, known, thresholds))
                yield Finding(alert, certainty(evidence), evidence)
                break


def certainty(evidence: tuple[Evidence, ...]) -> Certainty:
    """Of what rests on these numbers."""
    sure = {Confidence.MEASURED, Confidence.LAGGING}
    measured = all(each.told.confidence in sure and not each.told.short for each in evidence)
    return Certainty.CERTAIN if measured else Certainty.LIKELY


def _evidence(condition: Condition, known: Known, thresholds: Thresholds) -> Iterator[Evidence]:
    for leaf in _true_leaves(condition, known, thresholds):
        told = known.told(leaf.reading)
        if told is not None:
            where = ",".join(f'{name}="{value}"' for name, value in leaf.reading.where)
            name = leaf.reading.signal.name + (f"{{{where}}}" if where else "")
            yield Evidence(name, told, leaf.operator, leaf.bound(thresholds))


def _true_leaves(condition: Condition, known: Known, thresholds: Thresholds) -> Iterator[Compare]:
    if isinstance(condition, Compare):
        yield condition
    elif isinstance(condition, OnGpus):
        yield condition.of_gpu
    elif isinstance(condition, Recorded):
        yield from _true_leaves(condition.of, known, thresholds)
    elif isinstance(condition, Unless):
        yield from _true_leaves(condition.parts[0], known, thresholds)
    elif isinstance(condition, All | Either):
        for part in condition.parts:
            if part.holds(known, thresholds):
                yield from _true_leaves(part, known, thresholds)
