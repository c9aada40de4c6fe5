"""Conditions as data, with two faces: PromQL for rules, and operators alone for values at hand.

    full = Compare(Reading(KV_USAGE), ">", "kv_usage_full_ratio")
    pressed = All(full, Compare(Reading(SEQUENCES, (("state", "waiting"),)), ">", "waiting_sequences"))
    pressed.promql(Rendering())              # a PromQL expression
    pressed.holds(values, Thresholds())      # of one subject: True or False, or an array of them

Leaves compare gauges of the catalogue: rates and quantiles are made in the sidecar. A value that isn't there makes its
leaf false, as a series that isn't there gives nothing in PromQL. Values may be floats, arrays (NaN: not there) or None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from operator import eq, ge, gt, le, lt
from typing import Any, Protocol

from alerts.thresholds import NAMES, Thresholds
from exporter.derive.inventory import ENGINE_GPU_INFO
from exporter.signal import PEAK_SUFFIX, Kind, Scope, Signal

Truth = Any
"""A bool, or an array of them: alerts know no pandas."""
_ABOVE = (">", ">=")
_OPERATORS: Mapping[str, Callable[[Any, float], Truth]] = {">": gt, ">=": ge, "<": lt, "<=": le, "==": eq}


@dataclass(frozen=True, slots=True)
class Rendering:
    """How rules are written. ``cluster_labels`` tell apart what Prometheus tells apart and the sidecar can't.

    ``selector``: matchers that every selector gets, comma-separated. ``lookback``: how long a gauge holds where a
    scrape failed; four scrapes of 15 s. ``recorded``: what the pack's recording rules make is there, and is read.
    """

    thresholds: Thresholds = field(default_factory=Thresholds)
    cluster_labels: tuple[str, ...] = ("cluster",)
    selector: str = ""
    lookback: str = "1m"
    recorded: bool = False

    def labels(self, scope: Scope) -> tuple[str, ...]:
        """By which one subject of a scope is told from all others."""
        return (*self.cluster_labels, *scope.labels)

    def matchers(self, more: tuple[tuple[str, str], ...] = ()) -> str:
        """As they stand behind a name."""
        parts = [self.selector] if self.selector else []
        parts += [f'{name}="{value}"' for name, value in more]
        return "{" + ",".join(parts) + "}" if parts else ""


@dataclass(frozen=True, slots=True)
class Reading:
    """One number of a subject: a gauge, those of its series that ``where`` picks, the largest of them.

    ``peak`` reads the twin that holds the maximum of the trailing minute. Raises ValueError: a counter, a label that
    the signal hasn't, a twin that isn't there.
    """

    signal: Signal
    where: tuple[tuple[str, str], ...] = ()
    peak: bool = False

    def __post_init__(self) -> None:
        name = self.signal.full_name
        if self.signal.kind is not Kind.GAUGE:
            raise ValueError(f"{name} is a counter: conditions compare gauges")
        unknown = [label for label, _ in self.where if label not in self.signal.label_names]
        if unknown:
            raise ValueError(f"{name} has no label {unknown[0]}: it has {', '.join(self.signal.label_names)}")
        if self.peak and not self.signal.peak:
            raise ValueError(f"{name} has no {PEAK_SUFFIX} twin")

    def promql(self, rendering: Rendering, line: str = "") -> str:
        """The number: one series a subject, whoever scraped it how often. ``line``: of what is above it only."""
        name = self.signal.full_name + (PEAK_SUFFIX if self.peak else "")
        by = ", ".join(rendering.labels(self.signal.scope))
        held = f"last_over_time({name}{rendering.matchers(self.where)}[{rendering.lookback}])"
        return f"max by ({by}) ({held} {line})" if line else f"max by ({by}) ({held})"


class Values(Protocol):
    """What is known of one subject: of an engine, say, with its ranks and GPUs."""

    def of(self, reading: Reading) -> Any | None:  # noqa: ANN401 -- a float, or an array of floats
        """The number, or an array of them; None where there is none."""


class Condition(Protocol):
    """A tree of comparisons."""

    @property
    def scope(self) -> Scope:
        """Whose labels its result bears."""

    def promql(self, rendering: Rendering) -> str:
        """As an expression that gives a series for each subject of which it is true."""

    def holds(self, values: Values, thresholds: Thresholds) -> Truth:
        """Whether it is true of one subject."""


@dataclass(frozen=True, slots=True)
class Compare:
    """A number beside a threshold, by its name, or beside a number that is what a flag is (0, 1).

    Raises ValueError: no such operator, no such threshold.
    """

    reading: Reading
    operator: str
    limit: str | float

    def __post_init__(self) -> None:
        if self.operator not in _OPERATORS:
            raise ValueError(f"no operator {self.operator!r}: there are {', '.join(_OPERATORS)}")
        if isinstance(self.limit, str) and self.limit not in NAMES:
            raise ValueError(f"no threshold {self.limit!r} in alerts/thresholds.py")
        free = [label for label in self.reading.signal.labels if label not in dict(self.reading.where)]
        if self.operator not in _ABOVE and free:
            name = self.reading.signal.full_name
            raise ValueError(f"{name} has several series, of which the largest counts: say which {free[0]}")

    @property
    def scope(self) -> Scope:
        """See Condition."""
        return self.reading.signal.scope

    def bound(self, thresholds: Thresholds) -> float:
        """What the number is compared with."""
        return float(getattr(thresholds, self.limit)) if isinstance(self.limit, str) else self.limit

    def line(self, rendering: Rendering) -> str:
        """What the number is held to, as PromQL has it behind the number."""
        return f"{self.operator} {number(self.bound(rendering.thresholds))}"

    def promql(self, rendering: Rendering) -> str:
        """See Condition."""
        line = self.line(rendering)
        # the largest is above a line where any is: series that aren't needn't be grouped, which is most of the work
        if self.operator in _ABOVE:
            return self.reading.promql(rendering, line)
        return f"{self.reading.promql(rendering)} {line}"

    def holds(self, values: Values, thresholds: Thresholds) -> Truth:
        """See Condition."""
        value = values.of(self.reading)
        return False if value is None else _OPERATORS[self.operator](value, self.bound(thresholds))


def number(value: float) -> str:
    """As PromQL reads it, to the last digit: rounded, it would hold of other values than the one that was set."""
    return repr(float(value)).removesuffix(".0")


class All:
    """All of them, of the subject of the first; what speaks of something wider or narrower is matched by shared labels.

    Raises ValueError: subjects that have no label in common (take ``OnGpus``).
    """

    def __init__(self, first: Condition, *others: Condition) -> None:
        self.parts = (first, *others)
        for other in others:
            _shared(first.scope, other.scope)

    @property
    def scope(self) -> Scope:
        """See Condition."""
        return self.parts[0].scope

    def promql(self, rendering: Rendering) -> str:
        """See Condition."""
        return _joined(self.parts, "and", rendering)

    def holds(self, values: Values, thresholds: Thresholds) -> Truth:
        """See Condition."""
        truth: Truth = True
        for part in self.parts:
            truth = truth & part.holds(values, thresholds)
        return truth


class Either:
    """Any of them; all of the same scope. Raises ValueError."""

    def __init__(self, first: Condition, *others: Condition) -> None:
        self.parts = (first, *others)
        if any(other.scope is not first.scope for other in others):
            raise ValueError("only conditions of one scope can stand for one another")

    @property
    def scope(self) -> Scope:
        """See Condition."""
        return self.parts[0].scope

    def promql(self, rendering: Rendering) -> str:
        """See Condition."""
        return _joined(self.parts, "or", rendering)

    def holds(self, values: Values, thresholds: Thresholds) -> Truth:
        """See Condition."""
        truth: Truth = False
        for part in self.parts:
            truth = truth | part.holds(values, thresholds)
        return truth


class Unless:
    """The first and not the second; what isn't known of the second doesn't hinder. Raises ValueError, as ``All``."""

    def __init__(self, first: Condition, excuse: Condition) -> None:
        self.parts = (first, excuse)
        _shared(first.scope, excuse.scope)

    @property
    def scope(self) -> Scope:
        """See Condition."""
        return self.parts[0].scope

    def promql(self, rendering: Rendering) -> str:
        """See Condition."""
        return _joined(self.parts, "unless", rendering)

    def holds(self, values: Values, thresholds: Thresholds) -> Truth:
        """See Condition."""
        first, excuse = (part.holds(values, thresholds) for part in self.parts)
        # an exclusive or with True denies floats' bools and arrays alike
        return first & (excuse ^ True)


@dataclass(frozen=True, slots=True)
class OnGpus:
    """A condition of GPUs, told of the engines that run on them: true of any of an engine's GPUs."""

    of_gpu: Compare

    def __post_init__(self) -> None:
        if self.of_gpu.scope is not Scope.GPU:
            raise ValueError(f"{self.of_gpu.reading.signal.full_name} speaks of no GPU")

    @property
    def scope(self) -> Scope:
        """See Condition."""
        return Scope.ENGINE

    def promql(self, rendering: Rendering) -> str:
        """See Condition."""
        clusters = rendering.cluster_labels
        owned = f"last_over_time({ENGINE_GPU_INFO.full_name}{rendering.matchers()}[{rendering.lookback}])"
        on = ", ".join((*clusters, "uuid"))
        by = ", ".join((*clusters, "engine"))
        return f"max by ({by}) ({owned} and on ({on}) ({self.of_gpu.promql(rendering)}))"

    def holds(self, values: Values, thresholds: Thresholds) -> Truth:
        """See Condition."""
        return self.of_gpu.holds(values, thresholds)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A condition that several alerts share: recorded under ``record``, so that what it reads is read once.

    Recorded are the subjects of which it is true, with its value, and no others.
    """

    of: Condition
    record: str

    @property
    def scope(self) -> Scope:
        """See Condition."""
        return self.of.scope

    def promql(self, rendering: Rendering) -> str:
        """See Condition."""
        if not rendering.recorded:
            return self.of.promql(rendering)
        # a comparison that is true already tells linters and people what the series is
        return f"{self.record} {self.of.line(rendering)}" if isinstance(self.of, Compare) else self.record

    def raw(self, rendering: Rendering) -> str:
        """The same of what was scraped, whatever is recorded."""
        return self.of.promql(replace(rendering, recorded=False))

    def holds(self, values: Values, thresholds: Thresholds) -> Truth:
        """See Condition."""
        return self.of.holds(values, thresholds)


def readings(condition: Condition) -> tuple[Reading, ...]:
    """All numbers that a condition looks at, in order."""
    return tuple(leaf.reading for leaf in leaves(condition))


def leaves(condition: Condition) -> tuple[Compare, ...]:
    """All comparisons of a condition, in order."""
    if isinstance(condition, Compare):
        return (condition,)
    if isinstance(condition, OnGpus):
        return (condition.of_gpu,)
    if isinstance(condition, Recorded):
        return leaves(condition.of)
    if isinstance(condition, All | Either | Unless):
        return tuple(leaf for part in condition.parts for leaf in leaves(part))
    raise TypeError(f"{type(condition).__name__} is no condition of this file")


def _shared(one: Scope, other: Scope) -> tuple[str, ...]:
    shared = tuple(label for label in one.labels if label in other.labels)
    if not shared and one is not other:
        raise ValueError(f"{one.name} and {other.name} have no label in common: join them by something else")
    return shared


def _joined(parts: tuple[Condition, ...], word: str, rendering: Rendering) -> str:
    text = f"({parts[0].promql(rendering)})"
    for part in parts[1:]:
        on = ", ".join((*rendering.cluster_labels, *_shared(parts[0].scope, part.scope)))
        text += f"\n{word} on ({on})\n({part.promql(rendering)})"
    return text
