"""How fast detection is on one core, in CPU time: the rolling median beside others', scores, flags, all from a file.

Each figure is the best of several rounds, all in turn, over series of a day at a second. Others' medians are
bottleneck's and pandas', over the same series and window.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import bottleneck as bn
import numpy as np
import pandas as pd

from analysis.anomaly import of_frame
from analysis.compiling import has_numba
from analysis.frame import Frame, Key
from analysis.history.history import History
from analysis.history.parquet import load, store
from analysis.rolling_median import rolling_median
from analysis.scores import scores
from exporter.derive.blocks import KV_USAGE
from tests.bench import report
from tests.bench.report import Figure

BAR_MEDIAN = 100.0
BAR_MEDIAN_WITHOUT_NUMBA = 15.0
BAR_SCORES = 20.0
BAR_PARQUET_TO_FLAGS = 3.0
_INSTANTS = 86_400
_SERIES = 20
_FLEET_SERIES = 200
"""17.28 million points: a day of a small fleet."""
_WINDOW = 301
_ROUNDS = 60
_START = 1_800_000_000.0


def _day(seed: int) -> np.ndarray:
    """A usage that wanders, with a wave, noise and an incident."""
    chance = np.random.default_rng(seed)
    at = np.arange(_INSTANTS)
    drift = np.cumsum(chance.normal(0.0, 0.001, _INSTANTS))
    values = 0.5 + 0.1 * np.sin(at / 600) + drift - drift.mean() + chance.normal(0.0, 0.03, _INSTANTS)
    values[40_000:41_000] += 0.6
    return np.asarray(values)


def _best(rounds: dict[str, Callable[[], object]]) -> dict[str, float]:
    """CPU seconds of each at its best; the first round is for compiling and isn't counted."""
    seconds: dict[str, list[float]] = {name: [] for name in rounds}
    for turn in range(_ROUNDS + 1):
        for name, work in rounds.items():
            if name == "pandas" and turn > 2:
                continue
            began = time.process_time()
            work()
            if turn:
                seconds[name].append(time.process_time() - began)
    return {name: min(times) for name, times in seconds.items()}


def _first_call() -> float:
    """CPU seconds of a fresh process' first median less its second, with nothing compiled before."""
    code = (
        "import time, numpy as np\n"
        "from analysis.rolling_median import rolling_median\n"
        "from analysis.scores import scores\n"
        "values = np.arange(1000.0)\n"
        "took = []\n"
        "for _ in range(2):\n"
        "    began = time.process_time(); scores(values); took.append(time.process_time() - began)\n"
        "print(took[0] - took[1])"
    )
    with tempfile.TemporaryDirectory() as folder:
        times = [
            float(subprocess.check_output([sys.executable, "-c", code], env=_own_cache(folder), text=True))
            for _ in range(2)
        ]
    report.line(
        f"  first scores of a process: {times[0]:.1f} s of compiling, {times[1]:.1f} s once it is kept"
    )
    return times[0]


def _from_parquet_to_flags(folder: Path) -> tuple[float, int]:
    """CPU seconds, of all threads, from a stored day of a fleet to its flags, at best of three; and how many."""
    file = folder / "day.parquet"
    columns = np.empty((_INSTANTS, _FLEET_SERIES), order="F")
    for place in range(_FLEET_SERIES):
        columns[:, place] = _day(place).astype(np.float32)
    store(History(_frame(columns), "made up"), file)
    took = []
    for _ in range(3):
        began = time.process_time()
        found = of_frame(load(file).frame)
        took.append(time.process_time() - began)
    return min(took), len(found.flags)


def _frame(columns: np.ndarray) -> Frame:
    keys = tuple(Key.of(KV_USAGE.full_name, {"engine": f"engine-{each}"}) for each in range(columns.shape[1]))
    return Frame(_START + np.arange(_INSTANTS, dtype=np.float64), 1.0, keys, columns)


def _own_cache(folder: str) -> dict[str, str]:

    return {**os.environ, "NUMBA_CACHE_DIR": folder}


def main() -> None:
    """Prints the figures."""
    values = _day(1)
    series = pd.Series(values)
    rounds: dict[str, Callable[[], object]] = {
        "plain": lambda: rolling_median(values, _WINDOW, compiled=False),
        "bottleneck": lambda: bn.move_median(values, _WINDOW),
        "pandas": lambda: series.rolling(_WINDOW).median(),
        "scores": lambda: scores(values),
        "read": values.sum,
    }
    if has_numba():
        rounds["compiled"] = lambda: rolling_median(values, _WINDOW, compiled=True)
        report.record(Figure("detection, compiling at first use", _first_call(), "s of CPU"))
    speed = {name: _INSTANTS / seconds / 1e6 for name, seconds in _best(rounds).items()}
    unit = "million points a second"
    if has_numba():
        name = f"rolling median of {_WINDOW}, with numba"
        report.record(Figure(name, speed["compiled"], unit, BAR_MEDIAN, better="higher"))
    report.record(
        Figure("the same without numba", speed["plain"], unit, BAR_MEDIAN_WITHOUT_NUMBA, better="higher")
    )
    report.record(Figure("the same by bottleneck, not centred", speed["bottleneck"], unit))
    report.record(Figure("the same by pandas", speed["pandas"], unit))
    report.record(Figure("scores, the full detector", speed["scores"], unit, BAR_SCORES, better="higher"))
    report.line(f"  one read of the values: {speed['read']:.0f} {unit}")

    frame = _frame(np.column_stack([_day(seed) for seed in range(_SERIES)]))
    began = time.process_time()
    found = of_frame(frame)
    seconds = time.process_time() - began
    report.line(f"  {len(found.flags)} flags in {_SERIES} series of a day")
    report.record(Figure("flags", _SERIES * _INSTANTS / seconds / 1e6, unit))
    with tempfile.TemporaryDirectory() as folder:
        seconds, count = _from_parquet_to_flags(Path(folder))
    points = _FLEET_SERIES * _INSTANTS / 1e6
    report.line(f"  {count} flags in {_FLEET_SERIES} series of a day")
    name = f"{points:.2f} million points from Parquet to flags"
    report.record(Figure(name, seconds, "s of CPU", BAR_PARQUET_TO_FLAGS))


if __name__ == "__main__":
    report.standalone(main)
