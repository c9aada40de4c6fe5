"""What somebody published of an incident, to be put beside a run of it: figures, and why a run's are others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class Figure(NamedTuple):
    """``value`` in base units, ``words`` as it stands there."""

    value: float
    words: str


@dataclass(frozen=True, slots=True)
class Published:
    """``figures``: by field of KeyMetrics or Counted, and by phase.

    ``reasons``: why a run's figure is another, in words, by field; a phase's own goes before.
    """

    where: str
    figures: Mapping[str, Mapping[str, Figure]]
    reasons: Mapping[str | tuple[str, str], str]

    def reason(self, field: str, phase: str) -> str | None:
        """Why a figure differs; None: nobody has said."""
        return self.reasons.get((field, phase), self.reasons.get(field))
