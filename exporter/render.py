"""A snapshot as the text that Prometheus scrapes: made at most once per format, on first demand.

:class:`SnapshotCollector` is what prometheus_client renders. Its writer takes 8 us a value, half of
what a whole cycle may cost, most of it on checking and sorting the same labels again and again. So
the two formats that are really asked for are written by :func:`_write`, which remembers a value's
name with its labels and a family's head; a test holds both writers to the same bytes.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, choose_encoder, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from exporter.signal import PEAK_SECONDS, Kind, Signal
from exporter.snapshot import Snapshot, Value

PEAK_SUFFIX = "_peak"
_PEAK_HELP = f" Maximum of the trailing {PEAK_SECONDS:g} s."
_PLAIN_BELOW = 1e6
"""From here on Go writes an exponent, Python not yet."""
_GZIP_LEVEL = 4
"""Level 4 takes half the time of level 9 and leaves some 5 % more bytes."""


@dataclass(frozen=True, slots=True)
class SnapshotCollector(Collector):
    """The one collector: the values of a snapshot as families, each signal's and each peak twin's own."""

    values: Iterable[Value]

    def collect(self) -> Iterator[Metric]:
        """Yield the families in the order in which their first value stands."""
        families: dict[tuple[Signal, bool], GaugeMetricFamily | CounterMetricFamily] = {}
        for signal, labels, value, is_peak in self.values:
            family = families.get((signal, is_peak))
            if family is None:
                family = families[signal, is_peak] = _family(signal, is_peak=is_peak)
            family.add_metric(labels, value)
        yield from families.values()


def _family(signal: Signal, *, is_peak: bool) -> GaugeMetricFamily | CounterMetricFamily:
    if is_peak:
        name, text = signal.full_name + PEAK_SUFFIX, signal.help + _PEAK_HELP
        return GaugeMetricFamily(name, text, labels=signal.label_names)
    if signal.kind is Kind.COUNTER:
        return CounterMetricFamily(signal.full_name, signal.help, labels=signal.label_names)
    return GaugeMetricFamily(signal.full_name, signal.help, labels=signal.label_names)


class Format(NamedTuple):
    """How to answer one kind of ``Accept``. Equal ``key`` (OpenMetrics?, escaping) means equal bytes."""

    key: tuple[bool, str]
    content_type: str
    encode: Callable[[Collector], bytes]

    @property
    def is_plain_spelling(self) -> bool:
        """Whether names stand as they are: ours are valid ones, which these schemes leave alone."""
        return self.key[1] in {"", "underscores", "allow-utf-8"}


@lru_cache(maxsize=64)
def negotiate(accept: str) -> Format:
    """Choose the format for an ``Accept`` header; what can't be understood gets the plain text format."""
    try:
        encode, content_type = choose_encoder(accept)
    except (TypeError, ValueError):  # the library trips over versions that are no numbers
        encode, content_type = generate_latest, CONTENT_TYPE_PLAIN_0_0_4
    # The version is the client's own word and repeated in the content type, the bytes don't depend on it.
    _, _, escaping = content_type.partition("escaping=")
    return Format((content_type.startswith("application/openmetrics-text"), escaping), content_type, encode)


PLAIN = negotiate("")


class Rendering:
    """The bytes of one snapshot, remembered per format, plain and gzipped."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._values = snapshot.values
        self._bodies: dict[tuple[tuple[bool, str], bool], bytes] = {}

    def body(self, wanted: Format, *, zipped: bool = False) -> bytes:
        """The exposition in ``wanted`` format."""
        key = (wanted.key, zipped)
        body = self._bodies.get(key)
        if body is None:
            if zipped:
                # A fixed time stamp: equal snapshots give equal bytes.
                body = gzip.compress(self.body(wanted), compresslevel=_GZIP_LEVEL, mtime=0)
            elif wanted.is_plain_spelling:
                body = _write(self._values, openmetrics=wanted.key[0])
            else:
                body = wanted.encode(SnapshotCollector(self._values))
            self._bodies[key] = body
        return body


def _write(values: Iterable[Value], *, openmetrics: bool) -> bytes:
    families: list[list[str]] = []
    of_values: dict[Signal, list[str]] = {}
    of_peaks: dict[Signal, list[str]] = {}
    for signal, labels, value, is_peak in values:
        of_kind = of_peaks if is_peak else of_values
        lines = of_kind.get(signal)
        if lines is None:
            lines = of_kind[signal] = [_head(signal, is_peak, openmetrics)]
            families.append(lines)
        # what Go writes as Python does is most of what there is
        number = repr(float(value)) if -_PLAIN_BELOW < value < _PLAIN_BELOW else _large(value)
        lines.append(f"{_place(signal, is_peak, labels)} {number}\n")
    text = "".join("".join(lines) for lines in families)
    return (text + "# EOF\n" if openmetrics else text).encode()


@lru_cache(maxsize=4096)
def _large(value: float) -> str:
    """Write numbers that Go writes with an exponent, and those that are none: slow, and many stay the same."""
    return str(floatToGoString(value))  # type: ignore[no-untyped-call]


@lru_cache(maxsize=1024)
def _head(signal: Signal, is_peak: bool, openmetrics: bool) -> str:  # noqa: FBT001 - a cache's key
    family = _family(signal, is_peak=is_peak)
    if openmetrics:
        name, text = family.name, _escaped(family.documentation)
    else:
        name = signal.full_name + PEAK_SUFFIX if is_peak else signal.full_name
        text = family.documentation.replace("\\", "\\\\").replace("\n", "\\n")
    return f"# HELP {name} {text}\n# TYPE {name} {family.type}\n"


@lru_cache(maxsize=8192)
def _place(signal: Signal, is_peak: bool, labels: tuple[str, ...]) -> str:  # noqa: FBT001 - a cache's key
    """Write the name and the labels, sorted by name and escaped, in braces; no braces where there are none."""
    name = signal.full_name + PEAK_SUFFIX if is_peak else signal.full_name
    if not labels:
        return name
    pairs = sorted(zip(signal.label_names, labels, strict=False))
    return name + "{" + ",".join(f'{label}="{_escaped(value)}"' for label, value in pairs) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
