"""A recorded engine: what it answered on ``/metrics``, second by second, and what its clients saw."""

from __future__ import annotations

import bisect
import importlib.resources
import json
import lzma
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import IO, Any

DEMO_RECORDING = "vllm-0.8.5-v0-swap"
KV_BYTES_PER_TOKEN = 512
"""Of the recorded engine's model: K and V x 2 layers x 2 KV heads x 32 values x 2 bytes."""


class RecordingError(Exception):
    """A recording that can't be read, or that does not hold what was asked of it."""


@dataclass(frozen=True, slots=True)
class Scrape:
    """One answer: ``at`` seconds after the first one, while the load was in ``phase``."""

    at: float
    phase: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Recording:
    """All answers, oldest first, and for each client that left early when it did (seconds)."""

    scrapes: tuple[Scrape, ...]
    departures: tuple[float, ...] = ()

    @property
    def seconds(self) -> float:
        """When the last answer was given."""
        return self.scrapes[-1].at

    def scrape_at(self, second: float) -> Scrape:
        """What the engine had answered last at ``second``; the first answer before it gave one."""
        after = bisect.bisect_right(self.scrapes, second, key=lambda scrape: scrape.at)
        return self.scrapes[max(0, after - 1)]

    def between(self, start: float, end: float) -> tuple[Scrape, ...]:
        """The answers in force from ``start`` to ``end``, the one already given at ``start`` included."""
        first = self.scrape_at(start)
        return (first, *(scrape for scrape in self.scrapes if first.at < scrape.at <= end))


def load(name: str = DEMO_RECORDING) -> Recording:
    """Read a recording that comes with the project. Raises RecordingError, naming the file."""
    file = importlib.resources.files("drill") / "recordings" / f"{name}.tar.xz"
    try:
        with file.open("rb") as packed:
            return unpacked(packed)
    except OSError as error:
        raise RecordingError(f"{file}: cannot be read: {error.strerror or error}") from error
    except (tarfile.TarError, lzma.LZMAError, EOFError, KeyError, ValueError) as error:
        raise RecordingError(f"{file}: not a recording: {error}") from error


def unpacked(packed: IO[bytes]) -> Recording:
    """Read a recording from its ``.tar.xz``.

    Raises TarError, LZMAError or EOFError for what is no archive, KeyError or ValueError for an
    archive that is no recording.
    """
    files: dict[str, bytes] = {}
    with tarfile.open(fileobj=packed, mode="r:xz") as tar:
        for member in tar:
            content = tar.extractfile(member)
            if content is not None:
                files[member.name.rpartition("/")[2]] = content.read()
    index = _objects(files["index.jsonl"])
    if not index:
        raise ValueError("its index is empty")
    start = index[0]["t"]
    scrapes = tuple(
        Scrape(entry["t"] - start, entry["phase"], files[f"{entry['i']:03d}.prom"]) for entry in index
    )
    clients = _objects(files.get("clients.jsonl", b""))
    departures = (client["t"] + client["dur"] - start for client in clients if client["end"] == "disconnect")
    return Recording(scrapes, tuple(sorted(departures)))


def _objects(lines: bytes) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in lines.splitlines()]


def number(body: bytes, name: str, having: str = "") -> float | None:
    """The sum of the series called ``name`` on a page, or None where there is none.

    With ``having``, as in ``reason="abort"``, only of those that bear this label.

    A plain search on purpose: what the sidecar made of the page is held against this.
    """
    found = _series(name, having).findall(body)
    return sum(map(float, found)) if found else None


@lru_cache(maxsize=32)
def _series(name: str, having: str) -> re.Pattern[bytes]:
    labels = r"\{[^}]*" + re.escape(having) + r"[^}]*\}" if having else r"(?:\{[^}]*\})?"
    return re.compile((r"^" + re.escape(name) + labels + r" (\S+)$").encode(), re.MULTILINE)
