from __future__ import annotations

import importlib.util
import shutil
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from analysis.frame import Key
from analysis.history.history import HistoryError
from analysis.history.parquet import store
from analysis.history.reading import DUMP, RECORDING, parse_time, read
from exporter.derive.blocks import KV_USAGE
from exporter.derive.traffic import GENERATION_TOKENS
from exporter.recorder import Recorder
from exporter.recorder_export import export_openmetrics
from exporter.recorder_parquet import export_parquet
from exporter.recorder_reader import Recording
from tests.support.dumps import Scraped, by_series, dump, scrapes_of
from tests.support.prometheus import serving
from tests.support.recorder import START, TOKENS, USAGE, second

SECONDS = 120


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One past in every form that is read, each under a name that says nothing."""
    where = tmp_path_factory.mktemp("forms")
    recorder = Recorder(where / "recording")
    recorder.start()
    for place in range(SECONDS):
        recorder.put(second(place))
        while recorder.status.written <= place and not recorder.status.failed:
            time.sleep(0.0005)
    assert recorder.close(10.0)
    with Recording(where / "recording") as opened:
        with (where / "dump").open("wb") as out:
            export_openmetrics(opened, out)
        with (where / "long").open("wb") as out:
            export_parquet(opened, out)
    store(read(str(where / "recording")), where / "stored")
    (where / "run").mkdir()
    shutil.copy(where / "recording", where / "run" / RECORDING)
    (where / "run" / DUMP).write_text("not looked at")
    (where / "dump run").mkdir()
    shutil.copy(where / "dump", where / "dump run" / DUMP)
    return where


@pytest.mark.parametrize("form", ["recording", "dump", "long", "stored", "run", "dump run"])
def test_whatever_form_it_is_in_history_is_the_same(folder: Path, form: str) -> None:
    frame = read(str(folder / form)).frame
    assert frame.times.tolist() == [START + place for place in range(SECONDS)]
    assert frame.column(Key(TOKENS.full_name)).tolist() == [place * 1_000_003.0 for place in range(SECONDS)]
    assert frame.column(Key(USAGE.full_name)).tolist() == [
        float(np.float32(place % 97 / 97)) for place in range(SECONDS)
    ]
    part = read(str(folder / form), START + 30, START + 90, step_seconds=15.0, names={TOKENS.full_name}).frame
    assert part.keys == (Key(TOKENS.full_name),)
    assert part.times.tolist() == [START + 30, START + 45, START + 60, START + 75]
    assert part.values[:, 0].tolist() == [1_000_003.0 * each for each in (30, 45, 60, 75)]
    with pytest.raises(HistoryError, match=str(folder / form)):
        read(str(folder / form), START + 1e6)
    with pytest.raises(HistoryError, match="thrashold_nothing"):
        read(str(folder / form), names={"thrashold_nothing"})


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("raw") / "raw"
    file.write_text(dump(Scraped({"instance": "w1:8000", "job": "vllm"}, scrapes_of("vllm-0.32.0-oracle"))))
    return file


def test_signals_are_derived_only_where_no_sidecar_kept_any(raw: Path, folder: Path, tmp_path: Path) -> None:
    whole = read(str(raw))
    assert whole.derived == {key.name for key in whole.frame.keys}
    usage = read(str(raw), names={KV_USAGE.full_name})
    assert {key.name for key in usage.frame.keys} == usage.derived == {KV_USAGE.full_name}
    assert np.array_equal(usage.frame.values, whole.frame.select(KV_USAGE).values, equal_nan=True)
    # by its own name the engine's series is read as it is
    own = read(str(raw), names={"vllm:kv_cache_usage_perc"})
    assert not own.derived
    assert {key.name for key in own.frame.keys} == {"vllm:kv_cache_usage_perc"}
    # a sidecar's signals go before
    both = tmp_path / "both"
    both.write_text((folder / "dump").read_text().removesuffix("# EOF\n") + raw.read_text())
    found = read(str(both), START, START + SECONDS, names={USAGE.full_name})
    assert not found.derived
    assert found.frame.keys == (Key(USAGE.full_name),)
    with pytest.raises(HistoryError, match="none of thrashold_pcie_bytes_total can be derived"):
        read(str(raw), names={"thrashold_pcie_bytes_total"})


def test_a_derived_range_has_its_windows_filled_from_before_it(raw: Path) -> None:
    whole = read(str(raw)).frame
    part = read(str(raw), whole.start + 45, whole.start + 55).frame
    assert part.times.tolist() == whole.times[45:55].tolist()
    kept = [key for key in part.keys if key.name in {GENERATION_TOKENS.full_name, KV_USAGE.full_name}]
    assert len(kept) == 2
    for key in part.keys:
        assert np.array_equal(
            part.column(key), whole.between(part.start, part.end).column(key), equal_nan=True
        ), key


def test_raw_series_in_a_long_table_are_derived_too(raw: Path, tmp_path: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415 - of this test alone

    from analysis.history.openmetrics import read_openmetrics  # noqa: PLC0415

    rows: dict[str, list[object]] = {"time": [], "metric": [], "value": []}
    labels: list[dict[str, str]] = []
    for each in read_openmetrics(raw).series():
        for at, value in zip(each.times.tolist(), each.values.tolist(), strict=True):
            rows["time"].append(round(at * 1000))
            rows["metric"].append(each.key.name)
            rows["value"].append(value)
            labels.append(dict(each.key.labels))
    columns = {
        name: [each.get(name) for each in labels]
        for name in sorted({name for each in labels for name in each})
    }
    table = pa.table({**rows, **columns}).set_column(
        0, "time", pa.array(rows["time"], pa.int64()).cast(pa.timestamp("ms", tz="UTC"))
    )
    pq.write_table(table, tmp_path / "raw.parquet")
    ours, theirs = read(str(tmp_path / "raw.parquet")).frame, read(str(raw)).frame
    assert set(ours.keys) == set(theirs.keys)
    for key in ours.keys:
        assert np.array_equal(ours.column(key), theirs.column(key), equal_nan=True)


def test_progress_goes_from_nothing_to_all(folder: Path, raw: Path) -> None:
    for form in (folder / "dump", folder / "long", raw):
        told: list[float] = []
        read(str(form), progress=told.append)
        assert told
        assert told[-1] == 1.0
        assert all(0 <= each <= 1 for each in told)


def test_what_is_no_source_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="no such file or folder; a server is given by its URL"):
        read(str(tmp_path / "none"))
    with pytest.raises(HistoryError, match=f"is a folder without {RECORDING} or {DUMP}"):
        read(str(tmp_path))
    with pytest.raises(HistoryError, match="only http and https are read"):
        read("ftp://prometheus:9090")
    for url, told in (
        ("ftp://me:secret@host/x", "ftp://host/x: only"),
        ("HTTP://me:secret@host", "http://host: a"),
    ):
        with pytest.raises(HistoryError, match=told) as refused:
            read(url)
        assert "secret" not in str(refused.value)
    (tmp_path / "other.db").write_bytes(b"SQLite format 3\0" + b"x" * 100)
    with pytest.raises(HistoryError, match=r"other\.db"):
        read(str(tmp_path / "other.db"))
    (tmp_path / "cut.parquet").write_bytes(b"PAR1" + b"x" * 100)
    with pytest.raises(HistoryError, match="is no whole Parquet file"):
        read(str(tmp_path / "cut.parquet"))
    (tmp_path / "page.html").write_text("<html>sign in</html>\n")
    with pytest.raises(HistoryError, match="is no metrics text"):
        read(str(tmp_path / "page.html"))
    if importlib.util.find_spec("analysis.history.server") is None:
        with pytest.raises(HistoryError, match="servers can't be read by this installation"):
            read("http://127.0.0.1:9")


def test_a_range_or_a_step_that_holds_nothing_is_refused(folder: Path) -> None:
    with pytest.raises(HistoryError, match="an empty range, 2027-01-15T08:01:00Z to 2027-01-15T08:00:30Z"):
        read(str(folder / "dump"), START + 60, START + 30)
    with pytest.raises(HistoryError, match="a step of 0 s"):
        read(str(folder / "dump"), step_seconds=0)


def test_times_as_people_write_them() -> None:
    assert parse_time("1790000000") == 1_790_000_000.0
    assert parse_time("2026-09-21T14:13:20Z") == 1_790_000_000.0
    assert parse_time("2026-09-21T16:13:20+02:00") == 1_790_000_000.0
    assert parse_time(" 2026-09-21 14:13:20 ") == 1_790_000_000.0
    assert parse_time("-2h", 1_790_000_000.0) == 1_790_000_000.0 - 7200
    assert parse_time("-1.5d", 1_790_000_000.0) == 1_790_000_000.0 - 129_600
    assert parse_time("-90s", 1_790_000_000.0) == 1_790_000_000.0 - 90
    with pytest.raises(ValueError, match=r"'yesterday' is neither .* a time before the end is written -2h"):
        parse_time("yesterday")
    with pytest.raises(ValueError, match="'-2h' counts back from the end, and none is given"):
        parse_time("-2h")
    with pytest.raises(ValueError, match="milliseconds"):
        parse_time("1790000000000")


def test_a_server_without_sidecars_is_derived_from_as_a_dump_is(raw: Path, tmp_path: Path) -> None:
    pytest.importorskip("analysis.history.server")
    source = tmp_path / "raw.om"
    source.write_text(by_series(raw.read_text()))
    start, end = read(str(raw)).frame.start, read(str(raw)).frame.end
    with serving(source, tmp_path) as prometheus:
        found = read(prometheus.url, start, end)
        usage = read(prometheus.url, start, end, names={KV_USAGE.full_name})
        own = read(prometheus.url, start, end, names={"vllm:kv_cache_usage_perc"})
        with pytest.raises(HistoryError, match="name its start"):
            read(prometheus.url)
    told = read(str(raw)).frame
    assert found.derived > usage.derived
    assert found.frame.step_seconds == 1.0
    assert {key.name for key in usage.frame.keys} == usage.derived == {KV_USAGE.full_name}
    assert {key.name for key in own.frame.keys} == {"vllm:kv_cache_usage_perc"}
    # a server's frame has no word of how long a scrape took, so pages are seen a second earlier
    for signal in (KV_USAGE, GENERATION_TOKENS):
        ours, theirs = found.frame.select(signal).values[:, 0], told.select(signal).values[:, 0]
        assert set(theirs[np.isfinite(theirs)]) <= set(ours[np.isfinite(ours)])
