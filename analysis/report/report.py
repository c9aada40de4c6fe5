"""What a report says, without how it is shown: plain values, so that each form of it says the same.

Times are seconds since the epoch, figures in base units; None: not known. The same history gives the same report.
"""

from __future__ import annotations

from dataclasses import dataclass

from alerts.causes import Cause
from analysis.cascade.ranking import Answer
from analysis.incident.phase import Phase
from analysis.incident.timeline import Entry
from exporter.signal import Confidence


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, and how sure it is: by the least sure of the signals that it rests on, and ``why`` in words."""

    words: str
    how_sure: str
    why: str


@dataclass(frozen=True, slots=True)
class Proof:
    """A link of a cause. ``role``: necessary, supporting or against; ``held`` None: nobody watched it.

    ``signal``: what was looked at, as it is scraped; ``confidence``: of that signal.
    """

    words: str
    role: str
    held: bool | None
    signal: str | None
    confidence: Confidence | None
    since: float | None
    until: float | None
    baseline: float | None
    worst: float | None
    z: float | None
    threshold: float | None


@dataclass(frozen=True, slots=True)
class CauseFound:
    """``score``: 0 to 1, how much of it was seen. ``certainty``: how much of it was watched at all, in a word."""

    cause: Cause
    sentence: str
    score: float
    confidence: float
    certainty: str
    onset: float | None
    end: float | None
    affected: tuple[str, ...]
    explained_by: tuple[Cause, ...]
    evidence: tuple[Proof, ...]
    caveats: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """``words``: as the table shows it. ``bucket``: of a quantile, the bounds that it lies between."""

    value: float | None
    words: str
    is_floor: bool = False
    bucket: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Metric:
    """A row of the table of key metrics."""

    title: str
    signal: str
    unit: str
    baseline: Figure
    peak: Figure
    after: Figure
    factor: str
    confidence: Confidence
    note: str


@dataclass(frozen=True, slots=True)
class Page:
    """An alert that people would have got. ``wakes``: somebody is woken. ``after_seconds``: after the first sign."""

    name: str
    severity: str
    wakes: bool
    cause: Cause
    at: float
    until: float
    after_seconds: float
    runbook: str


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Figures beside each other. ``contradicts``: both can't be true."""

    title: str
    words: str
    contradicts: bool


@dataclass(frozen=True, slots=True)
class ActionItem:
    """``when``: now or later. ``cause``: what it is against; ``runbooks``: where it says how."""

    when: str
    words: str
    cause: Cause
    runbooks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OfEngine:
    """When an engine was in it; ``end`` None: it still is."""

    engine: str
    begin: float
    end: float | None
    crossed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Episode:
    """One incident. ``end`` None: it goes on. ``statements``: what happened, in at most five sentences."""

    headline: str
    statements: tuple[Statement, ...]
    begin: float
    begin_earliest: float
    begin_latest: float
    end: float | None
    worst_at: float
    begins_inside: bool
    phases: tuple[Phase, ...]
    engines: tuple[OfEngine, ...]
    metrics: tuple[Metric, ...]
    causes: tuple[CauseFound, ...]
    timeline: tuple[Entry, ...]
    pages: tuple[Page, ...]
    disagreements: tuple[Disagreement, ...]
    actions: tuple[ActionItem, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """``caveats``: what the history lacks, and what that costs. ``untested``: alerts that can't be tried on it."""

    source: str
    start: float
    end: float
    step_seconds: float
    answer: Answer
    headline: str
    episodes: tuple[Episode, ...]
    caveats: tuple[str, ...]
    untested: tuple[str, ...]
