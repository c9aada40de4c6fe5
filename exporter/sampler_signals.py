"""What the sidecar tells of its sampler, the process that reads GPUs; present only where there is one."""

from __future__ import annotations

from exporter.signal import Confidence, Kind, Scope, Signal

SAMPLER_RESTARTS = Signal(
    "sampler_restarts_total",
    Kind.COUNTER,
    Scope.SOURCE,
    "How often the process that reads the GPUs was started again: it ended, or the driver was exchanged under it.",
    Confidence.MEASURED,
    "counted by its supervisor",
    (),
)
SAMPLER_STUCK = Signal(
    "sampler_stuck_seconds",
    Kind.GAUGE,
    Scope.SOURCE,
    "For how long the process that reads the GPUs has said nothing, once that is too long: the kernel holds it, and no "
    "second one is started beside it. 0 while it speaks, also while calls into the driver hang: those are gpu_up 0, or "
    "source_up 0 while the library is being opened.",
    Confidence.MEASURED,
    "now - its last heartbeat, of which one comes a second",
    (),
)
SAMPLER_CPU = Signal(
    "sampler_cpu_seconds_total",
    Kind.COUNTER,
    Scope.SOURCE,
    "CPU that reading the GPUs took, inside the driver too.",
    Confidence.MEASURED,
    "the sampler's own CPU clock, summed over its restarts",
    (),
)
SAMPLER_DRIVER = Signal(
    "sampler_driver_seconds_total",
    Kind.COUNTER,
    Scope.SOURCE,
    "Time that reading the GPUs spent inside the driver's library, all GPUs together: others wait for the same locks "
    "meanwhile.",
    Confidence.MEASURED,
    "monotonic clock around each read, summed over restarts",
    (),
)
SAMPLER_RESIDENT = Signal(
    "sampler_resident_bytes",
    Kind.GAUGE,
    Scope.SOURCE,
    "Memory that the process that reads the GPUs takes.",
    Confidence.MEASURED,
    "its resident set",
    (),
)
SAMPLER_FAST_INTERVAL = Signal(
    "sampler_fast_interval_seconds",
    Kind.GAUGE,
    Scope.SOURCE,
    "Time between two reads of byte counters that can wrap between two seconds, the longest of all GPUs; absent where "
    "none can. It grows while reading takes more than 5 % of a core, or 10 % of the time in the driver.",
    Confidence.MEASURED,
    "what the sampler holds itself to",
    (),
)
GPUS_EXPECTED = Signal(
    "gpus_expected",
    Kind.GAUGE,
    Scope.SOURCE,
    "How many GPUs the driver counts, those that can't be opened among them.",
    Confidence.MEASURED,
    "asked each 30 s",
    (),
)

SIGNALS = (
    SAMPLER_RESTARTS,
    SAMPLER_STUCK,
    SAMPLER_CPU,
    SAMPLER_DRIVER,
    SAMPLER_RESIDENT,
    SAMPLER_FAST_INTERVAL,
    GPUS_EXPECTED,
)
