"""A recording of a real engine as scrapes, and the whole pack over it by a real Prometheus."""

from __future__ import annotations

from pathlib import Path

from tests.evaluation.evaluating import evaluate
from tests.evaluation.real import ALLOWED, write_recording


def test_contention_on_a_real_engine_is_cache_pressure_at_most(tmp_path: Path) -> None:
    write_recording("vllm-0.32.0-oracle", tmp_path / "recording.db")
    usage = "thrashold_kv_usage_ratio"
    found = evaluate(tmp_path / "recording.db", 1, queries=(usage,))
    assert {one.alert for one in found.fired} <= ALLOWED
    (row,) = found.queries[usage].values()
    assert max(row.values()) > 0.9
    assert len(row) == 4  # a minute, every 15 s
