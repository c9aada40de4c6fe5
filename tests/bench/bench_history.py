"""How fast history is read from files, in CPU time, beside what others read the same files with.

A stored frame of a day of 200 series against pyarrow's own way to pandas and pandas itself, to float64 as ours; a
recording's OpenMetrics against prometheus_client's parser; and what deriving signals from an engine's own series costs
a page.
"""

from __future__ import annotations

import io
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from analysis.frame import Frame, Key, grid
from analysis.history.derived import derive
from analysis.history.history import History
from analysis.history.openmetrics import read_openmetrics
from analysis.history.parquet import load, read_long, store
from analysis.history.reading import read
from exporter.derive.blocks import KV_USAGE
from exporter.recorder_parquet import METRIC, TIME, VALUE
from tests.bench import report
from tests.bench.report import Figure
from tests.support.dumps import Scraped, dump, scrapes_of

BAR_PARQUET, BAR_OPENMETRICS = 50.0, 2.0
BAR_OVER_CLIENT = 20.0

_SERIES, _SECONDS = 200, 86_400
_START = 1_796_000_000.0
_ROUNDS = 5
_LONG_SERIES = 40
_DUMP_SERIES, _DUMP_SECONDS = 300, 900
_THEIR_SHARE = 10
_CAPTURE = "vllm-0.32.0"


def _cpu_seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _typical(works: dict[str, Callable[[], object]]) -> dict[str, float]:
    """CPU seconds of each; interleaved, so that a busy machine slows all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(_ROUNDS):
        for name, work in works.items():
            seconds[name].append(_cpu_seconds(work))
    return {name: median(times) for name, times in seconds.items()}


def _day() -> History:
    """A day of gauges, each rounded to float32 as a recorder keeps them."""
    chance = np.random.default_rng(7)
    values = np.empty((_SECONDS, _SERIES), order="F")
    for place in range(_SERIES):
        values[:, place] = np.cumsum(chance.normal(size=_SECONDS)).astype(np.float32)
    values[1000:1060] = np.nan
    keys = tuple(Key(KV_USAGE.full_name, (("engine", f"{place}:8000"),)) for place in range(_SERIES))
    return History(Frame(grid(_START, _START + _SECONDS, 1.0), 1.0, keys, values), "made up")


def _parquet(folder: Path) -> None:
    file, points = folder / "day.parquet", _SERIES * _SECONDS / 1e6
    store(_day(), file)
    found = _typical(
        {
            "ours": lambda: load(file),
            "pyarrow": lambda: pq.read_table(file).to_pandas().astype(np.float64),
            "pandas": lambda: pd.read_parquet(file).astype(np.float64),
        }
    )
    size = file.stat().st_size / 1e6
    report.line(f"  {points:.2f} M points, {size:.0f} MB of Parquet: {size / points:.1f} B a point")
    for name, seconds in found.items():
        report.line(f"  {name}: {seconds:.3f} s, {points / seconds:.0f} M points/s")
    ours, theirs = points / found["ours"], found["pyarrow"] / found["ours"]
    report.record(Figure("reading stored history", ours, "M points/s", BAR_PARQUET, better="higher"))
    report.record(Figure("speed of reading Parquet over pyarrow's to_pandas", theirs, "x"))


def _long(folder: Path) -> None:
    """As a recorder exports it: a row a value, series by series."""
    file, points = folder / "long.parquet", _LONG_SERIES * _SECONDS / 1e6
    chance = np.random.default_rng(9)
    instants = pa.array((np.arange(_SECONDS) + int(_START)) * 1000).cast(pa.timestamp("ms", tz="UTC"))
    names = pa.array([f"{place}:8000" for place in range(_LONG_SERIES)])
    tables = [
        pa.table(
            {
                TIME: instants,
                METRIC: pa.repeat(KV_USAGE.full_name, _SECONDS),
                "engine": pa.DictionaryArray.from_arrays(
                    pa.repeat(pa.scalar(place, pa.int32()), _SECONDS), names
                ),
                VALUE: chance.random(_SECONDS),
            }
        )
        for place in range(_LONG_SERIES)
    ]
    pq.write_table(pa.concat_tables(tables), file, compression="zstd", use_dictionary=[METRIC, "engine"])
    seconds = _typical({"ours": lambda: read_long(file).framed()})["ours"]
    report.record(Figure("reading a recorder's Parquet", points / seconds, "M points/s"))


def _text(seconds: int) -> str:
    """A dump as a recorder's export is, series by series."""
    chance = np.random.default_rng(8)
    out = io.StringIO()
    out.write("# TYPE thrashold_kv_usage_ratio gauge\n")
    for place in range(_DUMP_SERIES):
        prefix = f'thrashold_kv_usage_ratio{{engine="engine-{place}",model_name="llama-70b",rank="0"}}'
        for second, value in enumerate(chance.random(seconds).tolist()):
            out.write(f"{prefix} {value!r} {_START + second:.3f}\n")
    out.write("# EOF\n")
    return out.getvalue()


def _samples(text: str) -> list[object]:
    return [family.samples for family in text_string_to_metric_families(text)]  # type: ignore[no-untyped-call]


def _openmetrics(folder: Path) -> None:
    file, points = folder / "dump.om", _DUMP_SERIES * _DUMP_SECONDS / 1e6
    file.write_text(_text(_DUMP_SECONDS))
    part = _text(_DUMP_SECONDS // _THEIR_SHARE)
    found = _typical(
        {
            "ours": lambda: read_openmetrics(file).framed(),
            "prometheus_client": lambda: _samples(part),
        }
    )
    ours = points / found["ours"]
    theirs = points / _THEIR_SHARE / found["prometheus_client"]
    size = file.stat().st_size / 1e6
    report.line(f"  {points:.2f} M points, {size:.0f} MB of text: {size / found['ours']:.0f} MB/s")
    report.line(f"  prometheus_client: {theirs:.3f} M points/s")
    report.record(Figure("reading OpenMetrics", ours, "M points/s", BAR_OPENMETRICS, better="higher"))
    report.record(
        Figure(
            "speed of reading OpenMetrics over prometheus_client's",
            ours / theirs,
            "x",
            BAR_OVER_CLIENT,
            better="higher",
        )
    )


def _derived(folder: Path) -> None:
    scrapes = scrapes_of(_CAPTURE)
    file = folder / "raw.om"
    file.write_text(dump(Scraped({"instance": "worker-1:8000", "job": "vllm"}, scrapes)))
    raw = read_openmetrics(file)
    found = _typical(
        {
            "read": lambda: read_openmetrics(file),
            "derive": lambda: derive(raw),
            "all": lambda: read(str(file)),
        }
    )
    report.line(
        f"  {len(scrapes)} pages of a real engine, {len(raw)} samples: read {found['read'] * 1e3:.0f} ms, "
        f"derive {found['derive'] * 1e3:.0f} ms"
    )
    report.record(
        Figure(
            "signals derived from an engine's own series", found["derive"] / len(scrapes) * 1e3, "ms a page"
        )
    )


def main() -> None:
    """Prints the figures."""
    with tempfile.TemporaryDirectory() as folder:
        _parquet(Path(folder))
        _long(Path(folder))
        _openmetrics(Path(folder))
        _derived(Path(folder))


if __name__ == "__main__":
    report.standalone(main)
