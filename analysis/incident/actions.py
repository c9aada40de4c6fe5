"""What was done to a fleet, as far as its own series tell: restarts, and settings that are others than before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from analysis.frame import Values
from analysis.incident.subject import Subject, rises
from analysis.incident.unit import Unit
from exporter.derive.blocks import KV_BLOCK_TOKENS, KV_BLOCKS
from exporter.derive.pcie import PCIE_LINK
from exporter.derive.ranks import ENGINE_INFO, RESTARTS
from exporter.derive.swap import SWAP_TIER_BYTES, SWAP_TIER_ENABLED
from exporter.signal import Confidence, Signal

_LEAST_CHANGE = 1e-3
"""Of a setting: less is how it is rounded."""


@dataclass(frozen=True, slots=True)
class Action:
    """``at``: when it was seen, seconds since the epoch. ``where``: an engine or a GPU. ``words``: what, a clause."""

    at: float
    where: str
    words: str
    signal: Signal

    @property
    def confidence(self) -> Confidence:
        """How sure it is."""
        return self.signal.confidence


@dataclass(frozen=True, slots=True)
class _Setting:
    """``signal`` tells it, series with ``where`` labels; ``name``: what it is called."""

    signal: Signal
    name: str
    unit: Unit
    where: tuple[tuple[str, str], ...] = ()


_SETTINGS = (
    _Setting(SWAP_TIER_ENABLED, "may swap to the host", Unit.FLAG),
    _Setting(SWAP_TIER_BYTES, "tier below the GPU", Unit.BYTES),
    _Setting(KV_BLOCKS, "KV blocks", Unit.COUNT, (("state", "total"),)),
    _Setting(KV_BLOCK_TOKENS, "tokens a KV block", Unit.COUNT),
    _Setting(PCIE_LINK, "PCIe link", Unit.BYTES_PER_SECOND),
)


def actions(subject: Subject) -> tuple[Action, ...]:
    """All, in the order of time. What engines don't tell (chunked prefill, a gateway's limits) isn't in it."""
    found = [*_restarts(subject), *_kinds(subject)]
    for setting in _SETTINGS:
        found += _changed(subject, setting)
    return tuple(sorted(set(found), key=lambda each: (each.at, each.where, each.words)))


def _restarts(subject: Subject) -> Iterator[Action]:
    for key, values in subject.series(RESTARTS):
        for place in np.flatnonzero(np.nan_to_num(rises(values)) > 0):
            yield Action(float(subject.frame.times[place]), key.label("engine"), "began anew", RESTARTS)


def _kinds(subject: Subject) -> Iterator[Action]:
    """An engine that is another kind or generation than before."""
    was: dict[str, str] = {}
    seen = sorted(
        (
            int(np.flatnonzero(~np.isnan(values))[0]),
            key.label("engine"),
            f"{key.label('engine_kind')} {key.label('generation')}".strip(),
        )
        for key, values in subject.series(ENGINE_INFO)
        if not np.isnan(values).all()
    )
    for place, engine, kind in seen:
        if was.get(engine, kind) != kind:
            yield Action(
                float(subject.frame.times[place]),
                engine,
                f"is {kind} now, and was {was[engine]}",
                ENGINE_INFO,
            )
        was[engine] = kind


def _changed(subject: Subject, setting: _Setting) -> Iterator[Action]:
    for key, values in subject.series(setting.signal, **dict(setting.where)):
        for place, before, now in _steps(values):
            yield Action(
                float(subject.frame.times[place]),
                key.label("engine") or key.label("uuid"),
                f"{setting.name}: {setting.unit.words(now)}, was {setting.unit.words(before)}",
                setting.signal,
            )


def _steps(values: Values) -> Iterator[tuple[int, float, float]]:
    """Where a known value is another than the one known before it: (place, before, now)."""
    known = np.flatnonzero(~np.isnan(values))
    told = values[known]
    limit = _LEAST_CHANGE * np.maximum(np.abs(told[:-1]), np.abs(told[1:]))
    for place in np.flatnonzero(np.abs(np.diff(told)) > limit):
        yield int(known[place + 1]), float(told[place]), float(told[place + 1])
