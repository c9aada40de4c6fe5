"""Reading history from a server: JSON against the standard reader, and a week of one worker through a real Prometheus.

The week (``THRASHOLD_BENCH_DAYS`` for another number of days) is written by remote write into a real Prometheus in a
temporary folder and read in a process of its own, whose memory is counted alone. On a busy machine the clock tells of
others; so the bar is for the processor time of reader and server together, as if one core had to do all of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from analysis.history.server_json import read_matrix
from tests.bench import report
from tests.bench.report import Figure
from tests.support import worker_history
from tests.support.prometheus import serving, tool

BAR_MILLION_POINTS = 3.5
BAR_MONTH_SECONDS = 60.0
BAR_MEGABYTES = 1000.0
_DAYS_OF_A_MONTH = 30
_START = 1_793_491_200
_SERIES, _POINTS = 100, 5760
_RUNS = 5
_CPU = "process_cpu_seconds_total"

_READ = """
import json, sys, time
from analysis.history.server import read_server
url, start, end, folder = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
from pathlib import Path
began, cpu = time.monotonic(), time.process_time()
frame = read_server(url, start, end, cache_folder=Path(folder), now=end + 86400).frame
# of this program alone: getrusage also knows of the process that it was forked from
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(json.dumps({
    "seconds": time.monotonic() - began, "cpu": time.process_time() - cpu,
    "megabytes": int(peak.split()[1]) * 1024 / 1e6,
    "values": int((frame.values == frame.values).sum()), "step": frame.step_seconds,
}))
"""


def _body(text: Callable[[float], str]) -> bytes:
    """An answer of Prometheus with as many series as a day has samples."""
    times = worker_history.instants(_START, _POINTS * worker_history.STEP_SECONDS / 86_400)
    result = []
    for place, (signal, labels) in enumerate(worker_history.series()[:_SERIES]):
        values = worker_history.values(place, times)
        pairs = ",".join(
            f'[{at:.3f},"{text(value)}"]' for at, value in zip(times, values.tolist(), strict=True)
        )
        metric = json.dumps({"__name__": signal.full_name, **labels})
        result.append(f'{{"metric":{metric},"values":[{pairs}]}}')
    joined = ",".join(result)
    return f'{{"status":"success","data":{{"resultType":"matrix","result":[{joined}]}}}}'.encode()


def _standard(body: bytes) -> None:
    for each in json.loads(body)["data"]["result"]:
        np.array([at for at, _ in each["values"]])
        np.array([float(value) for _, value in each["values"]])


def _cpu(read: Callable[[bytes], object], body: bytes) -> float:
    best = float("inf")
    for _ in range(_RUNS):
        began = time.process_time()
        read(body)
        best = min(best, time.process_time() - began)
    return best


def _json() -> None:
    for name, text in (("all digits", repr), ("four digits", lambda value: f"{value:.4g}")):
        body = _body(text)
        own, standard = _cpu(read_matrix, body), _cpu(_standard, body)
        points = _SERIES * _POINTS / 1e6
        report.record(
            Figure(
                f"history, JSON of {name}",
                points / own,
                "million points per CPU s",
                BAR_MILLION_POINTS,
                "higher",
            )
        )
        report.record(Figure(f"history, JSON of {name} against json", standard / own, "times as fast"))


def _worker(folder: Path, days: int) -> None:
    arguments = ("--web.enable-remote-write-receiver", "--storage.tsdb.min-block-duration=1d")
    with serving(None, folder, *arguments, "--storage.tsdb.max-block-duration=1d") as server:
        began = time.monotonic()
        written = worker_history.write(server.write, _START, days)
        report.line(f"  {written / 1e6:.1f} million samples written in {time.monotonic() - began:.0f} s")
        end = _START + days * 86_400
        for what in ("", ", again"):
            before = server.own(_CPU)
            said = subprocess.run(
                [sys.executable, "-c", _READ, server.url, str(_START), str(end), str(folder / "cache")],
                check=True,
                capture_output=True,
                text=True,
                timeout=600,
            )
            found = json.loads(said.stdout)
            missing = written - found["values"]
            # the last scrape stands at the instant after the range
            if missing > worker_history.SERIES or found["step"] != worker_history.STEP_SECONDS:
                report.loud(f"{missing} of {written} samples are missing, the step is {found['step']} s")
            name = f"history, {days} days of a worker{what}"
            report.record(Figure(name, found["seconds"], "s"))
            report.record(Figure(f"{name}, CPU", found["cpu"], "s"))
            both = found["cpu"] + server.own(_CPU) - before
            bar = BAR_MONTH_SECONDS * days / _DAYS_OF_A_MONTH
            report.record(Figure(f"{name}, CPU with the server's", both, "s", bar))
            report.record(Figure(f"{name}, memory", found["megabytes"], "MB", BAR_MEGABYTES))
        kept = sum(path.stat().st_size for path in (folder / "cache").glob("*/*"))
        report.record(Figure("history, kept in the cache", kept / written, "bytes a sample"))


def main() -> None:
    """Prints the figures."""
    _json()
    tool("prometheus")
    with tempfile.TemporaryDirectory() as name:
        _worker(Path(name), int(os.environ.get("THRASHOLD_BENCH_DAYS", "7")))


if __name__ == "__main__":
    report.standalone(main)
