"""One cycle: what the sources show in, the values of all signals out. No clock, no I/O."""

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


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All values of one cycle at ``at`` (seconds since the epoch), and whether any source is fresh."""

    at: float
    values: tuple[Value, ...]
    ready: bool
