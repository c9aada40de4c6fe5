"""What the flight recorder tells of itself; present only where there is one."""

from __future__ import annotations

from exporter.signal import Confidence, Kind, Scope, Signal

RECORDER_UP = Signal(
    name="recorder_up",
    kind=Kind.GAUGE,
    scope=Scope.SIDECAR,
    help="1 while the flight recorder writes, 0 while it can't, as on a full disk; the log says why.",
    confidence=Confidence.MEASURED,
    method="the last cycle that was to be written",
    inputs=(),
    is_state=True,
)
RECORDER_BYTES = Signal(
    name="recorder_bytes",
    kind=Kind.GAUGE,
    scope=Scope.SIDECAR,
    help="What the flight recorder's file takes on disk, with its write-ahead log.",
    confidence=Confidence.MEASURED,
    method="sizes of the files after the last cycle that was written",
    inputs=(),
)
RECORDER_DROPPED = Signal(
    name="recorder_dropped_total",
    kind=Kind.COUNTER,
    scope=Scope.SIDECAR,
    help="Cycles that are missing in the recording: it could not write, or fell too far behind.",
    confidence=Confidence.MEASURED,
    method="counted where a cycle is handed over and where it is written",
    inputs=(),
)

SIGNALS = (RECORDER_UP, RECORDER_BYTES, RECORDER_DROPPED)
