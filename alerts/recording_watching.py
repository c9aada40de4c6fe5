"""Which sidecars are missing: looked for once, at the head of the group whose alerts say so."""

from __future__ import annotations

from alerts.conditions import Rendering
from alerts.pack.promql import by, gauge
from alerts.recording import Recording, RecordingGroup
from alerts.recording_presence import SIDECAR_KNOWN
from exporter.source_signals import BUILD_INFO

INSTANCE = ("instance",)


def _scraped(rendering: Rendering) -> str:
    return gauge(rendering, BUILD_INFO, window="2m")


def _seen(rendering: Rendering) -> str:
    return f"group by ({by(rendering, ())}) ({_scraped(rendering)})"


SEEN = Recording(
    f"cluster:{BUILD_INFO.full_name}:group",
    "1 where any sidecar of the cluster was scraped within two minutes.",
    _seen,
    (),
)


def _gone(rendering: Rendering) -> str:
    on = by(rendering, INSTANCE)
    return f"{SIDECAR_KNOWN.name} unless on ({on}) ({_scraped(rendering)})"


GONE = Recording(
    f"cluster_instance:{BUILD_INFO.full_name}_gone:group",
    "1 for each sidecar that was scraped within six hours and not within two minutes.",
    _gone,
    INSTANCE,
)


def _unanswered(rendering: Rendering) -> str:
    """Gone while Prometheus still goes there: what was scaled down or rolled out is no target any more."""
    targets = f"last_over_time(up{rendering.matchers()}[{rendering.lookback}])"
    return f"{GONE.name} and on ({by(rendering, INSTANCE)}) ({targets} == 0)"


UNANSWERED = Recording(
    f"cluster_instance:{BUILD_INFO.full_name}_unanswered:group",
    "1 for each of them that is still a target.",
    _unanswered,
    INSTANCE,
)
SIDECARS_NOW = RecordingGroup((SEEN, GONE, UNANSWERED), before="watching")
