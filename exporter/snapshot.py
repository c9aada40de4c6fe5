"""What a cycle gives: the values of all signals at one instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from exporter.signal import Signal


class Value(NamedTuple):
    """One value in a snapshot; ``labels`` in the order of ``signal.label_names``."""

    signal: Signal
    labels: tuple[str, ...]
    value: float
    is_peak: bool


class Failure(NamedTuple):
    """A derivation that broke off: a bug of ours. ``subject`` is the engine or the GPU it was about."""

    subject: str
    phenomenon: str
    error: Exception


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All values of one cycle at ``at`` (seconds since the epoch), and whether any engine is fresh.

    ``warnings`` are lines on what is wrong with the settings, as they are found out now.
    """

    at: float
    values: tuple[Value, ...]
    ready: bool
    failures: tuple[Failure, ...] = ()
    warnings: tuple[str, ...] = ()
