"""What was there, once in some minutes: alerts that look back over hours read this, not every scrape."""

from __future__ import annotations

from functools import partial

from alerts.conditions import Reading, Rendering, number
from alerts.pack.promql import by, gauge
from alerts.recording import Recording, RecordingGroup
from exporter.derive.blocks import KV_USAGE
from exporter.derive.prefill import PREFIX_HITS
from exporter.derive.ranks import ENGINE_INFO
from exporter.signal import Signal
from exporter.source_signals import BUILD_INFO


def _there(signal: Signal, labels: tuple[str, ...], rendering: Rendering) -> str:
    return f"group by ({by(rendering, labels)}) ({gauge(rendering, signal)})"


def _presence(level: str, signal: Signal, labels: tuple[str, ...], meaning: str) -> Recording:
    return Recording(f"{level}:{signal.full_name}:group", meaning, partial(_there, signal, labels), labels)


ENGINE_THERE = _presence(
    "cluster_engine", ENGINE_INFO, ENGINE_INFO.scope.labels, "1 for each engine that answers its sidecar."
)
USAGE_THERE = _presence(
    "cluster_engine", KV_USAGE, ENGINE_INFO.scope.labels, "1 for each engine that tells its KV usage."
)
SIDECAR_THERE = _presence(
    "cluster_instance", BUILD_INFO, ("instance",), "1 for each sidecar that can be scraped."
)
KNOWN_WINDOW = "6h"


def _known(there: Recording, _: Rendering) -> str:
    return f"last_over_time({there.name}[{KNOWN_WINDOW}])"


def _presence_long(level: str, signal: Signal, there: Recording, meaning: str) -> Recording:
    name = f"{level}:{signal.full_name}:last{KNOWN_WINDOW}"
    return Recording(name, meaning, partial(_known, there), there.labels)


ENGINE_KNOWN = _presence_long(
    "cluster_engine", ENGINE_INFO, ENGINE_THERE, "1 for each engine that answered within six hours."
)
SIDECAR_KNOWN = _presence_long(
    "cluster_instance", BUILD_INFO, SIDECAR_THERE, "1 for each sidecar that was scraped within six hours."
)


def _lately(rendering: Rendering) -> str:
    return f"count by ({by(rendering, ())}) (last_over_time({ENGINE_THERE.name}[30m]))"


ENGINES_LATELY = Recording(
    f"cluster:{ENGINE_INFO.full_name}:count30m", "Engines that answered within half an hour.", _lately, ()
)
PREFIX_HITS_THEN = Recording(
    f"cluster_rank:{PREFIX_HITS.full_name}:max",
    "Prefix hits of each rank.",
    Reading(PREFIX_HITS).promql,
    PREFIX_HITS.scope.labels,
)


def _paid(rendering: Rendering) -> str:
    """Twice the line for a quarter of the time at least."""
    line = number(2 * rendering.thresholds.prefix_hit_ratio)
    return f"quantile_over_time(0.75, {PREFIX_HITS_THEN.name}[{KNOWN_WINDOW}] offset 2m) > {line}"


PREFIX_HITS_PAID = Recording(
    f"cluster_rank:{PREFIX_HITS.full_name}_paid:quantile{KNOWN_WINDOW}",
    "Prefix hits that each rank had for a quarter of six hours, where that is twice `prefix_hit_ratio`.",
    _paid,
    PREFIX_HITS.scope.labels,
)
PRESENCE = RecordingGroup(
    (ENGINE_THERE, USAGE_THERE, SIDECAR_THERE, ENGINE_KNOWN, SIDECAR_KNOWN, ENGINES_LATELY), every_seconds=60
)
HISTORY = RecordingGroup((PREFIX_HITS_THEN, PREFIX_HITS_PAID), every_seconds=60)
