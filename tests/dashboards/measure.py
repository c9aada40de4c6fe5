"""How long boards take on a real Prometheus: ``python -m tests.dashboards.measure fleet --workers 1000 --hours 6``.

A past is made up for as many engines, each with its GPUs, scraped each 15 s; each query of the board is then asked as
Grafana asks it for a panel of 1,000 points, one after the other.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from alerts.catalogue import RECORDINGS
from alerts.pack_settings import PackSettings
from dashboards.catalogue import boards
from dashboards.lint.finding import panels_of
from dashboards.queries import interpolated
from exporter.catalogue import SIGNALS
from exporter.signal import PEAK_SUFFIX, Kind, Signal
from tests.dashboards.past import SELECTOR, matched
from tests.support.prometheus import add_blocks, serving

_RECORDED = {each.name: each for group in RECORDINGS.values() for each in group.recordings}
_BLOCK = 7200
"""Seconds of one of Prometheus's blocks."""
END, SCRAPE, POINTS = 1_790_000_000, 15, 1000


def main() -> int:
    """Gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.dashboards.measure", description=__doc__)
    parser.add_argument("board", choices=("fleet", "worker", "incident", "sidecar"))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--gpus", type=int, default=1, help="of each")
    parser.add_argument("--hours", type=float, default=6.0)
    given = parser.parse_args()
    board = boards(PackSettings())[given.board].to_json()
    asked = [(panel, target) for panel in panels_of(board) for target in panel["targets"]]
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "past.om"
        texts = [str(target["expr"]) for _, target in asked]
        samples = 0
        for begin in range((END - int(given.hours * 3600)) // _BLOCK * _BLOCK, END + 1, _BLOCK):
            # promtool reads a whole file once for each block that it makes of it: a file a block
            stamps = range(max(begin, END - int(given.hours * 3600)), min(begin + _BLOCK, END + 1), SCRAPE)
            samples += _write(file, texts, given.workers, given.gpus, stamps)
            add_blocks(file, Path(scratch), fill_seconds=600)
        with serving(None, Path(scratch)) as prometheus:
            took: dict[str, float] = {}
            for panel, target in asked:
                title = panel["title"]
                finest = 60 * int(panel.get("interval", "0m").removesuffix("m"))
                step = max(SCRAPE, finest, math.ceil(given.hours * 3600 / POINTS))
                window = f"{max(step + SCRAPE, 4 * SCRAPE)}s"
                picked = {
                    "cluster": ".*",
                    "engine": "engine-0" if given.board == "worker" else ".*",
                    "instance": ".*",
                }
                text = interpolated(str(target["expr"]), picked, window)
                start = END if target["instant"] else END - given.hours * 3600
                began = time.perf_counter()
                prometheus.query_range(text, start, END, step)
                took[title] = took.get(title, 0.0) + time.perf_counter() - began
    sys.stdout.write(
        f"{given.board}: {given.workers} workers x {given.gpus} GPUs, {given.hours:g} h, {samples:,} samples:"
        f" {len(took)} panels in {sum(took.values()):.1f} s one after the other\n"
    )
    for title, seconds in sorted(took.items(), key=lambda each: -each[1])[:5]:
        sys.stdout.write(f"  {seconds:6.2f} s  {title}\n")
    return 0


def _write(file: Path, texts: list[str], workers: int, gpus: int, stamps: range) -> int:
    asked: dict[str, set[tuple[tuple[str, str], ...]]] = {}
    for text in texts:
        for name, labels in SELECTOR.findall(text):
            asked.setdefault(name, set()).add(tuple(matched(labels).items()))
    signals = {signal.full_name: signal for signal in SIGNALS} | {
        signal.full_name + PEAK_SUFFIX: signal for signal in SIGNALS if signal.peak
    }
    # values differ from sample to sample, so that blocks are as large as real ones
    gauges = [f"{0.5 + 0.4 * math.sin(at / 977):.4f} {at}\n" for at in stamps]
    places = ((at - END) // SCRAPE + 10**6 for at in stamps)
    counters = [f"{place * 7 + place % 5} {at}\n" for place, at in zip(places, stamps, strict=True)]
    samples = 0
    with file.open("w", encoding="utf-8") as out:
        for name, wanted in sorted(asked.items()):
            signal = signals.get(name)
            if signal is None:
                # what is recorded is of a cluster, however many workers it has
                out.write(f"# TYPE {name} gauge\n")
                for where in sorted(wanted):
                    told = dict.fromkeys(_RECORDED[name].labels, "a") | dict(where) | {"cluster": "one"}
                    joined = ",".join(f'{label}="{value}"' for label, value in told.items())
                    out.writelines(f"{name}{{{joined}}} {each}" for each in gauges)
                    samples += len(stamps)
                continue
            counts = signal.kind is Kind.COUNTER
            out.write(f"# TYPE {name.removesuffix('_total') if counts else name} {signal.kind.value}\n")
            for labels in _subjects(signal, wanted, workers, gpus):
                joined = ",".join(f'{label}="{value}"' for label, value in labels.items())
                out.writelines(f"{name}{{{joined}}} {each}" for each in (counters if counts else gauges))
                samples += len(stamps)
        out.write("# EOF\n")
    return samples


def _subjects(
    signal: Signal, wanted: set[tuple[tuple[str, str], ...]], workers: int, gpus: int
) -> Iterator[dict[str, str]]:
    per_gpu, per_worker = "uuid" in signal.label_names, {"engine", "uuid"} & set(signal.label_names)
    for worker in range(workers if per_worker else 1):
        for gpu in range(gpus if per_gpu else 1):
            known = {"engine": f"engine-{worker}", "rank": "0", "uuid": f"GPU-{worker}-{gpu}"}
            for where in sorted(wanted):
                labels = {label: known.get(label, "a") for label in signal.label_names} | dict(where)
                yield labels | {"cluster": "one", "instance": f"sidecar-{worker}:9807", "job": "thrashold"}


if __name__ == "__main__":
    sys.exit(main())
