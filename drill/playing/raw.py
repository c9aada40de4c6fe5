"""The pages of engines and gateway as a Prometheus would have kept them: ``raw.om``, as OpenMetrics.

That form wants each family in one piece and each metric in it in one piece, whereas pages come one after the other:
what is read lies in a file beside until it is written, and memory holds the names of series alone.
"""

from __future__ import annotations

import contextlib
import errno
import re
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from drill.expose import envoy
from drill.second import Second
from drill.watching.gateway import NAME, cluster_of, listener_of
from drill.watching.watch import Watch
from exporter.recorder_export import Sink

_LE = re.compile(r',?le="[^"]*"')
_OTHER_COUNTER = re.compile(r"(?m)^# TYPE \S+(?<!_total) counter$")
"""Where there is one on a page, no counter of it can be one of OpenMetrics, lest names clash: x beside x_total."""
_AT_ONCE = 1_000
_UP = "up"


class Scrape(NamedTuple):
    """One page, None where nobody answered."""

    job: str
    instance: str
    page: str | None


class _Place(NamedTuple):
    """Where a series belongs, and how it begins with the labels of its scrape."""

    metric: int
    prefix: str


def scrapes(watch: Watch, second: Second) -> list[Scrape]:
    """What a Prometheus that is never kept waiting reads at the end of a second. ``watch`` has seen it."""
    listener = listener_of(second.gateway, second.gateway_gauges)
    clusters = [cluster_of(second.gateway, second.gateway_gauges)]
    return [
        *(Scrape("vllm", f"{engine.name}:8000", engine.page()) for engine in watch.engines),
        Scrape("envoy", f"{NAME}:9901", envoy.page(listener, clusters)),
    ]


class RawLog:
    """Of one run, spooled in ``spool``, which is made, and gone at the end. All of it raises OSError."""

    def __init__(self, spool: Path) -> None:
        self._spool = spool
        spool.unlink(missing_ok=True)
        with self._told():
            self._database = sqlite3.connect(spool, isolation_level=None)
            self._database.execute("PRAGMA journal_mode=OFF")
            self._database.execute("PRAGMA synchronous=OFF")
            self._database.execute("CREATE TABLE points (metric INTEGER, number INTEGER, lines TEXT)")
        self._families: dict[str, str] = {}
        """TYPE and HELP lines by the family's name."""
        self._metrics: dict[tuple[str, str], int] = {}
        """By family and labels, in the order in which they came."""
        self._places: dict[tuple[str, str], _Place] = {}
        """Of series by instance, as the page has them."""
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()
        self._spool.unlink(missing_ok=True)

    def see(self, at: float, scrapes: Iterable[Scrape]) -> None:
        """What was read at ``at`` (seconds since the epoch); to be told in the order of time."""
        stamp = f" {at:.3f}\n"
        self._families.setdefault(_UP, f"# TYPE {_UP} gauge\n# HELP {_UP} 1 where a page was answered.\n")
        for scrape in scrapes:
            points: dict[int, list[str]] = {}
            labels = f'instance="{scrape.instance}",job="{scrape.job}"'
            up = self._metric(_UP, labels)
            points[up] = [f"{_UP}{{{labels}}} {int(scrape.page is not None)}{stamp}"]
            if scrape.page is not None:
                self._read(scrape.page, scrape.instance, labels, stamp, points)
            self._number += 1
            rows = [(metric, self._number, "".join(lines)) for metric, lines in points.items()]
            with self._told():
                self._database.execute("BEGIN")
                self._database.executemany("INSERT INTO points VALUES (?, ?, ?)", rows)
                self._database.execute("COMMIT")

    def write(self, out: Sink) -> None:
        """All of it."""
        with self._told():
            self._database.execute("CREATE INDEX IF NOT EXISTS by_metric ON points (metric, number)")
        by_family: dict[str, list[int]] = {}
        for (family, _), metric in self._metrics.items():
            by_family.setdefault(family, []).append(metric)
        for family, metrics in by_family.items():
            out.write(self._families[family].encode())
            for metric in metrics:
                rows = self._database.execute(
                    "SELECT lines FROM points WHERE metric = ? ORDER BY number", (metric,)
                )
                while some := rows.fetchmany(_AT_ONCE):
                    out.write("".join(lines for (lines,) in some).encode())
        out.write(b"# EOF\n")

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise OSError(errno.EIO, str(error), str(self._spool)) from error

    def _read(self, page: str, instance: str, labels: str, stamp: str, points: dict[int, list[str]]) -> None:
        words, family = "", ""
        counters = _OTHER_COUNTER.search(page) is None
        for line in page.splitlines():
            if line.startswith("# HELP "):
                words = line.removeprefix("# HELP ").partition(" ")[2]
            elif line.startswith("# TYPE "):
                name, _, kind = line.removeprefix("# TYPE ").partition(" ")
                told = "unknown" if kind == "untyped" or (kind == "counter" and not counters) else kind
                family, words = self._family(name, told, words), ""
            elif line:
                series, _, value = line.rpartition(" ")
                place = self._places.get((instance, series))
                if place is None:
                    place = self._places[instance, series] = self._place(family, series, labels)
                points.setdefault(place.metric, []).append(f"{place.prefix} {value}{stamp}")

    def _family(self, name: str, kind: str, words: str) -> str:
        """Its name in OpenMetrics: a counter's is without ``_total``, and ``_created`` is no family of its own."""
        if kind == "gauge" and name.endswith("_created"):
            dated = name.removesuffix("_created")
            if dated in self._families:
                return dated
        if kind == "counter":
            name = name.removesuffix("_total")
        if name not in self._families:
            told = words.replace('"', '\\"')  # the rest is escaped as in the older form
            self._families[name] = f"# TYPE {name} {kind}\n" + (f"# HELP {name} {told}\n" if told else "")
        return name

    def _place(self, family: str, series: str, labels: str) -> _Place:
        name, brace, rest = series.partition("{")
        own = rest.removesuffix("}") if brace else ""
        together = f"{labels},{own}" if own else labels
        return _Place(self._metric(family, _LE.sub("", together)), f"{name}{{{together}}}")

    def _metric(self, family: str, labels: str) -> int:
        return self._metrics.setdefault((family, labels), len(self._metrics))
