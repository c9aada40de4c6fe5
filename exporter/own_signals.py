"""What the sidecar tells of its own cycle: the signals a broken cycle can't take with it."""

from __future__ import annotations

from exporter.signal import Confidence, Kind, Scope, Signal

CYCLES = Signal(
    name="cycles_total",
    kind=Kind.COUNTER,
    scope=Scope.SIDECAR,
    help="Cycles of the sidecar, each of which makes all signals anew.",
    confidence=Confidence.MEASURED,
    method="counted by the live loop",
    inputs=(),
)
CYCLE_FAILURES = Signal(
    name="cycle_failures_total",
    kind=Kind.COUNTER,
    scope=Scope.SIDECAR,
    help="Cycles that broke off with an error: a bug, named in the log. The signals stand still meanwhile.",
    confidence=Confidence.MEASURED,
    method="counted by the live loop",
    inputs=(),
)
CYCLES_SKIPPED = Signal(
    name="cycles_skipped_total",
    kind=Kind.COUNTER,
    scope=Scope.SIDECAR,
    help="Cycles left out because the sidecar was late: it got too little CPU.",
    confidence=Confidence.MEASURED,
    method="ticks of the fixed schedule that had passed when the loop got to run",
    inputs=(),
)
CYCLE_SECONDS = Signal(
    name="cycle_seconds",
    kind=Kind.GAUGE,
    scope=Scope.SIDECAR,
    help="How long the last cycle took, from collecting what the sources show to the new signals.",
    confidence=Confidence.MEASURED,
    method="monotonic clock around the cycle",
    inputs=(),
)

SIGNALS = (CYCLES, CYCLE_FAILURES, CYCLES_SKIPPED, CYCLE_SECONDS)
