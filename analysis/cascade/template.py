"""What a cause looks like in history: links in causal order, each with what shows it and what speaks against it.

A template says nothing of how it is judged (``judging.py``) and nothing of other templates but which of them are its
consequences: a queue that a frozen engine leaves behind is no second cause.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from alerts.causes import Cause
from analysis.cascade.stretches import Truth
from analysis.cascade.subject import Subject
from analysis.frame import Values
from exporter.signal import Signal


@dataclass(frozen=True, slots=True)
class Sign:
    """What a look found. ``held``, ``known``, ``values``: shape (n,); ``values`` is the number that tells most of it.

    ``limit``: what the number was compared with, where there is one; ``falls``: the lower the worse. ``name``: what
    the number is called where it is made of the signal and isn't the signal itself.
    """

    held: Truth
    known: Truth
    values: Values
    signal: Signal
    limit: float | None = None
    falls: bool = False
    name: str = ""

    @property
    def told_as(self) -> str:
        """What the number is called, with its unit."""
        return self.name or self.signal.name


Look = Callable[[Subject], Sign | None]
"""How a link is looked for. None: nobody watched what it needs."""


class Role(StrEnum):
    """What a link is for its cause."""

    NECESSARY = "necessary"
    """Without it this isn't the cause."""
    SUPPORTING = "supporting"
    """What comes before or after where this is the cause; it may be missing."""
    AGAINST = "against"
    """What isn't so where this is the cause."""


@dataclass(frozen=True, slots=True)
class Link:
    """``words``: a clause in the past, as a report has it: "sequences stood swapped out on the host".

    ``lag_seconds``: how long after the link before it begins, at least and at most; below 0 is before it.
    ``least_seconds``: for how long it has to hold. ``weight``: of a contradiction, what it takes away of the score.
    Raises ValueError.
    """

    words: str
    look: Look
    role: Role = Role.SUPPORTING
    lag_seconds: tuple[float, float] = (-600.0, 600.0)
    least_seconds: float = 15.0
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.weight <= 1:
            raise ValueError(f"{self.words!r}: a weight is above 0 and at most 1")
        if self.lag_seconds[0] > self.lag_seconds[1]:
            raise ValueError(f"{self.words!r}: its lag ends before it begins")


class Breadth(StrEnum):
    """Whom a template is judged on."""

    RANK = "rank"
    """Each rank of each engine: engines are affected."""
    ENGINE = "engine"
    """Each engine."""
    GPU = "gpu"
    """Each GPU, with the engine that runs on it."""
    FLEET = "fleet"
    """The gateways, and what is true of all engines together."""


@dataclass(frozen=True, slots=True)
class Start:
    """What tells when it began, sooner than its evidence does, which often is of a trailing minute.

    ``course``: a number of a subject over time, shape (n,), that bends where the cause begins; None: not watched.
    ``way``: 1 it rises then, -1 it falls, 0 either. ``counted``: a count, or what goes with one. ``is_mean``: of the
    signal's trailing time, so that a step shows as a rise within it.
    """

    course: Callable[[Subject], Values | None]
    signal: Signal
    way: int = 0
    counted: bool = False
    is_mean: bool = False


@dataclass(frozen=True, slots=True)
class Template:
    """How a cause is found, what it brings about, and how its beginning is.

    ``explains``: what this cause brings about as a rule; where both are found, those come after it. ``may_explain``:
    what it brings about where little room is left, and what may as well have come by itself.

    ``first_sign``: what held from its beginning on without a break, so that its begin is the cause's. ``patience``: for
    how long it was at work before that, shape (n,), where it can be told. ``starts``: what bends at the beginning, all
    of it together; none that is the consequence of another. ``in_order``: what shows a load by itself, sooner or later;
    of these the first that bends clearly is asked too. ``lead_seconds``: how long before its necessary evidence it may
    have begun. ``early_seconds``: how long before its onset, as it is estimated, its consequences may have been seen.
    Raises ValueError: without a necessary link, or explaining itself.
    """

    cause: Cause
    links: tuple[Link, ...]
    explains: frozenset[Cause] = frozenset()
    may_explain: frozenset[Cause] = frozenset()
    breadth: Breadth = Breadth.RANK
    first_sign: Look | None = None
    patience: Callable[[Subject], Values | None] | None = None
    starts: tuple[Start, ...] = ()
    in_order: tuple[Start, ...] = ()
    lead_seconds: float = 300.0
    early_seconds: float = 30.0

    def __post_init__(self) -> None:
        if not any(link.role is Role.NECESSARY for link in self.links):
            raise ValueError(f"{self.cause}: a template needs a necessary link")
        if self.cause in self.explains | self.may_explain:
            raise ValueError(f"{self.cause} can't explain itself")


@dataclass(frozen=True, slots=True)
class Evidence:
    """One link as it was found. ``held``: None where nobody watched it; then all numbers are None.

    ``since``, ``until``: seconds of the frame's clock; ``seconds``: for how long in all. ``baseline``, ``worst``: of
    the number that tells most, which is called ``name``; ``z``: how many spreads the worst is off, infinite where the
    baseline never moved; ``threshold``: what it was compared with. ``words``: a sentence for a report.
    """

    link: Link
    held: bool | None
    words: str
    signal: Signal | None = None
    name: str = ""
    since: float | None = None
    until: float | None = None
    seconds: float = 0.0
    baseline: float | None = None
    worst: float | None = None
    z: float | None = None
    threshold: float | None = None


class Certainty(StrEnum):
    """How sure a verdict is, as a report says it."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class Verdict:
    """On one cause. ``score``: 0 to 1, from 0.5 on it is held to be there. ``confidence``: 0 to 1, by what was watched.

    ``onset``, ``proven``, ``end``: seconds of the frame's clock, None where it isn't there: when it began, which is an
    estimate, when all that is necessary had been seen, and till when. ``affected``: engines, in order;
    ``shown_by``: the one whose evidence this is, empty where it is the fleet's.
    ``explained_by``: causes of which this one is a consequence; ``perhaps_by``: of which it may be one.
    ``caveats``: what wasn't known, one line each.
    """

    cause: Cause
    score: float
    confidence: float
    evidence: tuple[Evidence, ...]
    onset: float | None = None
    proven: float | None = None
    end: float | None = None
    affected: tuple[str, ...] = ()
    shown_by: str = ""
    explained_by: tuple[Cause, ...] = ()
    perhaps_by: tuple[Cause, ...] = ()
    caveats: tuple[str, ...] = ()

    @property
    def found(self) -> bool:
        """Whether the cause is held to be there."""
        return self.score >= LEAST_SCORE

    @property
    def supporting(self) -> tuple[Evidence, ...]:
        """Evidence for it that held."""
        return tuple(each for each in self.evidence if each.held and each.link.role is not Role.AGAINST)

    @property
    def against(self) -> tuple[Evidence, ...]:
        """Evidence against it that held."""
        return tuple(each for each in self.evidence if each.held and each.link.role is Role.AGAINST)

    @property
    def certainty(self) -> Certainty:
        """The same as ``confidence``, in a word."""
        if self.confidence >= _HIGH:
            return Certainty.HIGH
        return Certainty.MEDIUM if self.confidence >= _MEDIUM else Certainty.LOW


LEAST_SCORE = 0.5
_HIGH, _MEDIUM = 0.8, 0.5
