"""What a Prometheus would have kept of pages that it scraped, as text with timestamps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from exporter.exposition import Reader, Series
from tests.support.captures import recording


@dataclass(frozen=True, slots=True)
class Scrape:
    """One scrape: when it began and how long it took, in seconds, to the millisecond; no body where it failed."""

    at: float
    seconds: float
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Scraped:
    """A target: its labels, and its scrapes, oldest first."""

    labels: Mapping[str, str]
    scrapes: list[Scrape] = field(default_factory=list)


def scrapes_of(capture: str) -> list[Scrape]:
    """All good scrapes of a recording, with times as Prometheus keeps them."""
    return [
        Scrape(round(entry["t"], 3), round(entry["ms"] / 1000, 3), body)
        for entry, body in recording(capture).scrapes()
    ]


def thinned(scrapes: Iterable[Scrape], every: float) -> list[Scrape]:
    """Those that a slower Prometheus would have made: the next one after each so many seconds."""
    kept: list[Scrape] = []
    for scrape in scrapes:
        if not kept or scrape.at - kept[0].at >= len(kept) * every:
            kept.append(scrape)
    return kept


def lines(target: Scraped) -> Iterator[str]:
    """The samples that Prometheus writes, scrape by scrape."""
    reader: Reader[Series] = Reader(lambda series: series)
    for scrape in target.scrapes:
        stamp = f"{scrape.at:.3f}"
        for series, value in [] if scrape.body is None else reader.read(scrape.body):
            labels = dict(target.labels)
            labels |= {
                f"exported_{name}" if name in target.labels else name: text for name, text in series.labels
            }
            yield f"{series.name}{{{_joined(labels)}}} {value!r} {stamp}\n"
        own = _joined(target.labels)
        yield f"up{{{own}}} {0 if scrape.body is None else 1} {stamp}\n"
        yield f"scrape_duration_seconds{{{own}}} {scrape.seconds!r} {stamp}\n"


def dump(*targets: Scraped) -> str:
    """A whole dump, scrape by scrape, so that no two samples of a series stand together."""
    return "".join(line for target in targets for line in lines(target)) + "# EOF\n"


def by_series(text: str) -> str:
    """A dump as others want it: the samples of a series together, in order of time."""

    def place(line: str) -> tuple[str, float]:
        series, _, at = line.rsplit(" ", 2)
        return series, float(at)

    return "\n".join([*sorted(text.splitlines()[:-1], key=place), "# EOF", ""])


def _joined(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
