"""What an incident is: its phases in order, and how sure each boundary between them is."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass


class PhaseName(enum.StrEnum):
    """What part of an incident."""

    BASELINE = "baseline"
    ONSET = "onset"
    ESCALATION = "escalation"
    PEAK = "peak"
    MITIGATION = "mitigation"
    RECOVERY = "recovery"

    @property
    def meaning(self) -> str:
        """What makes a time belong to it."""
        return _MEANINGS[self]


_MEANINGS = {
    PhaseName.BASELINE: "before the first sign",
    PhaseName.ONSET: "first signs, and no line is crossed yet",
    PhaseName.ESCALATION: "lines are crossed, and it gets worse",
    PhaseName.PEAK: "at least four fifths of the worst that was seen",
    PhaseName.MITIGATION: "something was done, or it falls by itself; lines are still crossed",
    PhaseName.RECOVERY: "no line is crossed any more, and not all is as it was",
}


@dataclass(frozen=True, slots=True)
class Boundary:
    """An instant between two phases, seconds since the epoch.

    It lies between ``earliest`` and ``latest``. ``said_by``: titles of the measures that say so. ``note``: why it is
    less sure than others, in words; empty where it isn't.
    """

    at: float
    earliest: float
    latest: float
    said_by: tuple[str, ...] = ()
    note: str = ""

    @property
    def uncertainty_seconds(self) -> float:
        """From the earliest to the latest that it can be."""
        return self.latest - self.earliest


@dataclass(frozen=True, slots=True)
class Phase:
    """``end`` is None where the history ends first."""

    name: PhaseName
    begin: Boundary
    end: Boundary | None


@dataclass(frozen=True, slots=True)
class Incident:
    """One, of a subject (an engine's name; empty: the fleet).

    ``phases`` in order, those without any length left out. ``goes_on``: it hasn't ended when the history does.
    ``begins_inside``: it was there when the history begins, so that nothing is known of what was usual. ``worst_at``:
    the worst instant. ``crossed``: titles of the measures beyond a line, in the order in which they were. ``notes``:
    what all this costs, in words.
    """

    subject: str
    phases: tuple[Phase, ...]
    goes_on: bool
    begins_inside: bool
    worst_at: float
    crossed: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def begin(self) -> Boundary:
        """Its first sign."""
        return next(each for each in self.phases if each.name is not PhaseName.BASELINE).begin

    @property
    def end(self) -> Boundary | None:
        """When all was well again; None: it goes on."""
        return None if self.goes_on else self.phases[-1].end

    def phase(self, name: PhaseName) -> Phase | None:
        """The phase of that name; None where there is none."""
        return next((each for each in self.phases if each.name is name), None)


@dataclass(frozen=True, slots=True)
class Incidents:
    """All of a history: of the fleet, and of each engine that has any. ``notes``: of the history itself."""

    fleet: tuple[Incident, ...]
    engines: Mapping[str, tuple[Incident, ...]]
    notes: tuple[str, ...] = ()
