"""ServeGen: how production models are used, client by client: rates in windows of 10 minutes, and lengths.

alibaba/ServeGen (Apache-2.0; arXiv 2505.09999). A model is a folder with, for each client, ``chunk-N-trace.csv``
(a window's start, its rate, the variation of the gaps, their distribution and its parameters) and
``chunk-N-dataset.json`` (how likely each length is, in windows of some hours). Of the twelve models of the paper the
repository has five; those of images have no single length of prompts and are refused.
"""

from __future__ import annotations

import heapq
import json
import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from drill.serving.content import Segment
from drill.workload.arrivals import Arrival, Stream
from drill.workload.contents import content_id
from drill.workload.lengths import Weighted
from drill.workload.trace_files import EXCERPTS, TraceError, lines

M_LARGE = EXCERPTS / "servegen-m-large"
M_MID = EXCERPTS / "servegen-m-mid"
M_SMALL = EXCERPTS / "servegen-m-small"
DEEPSEEK_R1 = EXCERPTS / "servegen-deepseek-r1"

_COLUMNS = 6
_OWN = 9
"""A kind of contents that no other stream of the same seed has."""
_SHAPES = ("Gamma", "Weibull")


@dataclass(frozen=True, slots=True)
class Window:
    """From ``start`` on: requests a second, and the gaps' distribution; ``shape``: inf = evenly."""

    start: float
    rate: float
    distribution: str
    shape: float

    def gap(self, chance: np.random.Generator) -> float:
        """One, in units of the mean gap."""
        if self.distribution == "Weibull":
            return float(chance.weibull(self.shape)) / math.gamma(1.0 + 1.0 / self.shape)
        return float(chance.gamma(self.shape)) / self.shape


@dataclass(frozen=True, slots=True)
class Client:
    """One client of a model. ``prompts`` and ``outputs`` by the start of their window, where it has any."""

    name: str
    windows: tuple[Window, ...]
    window_seconds: float
    starts: tuple[float, ...]
    prompts: tuple[Weighted, ...]
    outputs: tuple[Weighted, ...]

    def lengths(self, at: float) -> tuple[Weighted, Weighted]:
        """Of prompts and answers then: of the last window that has any, or of the first."""
        place = max(0, bisect_right(self.starts, at) - 1)
        return self.prompts[place], self.outputs[place]


def clients(folder: Path) -> list[Client]:
    """All clients of a model that have requests, by number. Raises TraceError."""
    traces = {_number(path): path for path in sorted(folder.glob("chunk-*-trace.csv*"))}
    lengths = {_number(path): path for path in sorted(folder.glob("chunk-*-dataset.json*"))}
    both = sorted(traces.keys() & lengths.keys())
    if not both:
        raise TraceError(folder, None, "has no chunk-N-trace.csv with a chunk-N-dataset.json beside it")
    found = (_client(traces[number], lengths[number], f"client-{number}") for number in both)
    return [client for client in found if client is not None]


def servegen(
    model: Sequence[Client], seed: int, scale: float = 1.0, tenant: str = "servegen", start: float = 0.0
) -> Stream:
    """Requests of all clients, at ``scale`` times their rates, from ``start`` of the traces on, which becomes 0 s."""
    if not 0 <= scale < math.inf:
        raise ValueError(f"rates can't be scaled by {scale}: take a number from 0 on")
    return Stream(
        lambda: heapq.merge(
            *(_requests(client, (seed, index), scale, tenant, start) for index, client in enumerate(model)),
            key=lambda one: one.seconds,
        )
    )


def _requests(
    client: Client, seed: tuple[int, int], scale: float, tenant: str, begin: float
) -> Iterator[Arrival]:
    chance = np.random.default_rng(seed)
    left: float | None = None
    count = 0
    for window in client.windows:
        at, end = max(window.start, begin), window.start + client.window_seconds
        rate = window.rate * scale
        if end <= begin or rate <= 0:
            continue
        while True:
            if left is None:
                left = window.gap(chance)
            due = at + left / rate
            if due >= end:
                left -= (end - at) * rate
                break
            at, left = due, None
            prompts, outputs = client.lengths(at)
            count += 1
            content = Segment(content_id(seed[0], _OWN, seed[1], count), prompts.draw(chance))
            yield Arrival(at - begin, (content,), outputs.draw(chance), tenant, client.name)


def _number(path: Path) -> int:
    part = path.name.split("-")[1]
    if not part.isdigit():
        raise TraceError(path, None, "is named like no client: chunk-N-... with a number is expected")
    return int(part)


def _client(trace: Path, dataset: Path, name: str) -> Client | None:
    windows = _windows(trace)
    prompts, outputs = _lengths(dataset)
    if not prompts:
        return None
    starts = [window.start for window in windows]
    width = min((after - before for before, after in pairwise(starts)), default=600.0)
    return Client(name, windows, width, tuple(prompts), tuple(prompts.values()), tuple(outputs.values()))


def _windows(path: Path) -> tuple[Window, ...]:
    found: list[Window] = []
    for number, line in lines(path):
        cells = line.split(",")
        if len(cells) != _COLUMNS:
            raise TraceError(
                path, number, f"{len(cells)} columns: start, rate, variation, distribution and two more"
            )
        try:
            start, rate, _, shape, _ = (float(each) for each in (*cells[:3], *cells[4:]))
        except ValueError:
            raise TraceError(
                path, number, f"{line!r}: numbers are expected, but for the distribution"
            ) from None
        if not 0 <= start < math.inf or (found and start <= found[-1].start):
            raise TraceError(path, number, f"a window from {start:g} s on: windows begin at 0 and rise")
        if not 0 <= rate < math.inf or (rate > 0 and not (cells[3] in _SHAPES and 0 < shape < math.inf)):
            raise TraceError(path, number, f"{line!r}: a rate from 0 on, with Gamma or Weibull and its shape")
        steps = {start - found[-1].start, found[-1].start - found[-2].start} if len(found) > 1 else ()
        if len(steps) > 1:
            raise TraceError(
                path, number, f"a window from {start:g} s on: one is missing before it, or too many"
            )
        found.append(Window(start, rate, cells[3], shape))
    if not found:
        raise TraceError(path, None, "holds no window")
    return tuple(found)


def _lengths(path: Path) -> tuple[dict[float, Weighted], dict[float, Weighted]]:
    try:
        told = json.loads("\n".join(line for _, line in lines(path)))
    except ValueError as error:
        raise (
            error if isinstance(error, TraceError) else TraceError(path, None, f"is no JSON: {error}")
        ) from None
    if not isinstance(told, dict):
        raise TraceError(path, None, "is no table of windows")
    prompts: dict[float, Weighted] = {}
    outputs: dict[float, Weighted] = {}
    for window, row in told.items():
        if not isinstance(row, dict) or not {"input_tokens", "output_tokens"} <= row.keys():
            raise TraceError(
                path, None, f"window {window}: has no input_tokens and output_tokens (a model of images?)"
            )
        found = [_weighted(path, window, row, name) for name in ("input_tokens", "output_tokens")]
        if found[0] is not None and found[1] is not None:
            prompts[float(window)], outputs[float(window)] = found[0], found[1]
    return prompts, outputs


def _weighted(path: Path, window: str, row: Mapping[str, object], name: str) -> Weighted | None:
    """``{length: weight, ...}`` as text; lengths of 0 are left out."""
    try:
        pairs = [each.split(":") for each in str(row[name]).strip("{} ").split(",") if each.strip()]
        table = {int(float(length)): float(weight) for length, weight in pairs}
        float(window)
        kept = {length: weight for length, weight in table.items() if length > 0 and weight > 0}
        return Weighted(tuple(kept), tuple(kept.values())) if kept else None
    except ValueError as error:
        raise TraceError(path, None, f"window {window}: {name} is no table of lengths: {error}") from None
