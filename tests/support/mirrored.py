"""A real Prometheus, and a real VictoriaMetrics that it writes to as it would to any store of a fleet."""

from __future__ import annotations

import contextlib
import itertools
import struct
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from tests.support import victoria_metrics
from tests.support.prometheus import Prometheus, started
from tests.support.remote_write import body, samples
from tests.support.scraped import Points, Scraped, labels_of

_STALE = struct.unpack("<d", struct.pack("<Q", 0x7FF0000000000002))[0]
_SERIES_A_REQUEST = 2000
_MOST_SECONDS = 120.0
_SENT, _BYTES = "prometheus_remote_storage_samples_total", "prometheus_remote_storage_bytes_total"
_PENDING = "prometheus_remote_storage_samples_pending"


@dataclass(frozen=True, slots=True)
class Mirrored:
    """Both, and what the one has sent to the other: samples, and bytes as they went over the wire."""

    prometheus: Prometheus
    victoria: Prometheus
    samples: int
    wire_bytes: float


@contextlib.contextmanager
def mirrored(kept: Scraped, folder: Path, every: float) -> Iterator[Mirrored]:
    """Both hold ``kept``, with staleness markers where a series has none for longer than ``every`` seconds, as a
    scrape and a rule leave them that no longer have it.

    All of it has to be of the time to come: a Prometheus writes on what it was given since it was started.
    """
    (folder / "victoria").mkdir()
    with victoria_metrics.serving(folder / "victoria") as victoria:
        settings = folder / "prometheus.yml"
        settings.write_text(yaml.safe_dump({"remote_write": [{"url": f"{victoria.url}/api/v1/write"}]}))
        with started(settings, folder / "data", "--web.enable-remote-write-receiver") as prometheus:
            written = _write(prometheus, kept, every)
            wait_sent(prometheus, written)
            victoria_metrics.flush(victoria)
            yield Mirrored(prometheus, victoria, written, prometheus.own(_BYTES))


def _write(server: Prometheus, kept: Scraped, every: float) -> int:
    """Gives the number of samples."""
    written = 0
    _, end = kept.span()
    for part in _parts(_series(kept)):
        made = []
        for labels, points in part:
            times, values = _marked(points, every, end)
            written += len(times)
            made.append((labels, samples(times, values)))
        server.write(body(made))
    return written


def _series(kept: Scraped) -> Iterator[tuple[Mapping[str, str], Points]]:
    for name, family in kept.series.items():
        for text, points in family.items():
            yield {"__name__": name, **labels_of(text)}, points


def _parts(
    series: Iterable[tuple[Mapping[str, str], Points]],
) -> Iterator[list[tuple[Mapping[str, str], Points]]]:
    left = iter(series)
    while part := list(itertools.islice(left, _SERIES_A_REQUEST)):
        yield part


def _marked(points: Points, every: float, end: float) -> tuple[np.ndarray, np.ndarray]:
    """Milliseconds and values, with the markers."""
    found: Points = []
    for (at, value), (then, _) in itertools.pairwise([*points, (end + every / 2, 0.0)]):
        found.append((at, value))
        if then - at > 1.5 * every:
            found.append((at + every, _STALE))
    times = np.array([round(at * 1000) for at, _ in found], np.int64)
    return times, np.array([value for _, value in found], np.float64)


def wait_sent(server: Prometheus, written: int) -> None:
    """Wait until it has written on so many samples. Raises RuntimeError: it doesn't."""
    until = time.monotonic() + _MOST_SECONDS
    while server.own(_SENT) < written or server.own(_PENDING):
        if time.monotonic() > until:
            raise RuntimeError(f"{server.own(_SENT):.0f} of {written} samples were written on")
        time.sleep(0.2)
