"""What the sidecar tells of its sources and of its signals."""

from __future__ import annotations

from exporter.signal import Confidence, Kind, Scope, Signal

SOURCE_UP = Signal(
    "source_up",
    Kind.GAUGE,
    Scope.SOURCE,
    "1 while the last read succeeded and is fresh, else 0. The signals of a source that is down vanish after 15 s.",
    Confidence.MEASURED,
    "the last read that ended, and its age",
    (),
    is_state=True,
)
SOURCE_AGE = Signal(
    "source_age_seconds",
    Kind.GAUGE,
    Scope.SOURCE,
    "Age of the newest numbers of the source, from the start of the read that brought them.",
    Confidence.MEASURED,
    "now - start of the last good read",
    (),
    least_change=2.0,
)
SOURCE_READ_SECONDS = Signal(
    "source_read_seconds",
    Kind.GAUGE,
    Scope.SOURCE,
    "How long the last good read took. An engine that answers slowly is short of CPU or held up.",
    Confidence.MEASURED,
    "from the request to the last byte",
    (),
    least_change=0.25,
)
SOURCE_ERRORS = Signal(
    "source_errors_total",
    Kind.COUNTER,
    Scope.SOURCE,
    "Failed reads by reason, since the sidecar started.",
    Confidence.MEASURED,
    "counted by the source",
    (),
    labels=("reason",),
)
SOURCE_ODDITY = Signal(
    "source_oddity",
    Kind.GAUGE,
    Scope.SOURCE,
    "1 while the source's newest numbers hold something that can't be right, by what it is.",
    Confidence.MEASURED,
    "noted by the dialect while reading, for one a usage above 1",
    (),
    labels=("oddity",),
    is_state=True,
)
DERIVE_ERRORS = Signal(
    "derive_errors_total",
    Kind.COUNTER,
    Scope.SIDECAR,
    "Derivations that broke off with an error: a bug that costs the signals of its phenomenon only.",
    Confidence.MEASURED,
    "counted by the cycle",
    (),
    labels=("phenomenon",),
)
SIGNAL_INFO = Signal(
    "signal_info",
    Kind.GAUGE,
    Scope.SIDECAR,
    "1 for each signal that has a value now, with how sure it is and how it comes about: where engines differ, as the "
    "least sure of them.",
    Confidence.MEASURED,
    "the catalogue",
    (),
    labels=("signal", "confidence", "method"),
)
PROBED_SIGNAL_INFO = Signal(
    "probed_signal_info",
    Kind.GAUGE,
    Scope.SIDECAR,
    "1 for each signal that the engine's probe tells now: of that engine it is as sure as this says, not as "
    "signal_info says of all engines together.",
    Confidence.MEASURED,
    "the catalogue",
    (),
    labels=("engine", "signal", "confidence", "method"),
)
BUILD_INFO = Signal(
    "build_info",
    Kind.GAUGE,
    Scope.SIDECAR,
    "1, with the version of the sidecar.",
    Confidence.MEASURED,
    "the installed package",
    (),
    labels=("version",),
)

SIGNALS = (
    SOURCE_UP,
    SOURCE_AGE,
    SOURCE_READ_SECONDS,
    SOURCE_ERRORS,
    SOURCE_ODDITY,
    DERIVE_ERRORS,
    SIGNAL_INFO,
    PROBED_SIGNAL_INFO,
    BUILD_INFO,
)
