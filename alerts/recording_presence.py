"""What was there, once in some minutes: alerts that look back over hours read this, not every scrape."""

from __future__ import annotations

from functools import partial

from alerts.conditions import Reading, Rendering
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
PREFIX_HITS_THEN = Recording(
    f"cluster_rank:{PREFIX_HITS.full_name}:max",
    "Prefix hits of each rank.",
    Reading(PREFIX_HITS).promql,
    PREFIX_HITS.scope.labels,
)
PRESENCE = RecordingGroup((ENGINE_THERE, USAGE_THERE, SIDECAR_THERE), every_seconds=60)
HISTORY = RecordingGroup((PREFIX_HITS_THEN,), every_seconds=60)
