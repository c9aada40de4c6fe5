"""What a signal is: the one type behind the exposition, the recorder, rules, boards and documents.

A signal is declared beside the function that computes it (``exporter/derive/``) and listed by
``exporter/catalogue.py``. Everyone refers to the object, never to its name as a string.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

PREFIX = "thrashold_"
PEAK_SECONDS = 60.0
"""What a ``_peak`` twin is the maximum of: no scrape interval in use is longer."""
PEAK_SUFFIX = "_peak"


class Kind(enum.StrEnum):
    """How Prometheus reads the value."""

    GAUGE = "gauge"
    COUNTER = "counter"


class Confidence(enum.StrEnum):
    """How sure a value is; published as ``thrashold_signal_info{confidence=...}``."""

    MEASURED = "measured"
    ESTIMATE = "estimate"
    LOWER_BOUND = "lower_bound"
    LAGGING = "lagging"

    @property
    def meaning(self) -> str:
        """What it says of a value, for people."""
        return _MEANINGS[self]


_MEANINGS = {
    Confidence.MEASURED: "read from a counter, a gauge or a histogram of the engine that says just this",
    Confidence.ESTIMATE: "a model or a derivation stands between what was read and what is said",
    Confidence.LOWER_BOUND: "the truth is at least this",
    Confidence.LAGGING: "right in the end, but the engine tells it late",
}


class Scope(enum.Enum):
    """What one value of a signal speaks of; its members' values are the labels that say which."""

    RANK = ("engine", "rank", "model_name")
    """One data-parallel rank of an engine."""
    ENGINE = ("engine",)
    """A whole engine: its front end and all its ranks."""
    GPU = ("uuid",)
    """One GPU, or one MIG instance of one."""
    GATEWAY = ("gateway",)
    """One gateway, or the engines behind it as it sees them."""
    SOURCE = ("source",)
    """One thing that is read."""
    SIDECAR = ()
    """The sidecar itself."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that say which."""
        labels: tuple[str, ...] = self.value
        return labels


@dataclass(frozen=True, slots=True, eq=False)
class Signal:
    """One family of values.

    ``name`` carries the unit and, on a counter, ``_total``; it lacks the ``thrashold_`` prefix.
    ``labels`` are those beyond the scope's. ``method`` says in one line how the value comes about,
    ``inputs`` which sample fields it needs, ``source`` where the formula or the check stands.
    ``window_seconds`` is the trailing time a value speaks of (0 = an instant or a running total).
    With ``peak`` a twin named ``<name>_peak`` carries the maximum of the trailing 60 s. ``probed`` says how a value
    comes about where the engine's probe tells it (``exporter/probe/``): it is measured then, whatever it is else.
    ``above_one``: a ratio that is no share, and goes beyond 1.

    What holds of it for whoever reads seldom, or looks back: with ``follows_reads`` it is made of intervals between
    reads, each of which a gap ends (``exporter.window.LONGEST_GAP_SECONDS``), and reads further apart can't tell it;
    one with ``misses_between_reads`` is a lower bound where much happens between two of them. ``is_state``: it is 0 or
    1. One that ``rests_at_zero`` is 0 while all is well. ``by_request``: it is made of requests as they come, so that
    where few come one makes it. ``least_change``: in its unit, what nobody would act upon; 0 takes that of the unit.
    """

    name: str
    kind: Kind
    scope: Scope
    help: str
    confidence: Confidence
    method: str
    inputs: tuple[str, ...]
    labels: tuple[str, ...] = ()
    source: str = ""
    window_seconds: float = 0.0
    peak: bool = False
    probed: str = ""
    above_one: bool = False
    follows_reads: bool = False
    misses_between_reads: bool = False
    is_state: bool = False
    rests_at_zero: bool = False
    by_request: bool = False
    least_change: float = 0.0

    @property
    def full_name(self) -> str:
        """The name as it is scraped."""
        return PREFIX + self.name

    @property
    def label_names(self) -> tuple[str, ...]:
        """The scope's labels, then the signal's own."""
        return self.scope.labels + self.labels


class Point(NamedTuple):
    """One value of a signal: ``labels`` in the order of the signal's own ``labels``."""

    signal: Signal
    labels: tuple[str, ...]
    value: float
    is_peak: bool = False
