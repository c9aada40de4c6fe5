"""The past of one worker in a real server: our signals as they are scraped each 15 s, day after day."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from exporter.catalogue import SIGNALS
from exporter.signal import Kind, Signal
from tests.support import remote_write

STEP_SECONDS = 15
SERIES = 200
_SCRAPED_AT = 7.123
"""Of each step: a scrape is due at some instant that its target's name decides."""
_HOUR = 3600


def series() -> list[tuple[Signal, dict[str, str]]]:
    """Signals with labels of one worker: two ranks, or GPUs, of each."""
    found = [(signal, f"{rank}") for signal in SIGNALS for rank in range(2)]
    return [
        (signal, {"engine": "worker-1", "instance": "10.0.0.1:9400", "job": "thrashold", "rank": rank})
        for signal, rank in found[:SERIES]
    ]


def instants(start: int, days: float) -> npt.NDArray[np.float64]:
    """When it is scraped, in seconds."""
    return np.asarray(start + STEP_SECONDS * np.arange(round(days * 86_400 / STEP_SECONDS)) + _SCRAPED_AT)


def values(place: int, times: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Of the series at that place: a counter rises, a gauge sways through the day with full digits."""
    signal, _ = series()[place]
    day = times / 86_400
    if signal.kind is Kind.COUNTER:
        return np.asarray(np.floor((times - 1_700_000_000.0) * (place + 1) * 3.0))
    return np.asarray(
        0.5 + 0.4 * np.sin(2 * np.pi * (day + place / 7)) + 0.1 * np.sin(1e4 * day * (place + 1))
    )


def write(send: Callable[[bytes], None], start: int, days: float) -> int:
    """Hand it over by remote write, an hour after the other; gives the number of samples."""
    times = instants(start, days)
    of_all = [(labels | {"__name__": signal.full_name}) for signal, labels in series()]
    an_hour = _HOUR // STEP_SECONDS
    for low in range(0, len(times), an_hour):
        at = times[low : low + an_hour]
        milliseconds = np.round(at * 1000).astype(np.int64)
        send(
            remote_write.body(
                (labels, remote_write.samples(milliseconds, values(place, at)))
                for place, labels in enumerate(of_all)
            )
        )
    return len(times) * len(of_all)
