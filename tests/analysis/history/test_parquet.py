from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from analysis.frame import Frame, Key, grid
from analysis.history.history import History, HistoryError
from analysis.history.parquet import is_stored, load, read_long, store
from analysis.history.recorded import recorded
from analysis.history.samples import TooManySeriesError
from exporter.recorder import Recorder
from exporter.recorder_parquet import export_parquet
from exporter.recorder_reader import Recording
from tests.support.recorder import BY_REASON, START, TOKENS, second
from tests.support.recorder import USAGE as USAGE_SIGNAL

A = Key("thrashold_kv_usage_ratio", (("engine", "a"), ("rank", "0")))
B = Key("thrashold_generation_tokens_total", (("engine", 'b"\\,{}é'),))
AT = 1_790_000_000.0


def history(values: np.ndarray, step: float = 15.0) -> History:  # type: ignore[type-arg]
    times = grid(AT, AT + step * len(values), step)
    return History(
        Frame(times, step, (A, B), values), "http://prometheus", frozenset({A.name}), ("one thing", "another")
    )


@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 30), st.just(2)),
        elements=st.floats(width=64) | st.floats(width=32) | st.just(math.nan),
    )
)
@settings(max_examples=60, deadline=None)
def test_what_is_stored_comes_back_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory,
    values: np.ndarray,  # type: ignore[type-arg]
) -> None:
    path = tmp_path_factory.mktemp("stored") / "history"
    before = history(values)
    store(before, path)
    assert is_stored(path)
    after = load(path)
    assert after.frame.keys == before.frame.keys
    assert after.frame.times.tolist() == before.frame.times.tolist()
    assert after.frame.step_seconds == before.frame.step_seconds
    assert np.array_equal(after.frame.values, before.frame.values, equal_nan=True)
    assert (after.source, after.derived, after.notes) == (before.source, before.derived, before.notes)


def test_a_range_and_names_of_a_frame_of_many_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analysis.history.parquet._ROWS_AT_ONCE", 7)
    values = np.arange(80.0).reshape(40, 2)
    store(history(values), tmp_path / "h")
    whole = history(values).frame
    for start, end in ((AT + 16, AT + 400), (None, AT + 30), (AT + 580, None), (AT + 100, AT + 106)):
        found = load(tmp_path / "h", start, end).frame
        expected = whole.between(-np.inf if start is None else start, np.inf if end is None else end)
        assert found.times.tolist() == expected.times.tolist()
        assert np.array_equal(found.values, expected.values)
    only = load(tmp_path / "h", names={B.name})
    assert only.frame.keys == (B,)
    assert only.frame.column(B).tolist() == values[:, 1].tolist()
    assert not only.derived
    with pytest.raises(HistoryError, match="holds nothing in that range; it holds 2026-09-21T14:13:30Z"):
        load(tmp_path / "h", AT + 10_000)
    with pytest.raises(HistoryError, match="holds none of thrashold_thrashing"):
        load(tmp_path / "h", names={"thrashold_thrashing"})


def test_a_column_is_narrow_only_where_no_value_changes_by_it(tmp_path: Path) -> None:
    values = np.column_stack((np.float64(np.float32([0.1, 0.2, 0.3])), [0.1, 1e300, 2**53 + 0.0]))
    store(history(values), tmp_path / "h")
    schema = pq.read_schema(tmp_path / "h")
    assert [str(field.type) for field in schema] == ["float", "double"]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("long") / "recording.db"
    recorder = Recorder(file)
    recorder.start()
    for written, place in enumerate([*range(60), *range(70, 150)]):
        recorder.put(second(place, width=3))
        while recorder.status.written <= written and not recorder.status.failed:
            time.sleep(0.0005)
    assert recorder.close(10.0)
    return file


@pytest.fixture(scope="module")
def exported(recording: Path) -> Path:
    file = recording.with_name("exported.parquet")
    with Recording(recording) as opened, file.open("wb") as out:
        export_parquet(opened, out)
    return file


def test_a_recorder_s_export_is_the_same_history_as_its_recording(recording: Path, exported: Path) -> None:
    assert not is_stored(exported)
    ours, theirs = read_long(exported).framed().frame, recorded(recording).frame
    assert ours.times.tolist() == theirs.times.tolist()
    assert set(ours.keys) == set(theirs.keys)
    assert len(ours.keys) == 5
    for key in ours.keys:
        assert np.array_equal(ours.column(key), theirs.column(key), equal_nan=True)


def test_rows_in_order_of_time_are_read_as_those_in_order_of_series(exported: Path, tmp_path: Path) -> None:
    table = pq.read_table(exported)
    pq.write_table(table.sort_by([("time", "ascending"), ("metric", "descending")]), tmp_path / "scraped")
    ours, theirs = read_long(tmp_path / "scraped").framed().frame, read_long(exported).framed().frame
    assert set(ours.keys) == set(theirs.keys)
    for key in ours.keys:
        assert np.array_equal(ours.column(key), theirs.column(key), equal_nan=True)


def test_of_a_long_table_a_range_some_series_and_no_more_than_allowed(exported: Path) -> None:
    found = read_long(
        exported, START + 10, START + 20, wanted=lambda key: key.name == TOKENS.full_name, max_series=1
    )
    (only,) = found.series()
    assert only.key == Key(TOKENS.full_name)
    assert only.values.tolist() == [place * 1_000_003.0 for place in range(10, 20)]
    with pytest.raises(TooManySeriesError, match="larger max_series"):
        read_long(exported, max_series=4)
    with pytest.raises(HistoryError, match="it holds 2027-01-15T08:00:00Z to 2027-01-15T08:02:29Z"):
        read_long(exported, end=START - 1)
    assert {each.key.name for each in read_long(exported).series()} == {
        each.full_name for each in (USAGE_SIGNAL, TOKENS, BY_REASON)
    }


def test_parquet_that_is_no_history_says_what_is_missing(exported: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1.0], "metric": ["a"]}), tmp_path / "other")
    with pytest.raises(
        HistoryError, match=r"no column time, value .its columns are x, metric.; a table has time"
    ):
        read_long(tmp_path / "other")
    with pytest.raises(HistoryError, match="is no stored history: its columns are x, metric"):
        load(tmp_path / "other")
    pq.write_table(pa.table({"time": [1], "metric": ["a"], "value": [1.0]}), tmp_path / "numbers")
    with pytest.raises(HistoryError, match="its column time is int64 and no timestamp"):
        read_long(tmp_path / "numbers")
    (tmp_path / "cut").write_bytes(exported.read_bytes()[:-100])
    with pytest.raises(HistoryError, match="is no whole Parquet file"):
        is_stored(tmp_path / "cut")
    with pytest.raises(HistoryError, match="can't be read"):
        load(tmp_path / "none")
