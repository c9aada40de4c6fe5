"""A recording as a Prometheus would have it: scraped every 15 s, with the labels of its target."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from pathlib import Path

from exporter.recorder_reader import Recording, Series
from exporter.signal import Kind

SCRAPE_SECONDS = 15.0
STALE_SECONDS = 1.5
"""How old a value of a recording of each second may be for a scrape to have seen it."""
TARGET = {"cluster": "drill", "instance": "sidecar:9808", "job": "thrashold"}


def write_scrapes(recording: Path, out: Path, phase: float) -> tuple[float, float]:
    """Write what scrapes at ``phase`` seconds past each multiple of 15 saw, as OpenMetrics.

    Gives the times of the first and the last scrape. Where a signal has no value within 1.5 s before a scrape, the
    scrape hasn't it. A block of Prometheus holds no staleness markers: the pack reads gauges over a minute anyway.
    """
    with Recording(recording) as opened:
        span = opened.span()
        assert span is not None, f"{recording} is empty"
        first = math.ceil((span[0] - phase) / SCRAPE_SECONDS) * SCRAPE_SECONDS + phase
        count = int((span[1] - first) // SCRAPE_SECONDS) + 1
        times = [first + SCRAPE_SECONDS * place for place in range(count)]
        with out.open("w", encoding="utf-8") as file:
            named = ""
            for series in opened.read():
                if series.name != named:
                    named = series.name
                    family = named.removesuffix("_total") if series.kind is Kind.COUNTER else named
                    file.write(f"# TYPE {family} {series.kind.value}\n")
                file.writelines(_lines(series, times))
            file.write("# EOF\n")
    return times[0], times[-1]


def _lines(series: Series, times: list[float]) -> Iterator[str]:
    name = f"{series.name}{{{_labels({**series.labels, **TARGET})}}}"
    for at in times:
        place = bisect_right(series.times, at) - 1
        if place >= 0 and series.times[place] > at - STALE_SECONDS:
            value = series.values[place]
            if not math.isfinite(value):
                value_text = "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
            else:
                value_text = repr(value)
            yield f"{name} {value_text} {at:.3f}\n"


def _labels(labels: Mapping[str, str]) -> str:
    def escaped(text: str) -> str:
        return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')

    return ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items())
