"""A counter that two tell: an estimate, and, while somebody counts, the exact number."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple


class Exact(NamedTuple):
    """An exact total at ``at``, and who counts: another ``source`` began at 0."""

    at: float
    source: tuple[str, ...]
    total: float


@dataclass(frozen=True, slots=True)
class Handover:
    """One total of ours, which never falls and never jumps from one teller to the other.

    ``estimate`` is where the estimate stood when it was last of use: what it rises by from there on is what
    happened while nobody counted. ``anchor`` is our total when ``source`` stood at 0, so that whoever counts again
    after a silence sets right what the estimate said meanwhile.
    """

    value: float
    estimate: float | None = None
    source: tuple[str, ...] = ()
    anchor: float = 0.0
    at: float | None = None

    def fed(self, estimate: float | None, exact: Exact | None) -> Handover:
        """The total after a cycle; each of the two is None where it isn't told."""
        if exact is not None:
            anchor = self.anchor if exact.source == self.source else self.value - exact.total
            marked = self.estimate if estimate is None or exact.at == self.at else estimate
            value = max(self.value, anchor + exact.total)
            return Handover(value, marked, exact.source, anchor, exact.at)
        if estimate is None:
            return self
        rise = 0.0 if self.estimate is None else max(0.0, estimate - self.estimate)
        return replace(self, value=self.value + rise, estimate=estimate)
