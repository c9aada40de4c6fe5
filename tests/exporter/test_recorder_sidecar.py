"""``thrashold exporter --recorder``: the live loop hands over, the command sets up and ends."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from exporter.live import LiveCycle
from exporter.observation import Observation
from exporter.publication import Board
from exporter.recorder_reader import read
from exporter.recorder_signals import RECORDER_UP
from exporter.recorder_writer import Retention
from exporter.settings import SettingsError, load, load_with_places
from exporter.sidecar_settings import RecorderSettings, SidecarSettings
from exporter.snapshot import Snapshot, Value
from tests.exporter.running import PAGE, call, engine, running


@dataclass(slots=True)
class Shelf:
    kept: list[Snapshot] = field(default_factory=list)

    def put(self, snapshot: Snapshot) -> None:
        self.kept.append(snapshot)

    def values(self) -> tuple[Value, ...]:
        return (Value(RECORDER_UP, (), float(len(self.kept)), is_peak=False),)


def nothing(state: int, now: float, _: Sequence[Observation]) -> tuple[int, Snapshot]:
    return state, Snapshot(now, (), ready=True)


def test_every_publication_is_handed_over_and_tells_how_that_goes() -> None:
    shelf = Shelf()
    cycle = LiveCycle((), nothing, 0, lambda: 1.0, Board(), shelf)
    for count in range(3):
        cycle.run_once()
        assert shelf.kept[-1] is cycle.board.newest.snapshot
        assert [value.value for value in shelf.kept[-1].values if value.signal is RECORDER_UP] == [count]


def test_the_sidecar_records_what_it_serves(tmp_path: Path) -> None:
    file = tmp_path / "recording"
    with engine(PAGE) as url, running("--engine", url, "--recorder", str(file)) as sidecar:
        sidecar.wait_until_ready()
        deadline = time.monotonic() + 30
        while "thrashold_recorder_up 1.0" not in sidecar.get("/metrics").text:
            assert time.monotonic() < deadline, sidecar.log()
            time.sleep(0.1)
        assert f"recording into {file}" in sidecar.log()
        recorded = list(read(file))  # while it is written
        assert call("--listen", "127.0.0.1:0", "--engine", url, "--recorder", str(file)).returncode == 2
        sidecar.terminate()
        assert sidecar.process.returncode == 0, sidecar.log()
    assert {"thrashold_source_up", "thrashold_cycles_total", "thrashold_kv_usage_ratio"} <= {
        series.name for series in recorded
    }
    assert [each.name for each in tmp_path.iterdir()] == ["recording"], "it is closed at the end"


def test_a_newer_recording_is_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "recording"
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA application_id = 1953002088")
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    done = call("--engine", "http://127.0.0.1:1", "--listen", "127.0.0.1:0", "--recorder", str(file))
    assert done.returncode == 2
    assert f"Error: {file}: was written by a newer version (schema 999;" in done.stderr
    assert "Traceback" not in done.stderr


def test_once_says_that_it_records_nothing(tmp_path: Path) -> None:
    file = tmp_path / "recording"
    refused = call("--engine", "http://127.0.0.1:1", "--once", "--recorder", str(file))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "Error: --once ends after one cycle and records nothing: leave out --recorder or" in refused.stderr
    with engine(PAGE) as url:
        done = call("--engine", url, "--once", environ={"THRASHOLD_RECORDER_PATH": str(file)})
    assert done.returncode == 0
    assert f"--once records nothing: {file} is left as it is" in done.stderr
    assert "thrashold_recorder_up" not in done.stdout
    assert not file.exists()


def test_settings_say_where_and_how_much(tmp_path: Path) -> None:
    file = tmp_path / "settings.yml"
    file.write_text("recorder: {path: flight.db, keep_hours: 24}\n", encoding="utf-8")
    loaded = load_with_places(SidecarSettings, file=file)
    assert loaded.settings.recorder == RecorderSettings(tmp_path / "flight.db", keep_hours=24.0)
    loaded.check_files()  # it need not be there yet
    flagged = load(SidecarSettings, file=file, flags={"recorder": "other.db"})
    assert flagged.recorder == RecorderSettings(Path("other.db"), keep_hours=24.0)
    from_variable = load(SidecarSettings, environ={"THRASHOLD_RECORDER_PATH": "a.db"}).recorder
    assert from_variable == RecorderSettings(Path("a.db"))
    assert Retention() == Retention(from_variable.keep_hours * 3600, from_variable.max_bytes)


def test_limits_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "settings.yml"
    for text, key in (("keep_hours: 0", "keep_hours"), ("max_bytes: 1000", "max_bytes")):
        file.write_text(f"recorder:\n  path: a.db\n  {text}\n", encoding="utf-8")
        with pytest.raises(SettingsError, match=f"settings.yml:3: recorder.{key}"):
            load(SidecarSettings, file=file)
