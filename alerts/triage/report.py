"""A look with all that came of it: what text and JSON are both made of."""

from __future__ import annotations

from dataclasses import dataclass

from alerts.runbooks import BASE
from alerts.thresholds import Thresholds
from alerts.triage.look import Look
from alerts.triage.next_steps import Next, Unknown, next_of, unknowns
from alerts.triage.steps import STEPS
from alerts.triage.steps.step import Step
from alerts.triage.verdict import Verdict, judged
from exporter.dialects.registry import of_kind
from exporter.sources.failure import one_line

_MOST_NAME = 60


@dataclass(frozen=True, slots=True)
class Report:
    """``unknown``: what this look was too short for, though it may matter."""

    look: Look
    steps: tuple[Step, ...]
    verdict: Verdict
    unknown: tuple[Unknown, ...]
    next: Next

    @property
    def engine(self) -> str:
        """What it is: kind, generation, models, ranks."""
        sample = self.look.newest
        if sample is None:
            return "does not answer"
        models = dict.fromkeys(one_line(rank.model_name, _MOST_NAME) for rank in sample.ranks)
        ranks = len({rank.rank for rank in sample.ranks})
        told = [f"{of_kind(sample.kind).title} {sample.generation}".rstrip(), *models]
        return ", ".join([*told, f"{ranks} ranks"] if ranks > 1 else told)


def report(look: Look, thresholds: Thresholds, runbooks: str = BASE) -> Report:
    """Walk the four steps and judge. ``runbooks``: where their pages are."""
    verdict = judged(look, thresholds)
    return Report(
        look,
        tuple(step(look, thresholds) for step in STEPS),
        verdict,
        unknowns(look, thresholds),
        next_of(look, verdict, thresholds, runbooks),
    )
