"""An incident as the desk keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

NAME = "alertname"


@dataclass(frozen=True, slots=True)
class KeptAlert:
    """One alert of an incident. ``ends`` None: it fires."""

    fingerprint: str
    starts: float
    ends: float | None
    labels: Mapping[str, str]
    annotations: Mapping[str, str]

    @property
    def name(self) -> str:
        """Of its rule."""
        return self.labels.get(NAME, "")


class Work(StrEnum):
    """How far an incident's report is."""

    NONE = "none"
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Incident:
    """``opened``: since when its first alert fires; ``ended`` None: some of them do; ``closed``: by a person.

    ``reported``: up to when the newest report looks; None: there is none yet. ``more``: alerts beside ``alerts``.
    """

    number: int
    cluster: Mapping[str, str]
    opened: float
    ended: float | None
    closed: float | None
    note: str
    work: Work
    reported: float | None
    alerts: tuple[KeptAlert, ...] = ()
    more: int = 0

    @property
    def title(self) -> str:
        """What it is called in a list: its alerts by name, where it is."""
        names = list(dict.fromkeys(alert.name for alert in self.alerts))
        first = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")  # noqa: PLR2004
        place = " ".join(self.cluster.values())
        return f"{first} in {place}" if place else first

    @property
    def engines(self) -> tuple[str, ...]:
        """That its alerts name."""
        return tuple(sorted({text for alert in self.alerts if (text := alert.labels.get("engine"))}))

    @property
    def state(self) -> str:
        """In a word."""
        if self.closed is not None:
            return "closed"
        return "goes on" if self.ended is None else "over"
