"""``thrashold recorder info``: a recording at a glance."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from exporter import recorder_command
from exporter.recorder_command import recorder as command
from exporter.recorder_file import open_for_writing
from exporter.recorder_info import lines, overview
from exporter.recorder_reader import Recording
from exporter.recorder_writer import RecordingWriter, Retention
from exporter.signal import Kind
from tests.support.recorder import START, second, signal, snapshot

OF_ENGINE = signal("of_engine", Kind.GAUGE, ("engine",))
OF_GPU = signal("of_gpu", Kind.GAUGE, ("uuid",))


def record(path: Path, places: list[int]) -> None:
    writer = RecordingWriter(path, Retention())
    for place in places:
        more = [(OF_ENGINE, ("b:1",), 1.0), (OF_ENGINE, ("a:1",), 1.0), (OF_GPU, ("GPU-1",), 1.0)]
        writer.write(snapshot(START + place, *more))
    writer.close()


def said(path: Path, now: float, *, with_signals: bool = False) -> list[str]:
    with Recording(path) as recording:
        found = overview(recording)
    return list(lines(found, now, with_signals=with_signals))


def test_it_says_when_how_much_of_whom_and_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "recording"
    record(path, [*range(100), *range(162, 4000), *range(4002, 4100), *range(5000, 7262)])
    monkeypatch.setattr(recorder_command.time, "time", lambda: START + 7264.0)
    result = CliRunner().invoke(command, ["info", str(path), "--signals"])
    assert result.exit_code == 0
    size = path.stat().st_size / 1e6
    assert result.output.splitlines() == [
        str(path),
        "from      2027-01-15T08:00:00Z",
        "to        2027-01-15T10:01:01Z, 3 s ago",
        f"span      2 h 1 min, {size:.1f} MB",
        "cycles    6298, one each 1 s",
        "gaps      3",
        "          2027-01-15T08:01:39Z to 2027-01-15T08:02:42Z: 1 min 3 s",
        "          2027-01-15T09:06:39Z to 2027-01-15T09:06:42Z: 3 s",
        "          2027-01-15T09:08:19Z to 2027-01-15T09:23:20Z: 15 min 1 s",
        "engines   a:1, b:1",
        "gpus      GPU-1",
        "signals   2 in 3 series",
        "  gauge       2  thrashold_of_engine",
        "  gauge       1  thrashold_of_gpu",
    ]


def test_of_many_gaps_the_longest_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    places, at = [], 0
    for gap in range(20):
        places += range(at, at + 10)
        at += 20 + gap
    record(path, places)
    told = said(path, START)
    assert "gaps      19" in told
    listed = [line for line in told if " to 2027" in line]
    assert [line.rpartition(": ")[2] for line in listed] == [f"{seconds} s" for seconds in range(20, 30)]
    assert "          the 10 longest of them" in told
    assert "ahead of this machine's clock" in told[1]


def test_one_cycle_is_a_recording_and_none_is_nothing(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    open_for_writing(path).close()
    assert said(path, START) == [f"nothing recorded yet, {path.stat().st_size / 1e6:.1f} MB"]
    record(path, [0])
    assert said(path, START + 3)[:5] == [
        "from      2027-01-15T08:00:00Z",
        "to        2027-01-15T08:00:00Z, 3 s ago",
        f"span      0 s, {path.stat().st_size / 1e6:.1f} MB",
        "cycles    1",
        "gaps      none",
    ]


def test_it_looks_while_the_recording_is_written(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    writer = RecordingWriter(path, Retention())
    for place in range(90):
        writer.write(second(place))
    assert "cycles    90, one each 1 s" in said(path, START + 90)
    writer.close()


def test_what_is_no_recording_is_said_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("text\n" * 100)
    result = CliRunner().invoke(command, ["info", str(path)])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {path}: is no recording")


def test_the_gpus_of_a_machine_fit_a_terminal_and_none_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    uuids = [f"GPU-{number:08x}-4444-4444-4444-{number:012x}" for number in range(8)]
    writer = RecordingWriter(path, Retention())
    writer.write(snapshot(START, *((OF_GPU, (uuid,), 1.0) for uuid in uuids)))
    writer.close()
    lines_said = said(path, START + 1)
    assert max(map(len, lines_said)) <= 80
    assert all(any(uuid in line for line in lines_said) for uuid in uuids)
