"""The long table that an analyst reads: the same values as the OpenMetrics export, bit for bit."""

from __future__ import annotations

import io
import math
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from exporter import recorder_parquet, recorder_selection
from exporter.recorder_command import recorder as command
from exporter.recorder_parquet import export_parquet
from exporter.recorder_reader import Recording
from exporter.recorder_selection import Selection
from exporter.recorder_writer import RecordingWriter, Retention
from exporter.signal import Kind
from tests.exporter.golden import KV_BYTES_PER_TOKEN
from tests.exporter.running import ROOT
from tests.exporter.test_recorder_export import exported, parsed
from tests.support.recorder import START, TOKENS, second, signal, snapshot
from tests.support.replay import replayed

ODD = signal("odd", Kind.GAUGE, ("time", "text"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A real engine's signals, and values that are none."""
    path = tmp_path / "recording"
    writer = RecordingWriter(path, Retention())
    for cycle in replayed("vllm-0.32.0", KV_BYTES_PER_TOKEN):
        writer.write(cycle.snapshot)
    for place, value in enumerate((math.nan, math.inf, -math.inf, -0.0, 1e-42)):
        writer.write(snapshot(START + place, (ODD, ("late", 'a "text"\n'), value), (TOKENS, (), math.nan)))
    writer.close()
    return path


def written(file: Path, selection: Selection | None = None) -> io.BytesIO:
    out = io.BytesIO()
    with Recording(file) as recording:
        count = export_parquet(recording, out, selection)
    assert pq.ParquetFile(out).metadata.num_rows == count
    return out


def columns(out: io.BytesIO) -> pd.DataFrame:
    return pd.read_parquet(out)


def by_series(
    table: pd.DataFrame,
) -> dict[tuple[str, tuple[tuple[str, str], ...]], list[tuple[float, float]]]:
    labels = [name for name in table.columns if name not in {"time", "metric", "value"}]
    found: dict[tuple[str, tuple[tuple[str, str], ...]], list[tuple[float, float]]] = {}
    for row in table.to_dict("records"):
        told = {name: row[name] for name in labels if isinstance(row[name], str)}
        said = tuple(sorted((name.removeprefix("exported_"), text) for name, text in told.items()))
        found.setdefault((row["metric"], said), []).append((row["time"].timestamp(), row["value"]))
    return found


def test_it_holds_what_the_openmetrics_export_holds(file: Path) -> None:
    table = by_series(columns(written(file)))
    text = parsed(exported(file))
    assert list(table) == list(text)
    assert sum(map(len, table.values())) > 5000
    for key, pairs in text.items():
        assert repr(table[key]) == repr(pairs)  # each digit, the sign of zero, and what is no number


def test_columns_are_what_pandas_makes_least_of(file: Path) -> None:
    table = columns(written(file))
    assert list(table.columns[:2]) == ["time", "metric"]
    assert table.columns[-1] == "value"
    assert table["time"].dtype == pd.DatetimeTZDtype("ms", "UTC")
    assert table["engine"].dtype == "category"
    assert table["value"].dtype == "float64"
    assert set(table["exported_time"].dropna()) == {"late"}, "a label that is called like a column"
    blocks = table[table["metric"] == "thrashold_kv_blocks"]
    wide = blocks.pivot_table(index="time", columns="state", values="value")
    assert list(wide.columns) == ["free", "total", "used"]
    assert (wide["free"] + wide["used"] == wide["total"]).all()


def test_a_reader_of_one_metric_skips_the_rest(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = written(file)
    monkeypatch.setattr(recorder_parquet, "_ROWS_AT_ONCE", 200)
    monkeypatch.setattr(recorder_selection, "_VALUES_AT_ONCE", 1)
    out = written(file)
    pd.testing.assert_frame_equal(columns(out), columns(whole))
    metadata = pq.ParquetFile(out).metadata
    place = metadata.schema.to_arrow_schema().names.index("metric")
    ranges = [metadata.row_group(each).column(place).statistics for each in range(metadata.num_row_groups)]
    held = [each for each in ranges if each.min <= "thrashold_kv_usage_ratio" <= each.max]
    assert 0 < len(held) <= 3
    assert len(ranges) > 20


def test_a_range_and_signals_are_taken(file: Path) -> None:
    some = columns(written(file, Selection(START, START + 2, ("odd",))))
    assert [repr(value) for value in some["value"]] == ["nan", "inf"]
    assert columns(written(file, Selection(end=0.0))).empty


def test_the_command_writes_it_by_the_name_of_the_file(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "flight.parquet"
    result = CliRunner().invoke(command, ["export", str(file), "-o", str(out), "--signal", "kv_usage_ratio"])
    assert result.exit_code == 0, result.output
    table = pd.read_parquet(out)
    assert result.stderr == f"{len(table)} values\n"
    assert set(table["metric"]) == {"thrashold_kv_usage_ratio"}


def test_without_the_extra_it_says_which(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "flight.parquet"
    script = "import sys; sys.modules['pyarrow'] = None; from thrashold import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "recorder", "export", str(file), "-o", str(out)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        "Error: Parquet needs pyarrow, which comes with an extra: pip install 'thrashold[analysis]';"
        " OpenMetrics goes to any other OUT\n"
    )
    assert not out.exists()


def test_days_are_written_in_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is held at once is bounded: the rows of a group, and what one look at the recording gives."""
    path = tmp_path / "recording"
    writer = RecordingWriter(path, Retention())
    for place in range(200):
        writer.write(second(place, width=20))
    writer.close()
    monkeypatch.setattr(recorder_parquet, "_ROWS_AT_ONCE", 1000)
    groups = pq.ParquetFile(written(path)).metadata
    assert max(groups.row_group(each).num_rows for each in range(groups.num_row_groups)) < 1000 + 200
