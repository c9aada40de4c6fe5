"""Change points: values a second on one core, beside ruptures' Pelt and KernelCPD where they install.

Series of 1,440 values, a day of minutes, of five kinds. "Cut" is the search for the partition alone, which is what the
others do; "all" is what a caller gets, with scaling, levels and strengths. Ours may fit a line to a stretch, theirs a
level. THRASHOLD_BENCH_PEERS=no leaves the others out.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from analysis.changepoint import change_points
from analysis.compiling import has_numba
from analysis.partition import breaks, cut
from tests.bench import report
from tests.bench.environments import CannotInstallError, Environment
from tests.bench.report import Figure

COUNT = 1440
BAR = 5.0
_PENALTY = 0.08 * COUNT
_SHORTEST = 5
RUPTURES = Environment("ruptures", ("ruptures==1.1.10",))
_THEIRS = """
import json, sys, time
import numpy as np, ruptures
kinds = np.load(sys.argv[1])
def rate(make, count, penalty):
    begun, done = time.process_time(), 0
    while time.process_time() - begun < 1.0:
        make().fit(kinds[done % len(kinds)][:count]).predict(pen=penalty)
        done += 1
    return done * count / (time.process_time() - begun) / 1e6
penalty = float(sys.argv[2])
print(json.dumps({
    "KernelCPD, linear": rate(lambda: ruptures.KernelCPD(kernel="linear", min_size=5), kinds.shape[1], penalty),
    "Pelt, l2": rate(lambda: ruptures.Pelt("l2", min_size=5, jump=1), kinds.shape[1] // 4, penalty / 4),
}))
"""


def main() -> None:
    """Measures."""
    kinds = _kinds()
    report.record(
        Figure("change points, all", _rate(change_points, kinds), "million values/s", BAR, "higher")
    )
    scaled = [values / values.std() for values in kinds]
    ours = _rate(lambda values: breaks(values, _PENALTY, _SHORTEST), scaled)
    report.record(Figure("change points, cut", ours, "million values/s", BAR, "higher"))
    if has_numba():
        plain = _rate(lambda values: cut(values, _PENALTY, _SHORTEST), scaled)
        report.record(Figure("change points, cut without numba", plain, "million values/s"))
    if os.environ.get("THRASHOLD_BENCH_PEERS") != "no":
        for name, theirs in _peers(scaled).items():
            report.record(Figure(f"ruptures {name}", theirs, "million values/s"))
            report.record(Figure(f"cut over ruptures {name}", ours / theirs, "times"))


def _kinds() -> list[NDArray[np.float64]]:
    chance = np.random.default_rng(1)
    noise = chance.normal(size=COUNT)
    day = 3 * np.sin(np.arange(COUNT) * 2 * np.pi / COUNT)
    incident = 8.0 * ((np.arange(COUNT) >= 700) & (np.arange(COUNT) < 820))
    return [
        noise,
        noise + incident,
        noise + day + incident,
        noise + np.repeat(3 * chance.normal(size=12), COUNT // 12),
        np.cumsum(noise),
    ]


def _rate(find: Callable[[NDArray[np.float64]], object], kinds: list[NDArray[np.float64]]) -> float:
    """Of the best of three rounds, in millions a CPU second."""
    for values in kinds:
        find(values)
    best = 0.0
    for _ in range(3):
        begun, done = time.process_time(), 0
        while time.process_time() - begun < 0.5:
            find(kinds[done % len(kinds)])
            done += 1
        best = max(best, done * COUNT / (time.process_time() - begun) / 1e6)
    return best


def _peers(scaled: list[NDArray[np.float64]]) -> dict[str, float]:
    try:
        RUPTURES.install()
    except CannotInstallError as error:
        report.line(f"  ruptures is left out: {error}")
        return {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kinds.npy"
        np.save(path, np.array(scaled))
        told = subprocess.run(
            [str(RUPTURES.command("python")), "-c", _THEIRS, str(path), str(_PENALTY)],
            capture_output=True,
            check=True,
            timeout=240,
        )
    found: dict[str, float] = json.loads(told.stdout)
    return found


if __name__ == "__main__":
    main()
