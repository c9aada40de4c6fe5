"""The flight recorder's file: what is written comes back, whatever happens to the writer."""

from __future__ import annotations

import logging
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from exporter import recorder_writer
from exporter.recorder import Recorder
from exporter.recorder_file import MIGRATIONS, WAL_BYTES, RecordingError, open_for_writing, size_in_bytes
from exporter.recorder_reader import Recording, read
from exporter.recorder_signals import RECORDER_BYTES, RECORDER_DROPPED, RECORDER_UP, SIGNALS
from exporter.recorder_writer import RecordingWriter, Retention
from exporter.signal import Kind
from exporter.snapshot import Snapshot, Value
from exporter.source_signals import SIGNAL_INFO
from tests.support.recorder import (
    BY_REASON,
    START,
    TOKENS,
    USAGE,
    kill_a_writer,
    second,
    signal,
    snapshot,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "a recording#1.db"


@pytest.fixture
def started() -> Iterator[Callable[..., Recorder]]:
    recorders = []

    def start(*arguments: object, **more: object) -> Recorder:
        recorder = Recorder(*arguments, **more)
        recorders.append(recorder)
        recorder.start()
        return recorder

    yield start
    for recorder in recorders:
        assert recorder.close(30)


def hand_over(recorder: Recorder, each: Snapshot) -> None:
    """Put a cycle and wait until it is written or given up."""
    before = recorder.status.written + recorder.status.failed
    recorder.put(each)
    wait_until(lambda: recorder.status.written + recorder.status.failed > before)


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def record(file: Path, *snapshots: Snapshot, retention: Retention | None = None) -> None:
    writer = RecordingWriter(file, retention or Retention())
    for each in snapshots:
        writer.write(each)
    writer.close()


def counts(file: Path) -> tuple[int, int]:
    with sqlite3.connect(file) as connection:
        row = connection.execute(
            "SELECT (SELECT count(*) FROM chunk), (SELECT count(*) FROM tick)"
        ).fetchone()
    connection.close()
    return row


def told(file: Path, name: str, **limits: float) -> dict[float, float]:
    (series,) = read(file, names=["thrashold_" + name], **limits)
    return dict(zip(series.times, series.values, strict=True))


def test_what_was_recorded_comes_back_from_chunks_and_ticks(file: Path) -> None:
    record(file, *(second(place) for place in range(150)))
    assert counts(file) == (2, 30)
    by_name = {(each.name, *each.labels.items()): each for each in read(file)}
    assert set(by_name) == {
        ("thrashold_kv_usage_ratio",),
        ("thrashold_generation_tokens_total",),
        ("thrashold_errors_total", ("reason", "reason 0")),
    }
    tokens, usage = by_name["thrashold_generation_tokens_total",], by_name["thrashold_kv_usage_ratio",]
    assert list(tokens.times) == list(usage.times) == [START + place for place in range(150)]
    assert list(tokens.values) == [place * 1_000_003.0 for place in range(150)]
    assert list(usage.values) == pytest.approx([place % 97 / 97 for place in range(150)], rel=6e-8)


def test_a_range_is_from_the_start_to_before_the_end(file: Path) -> None:
    record(file, *(second(place) for place in range(200)))
    for start, end in ((0, 200), (59, 60), (60, 61), (30, 150), (119, 190), (185, 195)):
        expected = [START + place for place in range(start, end)]
        assert list(told(file, "kv_usage_ratio", start=START + start, end=START + end)) == expected
    assert not list(read(file, start=START + 200))
    assert not list(read(file, end=START))
    assert not list(read(file, names=["thrashold_nothing"]))


def test_a_series_that_comes_late_or_pauses_has_no_values_meanwhile(file: Path) -> None:
    snapshots = []
    for place in range(100):
        values = [(TOKENS, (), float(place))]
        if place >= 10 and place not in range(30, 70):
            values.append((BY_REASON, ("late",), float(place)))
        snapshots.append(snapshot(START + place, *values))
    record(file, *snapshots)
    expected = [place for place in range(100) if place >= 10 and place not in range(30, 70)]
    assert told(file, "errors_total") == {START + place: float(place) for place in expected}
    assert len(told(file, "errors_total", start=START + 20, end=START + 75)) == 15


def test_series_are_told_apart_however_a_cycle_orders_them(file: Path) -> None:
    snapshots = []
    for place in range(130):
        values = [(BY_REASON, (reason,), float(place * 10 + each)) for each, reason in enumerate("abcdef")]
        # six orders in turns, of which the later ones lack some
        snapshots.append(snapshot(START + place, *values[place % 6 :], *values[: max(0, place % 6 - 1)]))
    record(file, *snapshots)
    found = {series.labels["reason"]: series for series in read(file, names=["thrashold_errors_total"])}
    for each, reason in enumerate("abcdef"):
        places = [place for place in range(130) if place % 6 != each + 1]
        assert list(found[reason].times) == [START + place for place in places]
        assert list(found[reason].values) == [place * 10.0 + each for place in places]


def test_a_gauge_that_a_later_version_makes_a_counter_is_exact_from_then_on(file: Path) -> None:
    as_gauge, as_counter = signal("moved_total"), signal("moved_total", Kind.COUNTER)
    record(file, *(snapshot(START + place, (as_gauge, (), 0.5)) for place in range(60)))
    exact = float((1 << 40) + 1)
    record(file, *(snapshot(START + place, (as_counter, (), exact + place)) for place in range(60, 140)))
    assert list(told(file, "moved_total").values()) == [0.5] * 60 + [
        exact + place for place in range(60, 140)
    ]


def test_peak_twins_are_left_out(file: Path) -> None:
    values = (Value(USAGE, (), 0.5, is_peak=False), Value(USAGE, (), 0.9, is_peak=True))
    record(file, Snapshot(START, values, ready=True))
    assert told(file, "kv_usage_ratio") == {START: 0.5}


def test_a_recording_is_gone_on_with(file: Path) -> None:
    record(file, *(second(place) for place in range(30)))
    record(file, *(second(place) for place in range(200, 230)))
    assert list(told(file, "generation_tokens_total")) == [
        START + each for each in (*range(30), *range(200, 230))
    ]


def test_a_clock_that_was_set_back_leaves_an_ordered_recording(file: Path) -> None:
    record(file, *(second(place) for place in range(100, 190)))
    record(file, *(snapshot(START + place, (TOKENS, (), -1.0)) for place in range(90, 160)))
    tokens = told(file, "generation_tokens_total")
    assert list(tokens) == [START + place for place in range(90, 190)]
    assert tokens[START + 120] == -1.0
    assert tokens[START + 170] == 170 * 1_000_003.0


def test_killed_at_any_moment_it_loses_at_most_2_seconds(file: Path) -> None:
    chance = random.Random(1)  # noqa: S311 -- repeatable, not secret
    place, lost = 0, []
    while len(lost) < 10 or place <= 120:  # so that some were folding, on a busy machine too
        said = kill_a_writer(file, place, chance)
        with Recording(file) as recording:
            (series,) = recording.read(names=["thrashold_generation_tokens_total"])
        recorded = [round(value / 1_000_003) for value in series.values]
        assert recorded == sorted(set(recorded))
        assert [round(each - START) for each in series.times] == recorded
        lost.append(said - recorded[-1])
        assert len([each for each in recorded if each >= place]) >= said - place - 1
        with sqlite3.connect(file) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()
        place = said + 1
    assert max(lost) <= 2


def test_it_is_read_while_it_is_written(file: Path, started: Callable[..., Recorder]) -> None:
    recorder = started(file)
    seen = 0
    for place in range(400):
        hand_over(recorder, second(place))
        if place % 20 == 19:
            values = list(told(file, "generation_tokens_total").values())
            assert values == [each * 1_000_003.0 for each in range(place + 1)]
            seen += 1
    assert seen == 20
    assert recorder.dropped == 0


def test_a_reader_sees_one_instant(file: Path) -> None:
    writer = RecordingWriter(file, Retention())
    for place in range(50):
        writer.write(second(place))
    with Recording(file) as recording:
        for place in range(50, 130):  # all that was read of by then is folded meanwhile
            writer.write(second(place))
        assert [len(each.times) for each in recording.read()] == [50, 50, 50]
        assert recording.cycles() == 50
    writer.close()
    assert not Path(f"{file}-wal").exists()


def test_what_is_too_old_goes(file: Path) -> None:
    record(file, *(second(place) for place in range(1200)), retention=Retention(keep_seconds=300))
    times = list(told(file, "generation_tokens_total"))
    assert times[-1] == START + 1199
    assert START + 1199 - 420 <= times[0] <= START + 1199 - 300


def test_a_series_of_which_nothing_is_left_is_forgotten_and_may_come_back(file: Path) -> None:
    def labelled(place: int) -> Snapshot:
        reason = "back" if place in {0, 1199} else f"only in minute {place // 60}"
        return snapshot(START + place, (BY_REASON, (reason,), float(place)))

    record(file, *map(labelled, range(1300)), retention=Retention(keep_seconds=300))
    found = {series.labels["reason"]: list(series.values) for series in read(file)}
    assert found["back"] == [1199.0]
    with sqlite3.connect(file) as connection:
        assert connection.execute("SELECT count(*) FROM series").fetchone()[0] == len(found) < 10
    connection.close()


def noise(place: int, chance: random.Random) -> Snapshot:
    return snapshot(START + place, *((BY_REASON, (str(each),), chance.random()) for each in range(400)))


def test_it_keeps_to_its_cap(file: Path) -> None:
    chance = random.Random(1)  # noqa: S311 -- repeatable, not secret
    cap = WAL_BYTES + 1_500_000
    writer = RecordingWriter(file, Retention(max_bytes=cap))
    sizes = []
    for place in range(900):
        writer.write(noise(place, chance))
        sizes.append(size_in_bytes(file))
    assert max(sizes) <= cap + 64 * 4096, "more than the cap and one transaction"
    writer.close()
    with Recording(file) as recording:
        cycles = recording.cycles()
    assert 300 < cycles < 700
    assert max(each.times[-1] for each in read(file)) == START + 899
    # a lower cap shrinks what is there
    record(
        file,
        *(noise(place, chance) for place in (900, 960)),
        retention=Retention(max_bytes=WAL_BYTES + 700_000),
    )
    assert size_in_bytes(file) <= 700_000 + WAL_BYTES


def test_a_newer_recording_is_refused(file: Path) -> None:
    record(file, second(0))
    with sqlite3.connect(file) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.close()
    for use in (lambda: Recorder(file).start(), lambda: list(read(file))):
        with pytest.raises(RecordingError, match="was written by a newer version") as refusal:
            use()
        assert "\n" not in str(refusal.value)


def test_an_older_recording_is_brought_up_to_date(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(file, second(0))
    newer = (*MIGRATIONS, ("ALTER TABLE chunk ADD COLUMN note TEXT", "CREATE TABLE more (id INTEGER)"))
    monkeypatch.setattr("exporter.recorder_file.MIGRATIONS", newer)
    with pytest.raises(RecordingError, match="was written by an older version"):
        read(file)
    open_for_writing(file, newer).close()
    assert told(file, "generation_tokens_total") == {START: 0.0}


def test_a_migration_that_fails_leaves_the_file_as_it_was(file: Path) -> None:
    record(file, second(0))
    with pytest.raises(sqlite3.OperationalError):
        open_for_writing(file, (*MIGRATIONS, ("CREATE TABLE more (id INTEGER)", "NONSENSE")))
    assert told(file, "generation_tokens_total") == {START: 0.0}


@pytest.mark.parametrize("content", [b"# HELP not SQLite\n" * 100, b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_file_that_is_something_else_is_left_alone(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    for use in (lambda: Recorder(file).start(), lambda: read(file)):
        with pytest.raises(RecordingError, match="is no recording"):
            use()
    assert file.read_bytes() == content


def test_a_database_of_somebody_else_is_left_alone(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE chunk (id INTEGER)")
    connection.close()
    with pytest.raises(RecordingError, match="some other SQLite file"):
        Recorder(file).start()


def test_what_can_never_work_is_refused_at_the_start(tmp_path: Path, file: Path) -> None:
    with pytest.raises(RecordingError, match="its folder does not exist"):
        Recorder(tmp_path / "none" / "file").start()
    with pytest.raises(RecordingError, match="is a folder"):
        Recorder(tmp_path).start()
    with pytest.raises(RecordingError, match="no such file"):
        read(file)
    file.touch()
    with pytest.raises(RecordingError, match="nothing was recorded yet"):
        read(file)


def test_a_second_writer_is_refused(file: Path, started: Callable[..., Recorder]) -> None:
    recorder = started(file)
    with pytest.raises(RecordingError, match="is being written by another process"):
        Recorder(file).start()
    hand_over(recorder, second(0))
    assert recorder.status.written == 1


def test_a_damaged_chunk_is_named(file: Path) -> None:
    record(file, *(second(place) for place in range(70)))
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE chunk SET data = x'00'")
    connection.close()
    with pytest.raises(RecordingError, match="is damaged"):
        read(file)


def test_a_full_disk_stops_the_recording_until_there_is_room(
    file: Path,
    started: Callable[..., Recorder],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    room = threading.Event()

    def on_a_small_disk(path: Path) -> sqlite3.Connection:
        connection = open_for_writing(path)
        connection.execute(f"PRAGMA max_page_count = {1 << 30 if room.is_set() else 40}")
        return connection

    monkeypatch.setattr(recorder_writer, "open_for_writing", on_a_small_disk)
    caplog.set_level(logging.INFO)
    recorder = started(file, retry_seconds=0.02)
    place = 0
    while recorder.status.up:
        hand_over(recorder, second(place, width=200))
        place += 1
    written = recorder.status.written
    assert 5 < written < 60
    assert recorder.status.reason == "database or disk is full"
    for _ in range(5):
        time.sleep(0.02)  # each is tried anew
        hand_over(recorder, second(place, width=200))
        place += 1
    shown = {value.signal: value.value for value in recorder.values()}
    assert (shown[RECORDER_UP], shown[RECORDER_DROPPED]) == (0.0, 6.0)
    assert len(told(file, "generation_tokens_total")) == written
    room.set()
    while not recorder.status.up:
        hand_over(recorder, second(place, width=200))
        place += 1
    assert recorder.status.reason == ""
    assert len(told(file, "generation_tokens_total")) == recorder.status.written == written + 1
    messages = [each.getMessage() for each in caplog.records]
    assert len([each for each in messages if "stopped: database or disk is full" in each]) == 1
    assert len([each for each in messages if "recording to" in each and "again;" in each]) == 1


def test_a_full_queue_drops_and_counts(
    file: Path,
    started: Callable[..., Recorder],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    takes, goes_on, write = threading.Event(), threading.Event(), RecordingWriter.write

    def slow(writer: RecordingWriter, each: Snapshot) -> None:
        takes.set()
        assert goes_on.wait(30)
        write(writer, each)

    monkeypatch.setattr(RecordingWriter, "write", slow)
    recorder = started(file, queue_size=3)
    recorder.put(second(0))
    assert takes.wait(30)
    for place in range(1, 10):
        recorder.put(second(place))
    assert recorder.dropped == 6
    assert recorder.values()[0] == (RECORDER_UP, (), 0.0, False)
    assert caplog.text.count("fell behind") == 1
    goes_on.set()
    wait_until(lambda: recorder.status.written == 4)
    hand_over(recorder, second(4))
    assert recorder.values()[0] == (RECORDER_UP, (), 1.0, False)
    assert list(told(file, "kv_usage_ratio")) == [START + place for place in range(5)]


def test_it_tells_of_itself(file: Path, started: Callable[..., Recorder]) -> None:
    recorder = started(file)
    hand_over(recorder, second(0))
    assert recorder.status.written == 1
    values = recorder.values()
    assert {value.signal for value in values} == {*SIGNALS, SIGNAL_INFO}
    assert {value.labels[0] for value in values if value.labels} == {each.full_name for each in SIGNALS}
    shown = {value.signal: value.value for value in values}
    assert shown[RECORDER_UP] == 1.0
    assert shown[RECORDER_BYTES] == size_in_bytes(file) > 0


def test_a_bug_costs_one_cycle(
    file: Path, started: Callable[..., Recorder], caplog: pytest.LogCaptureFixture
) -> None:
    recorder = started(file, retry_seconds=0.0)
    recorder.put(snapshot(START, (BY_REASON, (), 1.0)))  # a label is missing
    recorder.put(second(1))
    wait_until(lambda: recorder.status.written == 1)
    assert recorder.status.failed == 1
    assert "ValueError" in caplog.text
