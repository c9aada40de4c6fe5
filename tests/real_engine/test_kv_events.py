"""KV events of a real vLLM: what the sidecar counts from the wire against what the engine handed to its publisher.

The line between them is cut for two seconds under load: a real replay must bring what was missed.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.exporter.running import Sidecar, running
from tests.real_engine import install, serve
from tests.real_engine.cut import Line
from tests.real_engine.recorder import Row, Value, parse

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

HERE = Path(__file__).parent
ORACLE = HERE / "oracle" / "thrashold_kv_oracle.py"
LOAD_SECONDS = 14.0
CUT_AFTER_SECONDS, CUT_SECONDS = 5.0, 2.0
WINDOW_SECONDS = 60.0
_PATIENCE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The oracle's lines, and what the sidecar said once it had lived through a window."""

    truth: list[dict[str, Any]]
    said: Row


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    """One run for all claims, about two minutes. Skips where no engine can be had, except in CI."""
    try:
        made = install.ensure(lambda _: None)
    except install.UnavailableError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must have the real engine: {error}", pytrace=False)
        pytest.skip(f"no real engine: {error}")
    out = tmp_path_factory.mktemp("kv_events")
    truth, replay_port = out / "kv_oracle.jsonl", serve.free_port()
    config = {
        "enable_kv_cache_events": True,
        "publisher": "zmq",
        "endpoint": "tcp://127.0.0.1:*",  # without a star vLLM would connect; so it binds a port of loopback
        "replay_endpoint": f"tcp://127.0.0.1:{replay_port}",
        "topic": "kv-events",
    }
    subprocess.run([made.python, HERE / "model.py", out / "model"], check=True, capture_output=True)
    engine = serve.start(
        made,
        out / "model",
        out / "oracle.jsonl",
        out / "engine.log",
        flags=["--kv-events-config", json.dumps(config)],
        environment={
            "PYTHONPATH": str(_plugin(out / "plugin")),
            "VLLM_PLUGINS": ORACLE.stem,
            "THRASHOLD_KV_ORACLE": str(truth),
        },
    )
    try:
        engine.wait_ready()
        line = Line(int(_lines(truth)[0]["endpoint"].rpartition(":")[2]))
        settings = out / "settings.yaml"
        settings.write_text(
            f"engines:\n  - url: {engine.url}\n    name: e\n    kv_events:\n"
            f"      endpoint: tcp://127.0.0.1:{line.port}\n"
            f"      replay_endpoint: tcp://127.0.0.1:{replay_port}\n"
        )
        with running("--config", str(settings)) as sidecar:
            yield _outcome(sidecar, line, truth, _driver(made, engine, out))
    finally:
        engine.stop()


def _plugin(folder: Path) -> Path:
    """A folder for the engine's path that holds the oracle and names it as a plugin."""
    info = folder / f"{ORACLE.stem}-1.dist-info"
    info.mkdir(parents=True)
    (folder / ORACLE.name).write_bytes(ORACLE.read_bytes())
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {ORACLE.stem}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        f"[vllm.general_plugins]\n{ORACLE.stem} = {ORACLE.stem}:register\n"
    )
    return folder


def _driver(made: install.Installed, engine: serve.Engine, out: Path) -> list[str]:
    command = [made.python, HERE / "drive.py", engine.url, "overload", LOAD_SECONDS, out / "clients.jsonl"]
    return [str(part) for part in command]


def _outcome(sidecar: Sidecar, line: Line, truth: Path, driver: list[str]) -> Outcome:
    began = time.monotonic()
    _until(sidecar, lambda row: row.get("source_up", source="e/kv_events") == 1.0)
    with subprocess.Popen(driver) as load:
        time.sleep(CUT_AFTER_SECONDS)
        line.cut()
        time.sleep(CUT_SECONDS)
        line.mend()
        load.wait()
    time.sleep(max(0.0, began + WINDOW_SECONDS + 2.0 - time.monotonic()))
    total = _lines(truth)[-1]["batches"]
    row = _until(sidecar, lambda row: (row.get("kv_event_batches_total") or 0.0) >= total)
    return Outcome(_lines(truth), row)


def _until(sidecar: Sidecar, wanted: Any) -> Row:  # noqa: ANN401 -- a function of a row
    end = time.monotonic() + _PATIENCE_SECONDS
    while True:
        values: list[Value] = parse(sidecar.get("/metrics").text)
        row = Row(time.time(), 0.0, "", values)
        if wanted(row) or time.monotonic() > end:
            return row
        time.sleep(0.2)


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_every_batch_and_every_block_is_counted_once_over_a_cut_line(outcome: Outcome) -> None:
    told, said = outcome.truth[-1], outcome.said
    assert said.get("kv_event_batches_total") == told["batches"]
    assert said.get("kv_block_stores_total", medium="gpu") == told["stored"]["GPU"]
    assert said.get("kv_block_removals_total", medium="gpu") == told["removed"]["GPU"]
    for nothing in (
        "kv_event_batches_lost_total",
        "kv_event_batches_broken_total",
        "kv_events_unknown_total",
    ):
        assert said.get(nothing) == 0
    assert told["stored"]["GPU"] > 500
    assert told["removed"]["GPU"] > 200


def test_the_line_really_was_cut_and_came_back(outcome: Outcome) -> None:
    assert outcome.said.get("source_errors_total", source="e/kv_events", reason="disconnected") == 1
    assert outcome.said.get("source_up", source="e/kv_events") == 1


def test_the_rank_is_the_engine_s_own_word_for_it(outcome: Outcome) -> None:
    (value,) = outcome.said.all("kv_event_batches_total")
    assert value.labels == {"engine": "e", "rank": "0"}
    (of_metrics,) = outcome.said.all("preemptions_total")
    assert of_metrics.labels["rank"] == "0"


def test_the_restore_ratio_is_that_of_a_count_inside_the_engine(outcome: Outcome) -> None:
    """The sidecar's minute ends with its newest sample, up to some seconds before the page was asked for."""
    possible = [_ratio(outcome.truth, outcome.said.at - WINDOW_SECONDS - late / 4) for late in range(13)]
    said = outcome.said.get("kv_block_restore_ratio")
    assert said is not None
    assert 0.0 < min(possible) - 0.005 <= said <= max(possible) + 0.005


def _ratio(truth: list[dict[str, Any]], since: float) -> float:
    """Restores over stores on the GPU since then."""
    nothing = {"restored": 0, "stored": {"GPU": 0}}
    first = next((each for each in reversed(truth) if each["t"] <= since and "batches" in each), nothing)
    stored = truth[-1]["stored"]["GPU"] - first["stored"]["GPU"]
    return float(truth[-1]["restored"] - first["restored"]) / stored
