"""What is known of one subject: a rank of the engine, with the engine, its GPUs and the gateways before it.

A number comes from the sidecar where there is one, which has seen minutes, else from the look itself. Rates for which
the look was too short are made of the totals of its first and last cycle, and are ``short``: of a second or so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from alerts.conditions import Reading
from alerts.triage.rows import Row, Rows, largest
from exporter.derive.inventory import ENGINE_GPU_INFO
from exporter.derive.pingpong import PINGPONG
from exporter.derive.preemption import PREEMPTION_RATE, PREEMPTIONS
from exporter.derive.swap import SWAP_BYTES, SWAP_BYTES_RATE
from exporter.derive.traffic import GENERATION_RATE, GENERATION_TOKENS, PROMPT_RATE, PROMPT_TOKENS
from exporter.signal import Confidence, Scope, Signal

TOTAL_OF: Mapping[Signal, Signal] = {
    PREEMPTION_RATE: PREEMPTIONS,
    GENERATION_RATE: GENERATION_TOKENS,
    PROMPT_RATE: PROMPT_TOKENS,
    SWAP_BYTES_RATE: SWAP_BYTES,
}
"""Of which running total a rate is the rise."""
WHOLE_WINDOW = frozenset({PINGPONG})
"""Signals that are told of what there is of their window, and of a second say nothing."""
SHORTEST_SECONDS = 0.5
"""Totals that lie closer together give no rate."""


class Origin(StrEnum):
    """Who tells a number."""

    SIDECAR = "sidecar"
    LOOK = "this look"


class Told(NamedTuple):
    """A number, how sure it is, who tells it, and over how many seconds (0: of this moment)."""

    value: float
    confidence: Confidence
    origin: Origin
    seconds: float
    short: bool = False


class Rise(NamedTuple):
    """What a counter rose by within a look."""

    increase: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Witness:
    """First and last moment of who tells; ``engine`` is what it calls the engine."""

    origin: Origin
    engine: str
    first: Rows
    last: Rows

    @property
    def seconds(self) -> float:
        """Between them."""
        return self.last.at - self.first.at

    def is_short_of(self, seconds: float) -> bool:
        """Whether a look was shorter; a sidecar has its own windows."""
        return self.origin is Origin.LOOK and self.seconds < seconds


@dataclass(frozen=True, slots=True)
class Known:
    """Of one subject. Witnesses in the order in which they are asked; ``uuid``, ``gateway``: of that one alone.

    ``gpus`` are those of the engine where a page joins it with none: of settings, or all there are.
    """

    witnesses: tuple[Witness, ...]
    rank: str = ""
    model_name: str = ""
    uuid: str = ""
    gateway: str = ""
    gpus: tuple[str, ...] = ()

    def of(self, reading: Reading) -> float | None:
        """See ``alerts.conditions.Values``."""
        told = self.told(reading)
        return None if told is None else told.value

    def told(self, reading: Reading) -> Told | None:
        """The number with its origin; None where nobody tells it."""
        for witness in self.witnesses:
            if reading.signal in WHOLE_WINDOW and witness.is_short_of(reading.signal.window_seconds):
                continue
            found = self._largest(witness, witness.last, reading.signal, reading.where, peak=reading.peak)
            if found is not None:
                signal, seconds = reading.signal, reading.signal.window_seconds
                if witness.is_short_of(seconds):
                    seconds = witness.seconds
                return Told(found, signal.confidence, witness.origin, seconds)
        return None if reading.peak else self._short_rate(reading)

    def told_of(self, signal: Signal, *where: str) -> Told | None:
        """The number of a signal; ``where``: values of its own labels, in their order."""
        return self.told(Reading(signal, tuple(zip(signal.labels, where, strict=False))))

    def value(self, signal: Signal, *where: str) -> float | None:
        """The same without its origin."""
        told = self.told_of(signal, *where)
        return None if told is None else told.value

    def total(self, signal: Signal, *where: str) -> float | None:
        """A running total as it stands, by the first witness that tells it."""
        fitting = tuple(zip(signal.labels, where, strict=False))
        for witness in self.witnesses:
            total = self._sum(witness, witness.last, signal, fitting)
            if total is not None:
                return total
        return None

    def rise(self, signal: Signal, *where: str) -> Rise | None:
        """What a counter rose by, by the first witness that tells; all its series that fit are added up."""
        for witness in self.witnesses:
            rise = self._rise(witness, signal, tuple(zip(signal.labels, where, strict=False)))
            if rise is not None:
                return rise
        return None

    def joined_gpus(self) -> tuple[str, ...]:
        """UUIDs of the engine's GPUs."""
        for witness in self.witnesses:
            own = [
                row.labels[1] for row in witness.last.of(ENGINE_GPU_INFO) if row.labels[0] == witness.engine
            ]
            if own:
                return tuple(own)
        return self.gpus

    def _short_rate(self, reading: Reading) -> Told | None:
        total = TOTAL_OF.get(reading.signal)
        for witness in self.witnesses if total is not None else ():
            rise = self._rise(witness, total, reading.where) if total is not None else None
            if rise is not None:
                confidence = reading.signal.confidence
                return Told(
                    rise.increase / rise.seconds, confidence, witness.origin, rise.seconds, short=True
                )
        return None

    def _rise(self, witness: Witness, signal: Signal, where: tuple[tuple[str, str], ...]) -> Rise | None:
        if witness.seconds < SHORTEST_SECONDS:
            return None
        # a series that shows up meanwhile counts from nothing, as our totals do
        then = self._sum(witness, witness.first, signal, where) or 0.0
        now = self._sum(witness, witness.last, signal, where)
        # one that fell began anew with its sidecar: by how much it rose nobody knows
        return None if now is None or now < then else Rise(now - then, witness.seconds)

    def _sum(
        self, witness: Witness, rows: Rows, signal: Signal, where: tuple[tuple[str, str], ...]
    ) -> float | None:
        fitting = [row.value for row in rows.of(signal) if self._fits(witness, signal, row, where)]
        return sum(fitting) if fitting else None

    def _largest(
        self, witness: Witness, rows: Rows, signal: Signal, where: tuple[tuple[str, str], ...], *, peak: bool
    ) -> float | None:
        return largest(rows.of(signal, peak=peak), lambda row: self._fits(witness, signal, row, where))

    def _fits(self, witness: Witness, signal: Signal, row: Row, where: tuple[tuple[str, str], ...]) -> bool:
        labels = dict(zip(signal.label_names, row.labels, strict=True))
        return self._is_mine(witness, signal.scope, labels) and all(
            labels[name] == value for name, value in where
        )

    def _is_mine(self, witness: Witness, scope: Scope, labels: Mapping[str, str]) -> bool:
        if scope is Scope.RANK:
            mine = (witness.engine, self.rank, self.model_name)
            return (labels["engine"], labels["rank"], labels["model_name"]) == mine
        if scope is Scope.ENGINE:
            return labels["engine"] == witness.engine
        if scope is Scope.GPU:
            return labels["uuid"] == self.uuid if self.uuid else labels["uuid"] in self.joined_gpus()
        if scope is Scope.GATEWAY:
            return not self.gateway or labels["gateway"] == self.gateway
        return True
