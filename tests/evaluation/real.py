"""Recordings of real engines under plain contention, through the sidecar's cycle, as runs in which nothing thrashes."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from exporter.derive.phenomenon import EngineFacts
from exporter.recorder_writer import RecordingWriter, Retention
from tests.support.replay import cycles

NAMES = ("vllm-0.32.0", "vllm-0.32.0-oracle")
ALLOWED = frozenset({"KvCachePressure", "KvDemandBeyondPool", "KvExhaustionNear"})
"""Cache pressure at most: pages and ping-pong would be false."""


def write_recording(name: str, path: Path) -> dict[str, Any]:
    """Write what a sidecar would have recorded; gives what is true of it, as ``truth.json`` says it."""
    seconds = []
    with contextlib.closing(RecordingWriter(path, Retention(float(2**31), 2**40))) as writer:
        for cycle in cycles(name, EngineFacts()):
            writer.write(cycle.snapshot)
            seconds.append(cycle.at)
    return {"scenario": name, "episodes": [], "onset": None, "end": None, "seconds": seconds, "engines": {}}
