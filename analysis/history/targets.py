"""Whose raw series are: the scraped targets that a Prometheus kept, and their pages put together again.

Prometheus adds a target's labels to each series and calls a label of the page ``exported_...`` where both have it. What
a target's labels are, its ``up`` says; without it, ``job`` and ``instance`` are taken.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.frame import CLUSTER, Key, Values
from analysis.history.coarse import evened
from analysis.history.samples import Samples
from analysis.history.steps import whole_step
from exporter.dialects import dcgm_names, dcgm_page
from exporter.dialects.dialect import Dialect
from exporter.dialects.gateway_dialect import GatewayDialect
from exporter.dialects.gateways import GATEWAYS, detect_gateway
from exporter.dialects.names import PROCESS_START_TIME
from exporter.dialects.registry import DIALECTS, detect
from exporter.dialects.vllm_names import HTTP_REQUESTS
from exporter.exposition import Series

UP, SCRAPE_SECONDS = "up", "scrape_duration_seconds"
"""What Prometheus writes of each scrape of a target: whether it succeeded, and how long it took."""
_EXPORTED = "exported_"
_USUAL = (CLUSTER, "prometheus", "prometheus_replica", "job", "instance")
_USUAL_WITHOUT_INSTANCE = (CLUSTER, "prometheus", "prometheus_replica", "job", "namespace", "pod")
_NAMING = ("instance", "pod", "job")
"""What a target is called by, the first that it has."""
_MACHINES = ("node", "Hostname", "hostname", "host")

Labels = tuple[tuple[str, str], ...]


class Kind(enum.Enum):
    """What a target is."""

    ENGINE = "engine"
    GATEWAY = "gateway"
    GPUS = "gpus"


@dataclass(frozen=True, slots=True)
class Pages:
    """What a target showed, page by page, oldest first.

    ``times`` and ``read_seconds``: shape (p,), when each scrape began and how long it took. Page i holds the readings
    ``which[bounds[i]:bounds[i + 1]]``, places in ``slots``, with their ``values``. ``failed_at``: when scrapes failed.
    """

    times: Values
    read_seconds: Values
    bounds: NDArray[np.int64]
    which: NDArray[np.int32]
    values: Values
    slots: NDArray[np.object_]
    known: NDArray[np.bool_]
    failed_at: Values

    def readings(self, page: int) -> list[tuple[Any, float]]:
        """What dialects read of a page: what each series means, and its value."""
        part = slice(self.bounds[page], self.bounds[page + 1])
        return list(zip(self.slots[self.which[part]].tolist(), self.values[part].tolist(), strict=True))

    def speaks(self, page: int) -> bool:
        """Whether a series of the dialect's own stands on a page, and not only those that every process has."""
        return bool(self.known[self.which[self.bounds[page] : self.bounds[page + 1]]].any())


@dataclass(frozen=True, slots=True)
class Target:
    """One thing that was scraped, with ``labels`` of its own.

    ``engine`` or ``gateway`` reads its pages; neither: they are dcgm-exporter's. ``uuids`` are the GPUs on its pages by
    the pod that uses them, under an empty name those of all. ``machine`` is the host, empty where nothing tells it.
    """

    name: str
    labels: Mapping[str, str]
    pages: Pages
    engine: Dialect[Any] | None = None
    gateway: GatewayDialect[Any] | None = None
    uuids: Mapping[str, frozenset[str]] = field(default_factory=dict)
    machine: str = ""

    @property
    def kind(self) -> Kind:
        """What it is, by who reads it."""
        if self.engine is not None:
            return Kind.ENGINE
        return Kind.GPUS if self.gateway is None else Kind.GATEWAY


@lru_cache(maxsize=4096)
def is_raw(name: str) -> bool:
    """Whether a series of this name is one that signals are derived from, or that says how scrapes went."""
    return name in {UP, SCRAPE_SECONDS, PROCESS_START_TIME, HTTP_REQUESTS} or _is_own(name)


def tells_a_target(keys: Iterable[Key]) -> bool:
    """Whether any of these series is an engine's, a gateway's or dcgm-exporter's."""
    return any(_is_own(name) for name in {key.name for key in keys})


def targets_of(series: Iterable[Samples]) -> list[Target]:
    """The engines, gateways and dcgm-exporters whose series these are, by name; all others are left out."""
    listed = [each for each in series if is_raw(each.key.name)]
    scraped = _Scraped([each for each in listed if each.key.name in {UP, SCRAPE_SECONDS}])
    whose: dict[Labels, list[Samples]] = {}
    for each in listed:
        if each.key.name not in {UP, SCRAPE_SECONDS}:
            whose.setdefault(scraped.target_of(each.key), []).append(each)
    found = [
        target
        for labels, mine in whose.items()
        if (target := _target(dict(labels), mine, scraped)) is not None
    ]
    return list(_renamed(found))


def _is_own(name: str) -> bool:
    return (
        any(dialect.recognises((name,)) for dialect in DIALECTS)
        or any(gateway.recognises((name,)) for gateway in GATEWAYS)
        or name.startswith("envoy_")
        or dcgm_names.recognises((name,))
    )


class _Scraped:
    """What Prometheus wrote of its scrapes, by the labels of the target."""

    def __init__(self, series: Iterable[Samples]) -> None:
        self._told: dict[Labels, dict[str, Samples]] = {}
        self._by_instance: dict[tuple[str, str], list[Labels]] = {}
        for each in series:
            labels = each.key.labels
            if labels not in self._told:
                self._told[labels] = {}
                self._by_instance.setdefault((each.key.label("job"), each.key.label("instance")), []).append(
                    labels
                )
            self._told[labels][each.key.name] = each

    def target_of(self, key: Key) -> Labels:
        """The labels of the target that a series was scraped from."""
        mine = set(key.labels)
        listed = self._by_instance.get((key.label("job"), key.label("instance")), [])
        fitting = [labels for labels in listed if mine.issuperset(labels)]
        if fitting:
            return max(fitting, key=len)
        names = _USUAL if key.label("instance") else _USUAL_WITHOUT_INSTANCE
        return tuple((name, text) for name, text in key.labels if name in names)

    def of(self, labels: Labels, name: str) -> Samples | None:
        """One of the two series of a target."""
        return self._told.get(labels, {}).get(name)


def _target(labels: Mapping[str, str], series: list[Samples], scraped: _Scraped) -> Target | None:
    names = {each.key.name for each in series}
    engine = detect(names)
    gateway = detect_gateway(names) if engine is None else None
    dialect = engine or gateway
    if dialect is None and not dcgm_names.recognises(names):
        return None
    on_page = [(each, _on_page(each.key, labels)) for each in series]
    interpret = dcgm_page.interpret if dialect is None else dialect.interpret
    read = [(each, slot) for each, shown in on_page if (slot := interpret(shown)) is not None]
    if not read:
        return None
    own = tuple(sorted(labels.items()))
    pages = _pages(
        [each for each, _ in read],
        [slot for _, slot in read],
        [dialect is None or dialect.recognises((each.key.name,)) for each, _ in read],
        scraped.of(own, UP),
        scraped.of(own, SCRAPE_SECONDS),
    )
    if not len(pages.times) and not len(pages.failed_at):
        return None
    uuids = _uuids(shown for _, shown in on_page) if dialect is None else {}
    name = next((labels[each] for each in _NAMING if labels.get(each)), "unnamed")
    return Target(name, labels, pages, engine, gateway, uuids, _machine(labels, on_page[0][1]))


def _on_page(key: Key, target: Mapping[str, str]) -> Series:
    """The series as it stood on the page."""
    labels = [
        (name.removeprefix(_EXPORTED) if name.removeprefix(_EXPORTED) in target else name, text)
        for name, text in key.labels
        if name not in target
    ]
    return Series(key.name, tuple(labels))


def _pages(
    series: list[Samples],
    slots: list[Any],
    known: list[bool],
    up: Samples | None,
    took: Samples | None,
) -> Pages:
    times = np.concatenate([each.times for each in series])
    values = np.concatenate([each.values for each in series])
    which = np.repeat(np.arange(len(series), dtype=np.int32), [len(each.times) for each in series])
    # Prometheus ends a series that is gone with a mark that reads as no number
    there = ~np.isnan(values)
    times, values, which = times[there], values[there], which[there]
    order = np.argsort(times, kind="stable")
    times, values, which = times[order], values[order], which[order]
    begins = np.flatnonzero(np.diff(times, prepend=-np.inf) > 0)
    at = times[begins]
    took_seconds = _at_times(took, at)
    step = whole_step(np.diff(at))
    at = at if step is None else evened(at, step)
    kept = np.empty(len(slots), dtype=object)
    kept[:] = slots
    failed_at = np.empty(0) if up is None else up.times[up.values == 0]
    return Pages(
        at,
        took_seconds,
        np.append(begins, len(times)),
        which,
        values,
        kept,
        np.array(known, bool),
        failed_at,
    )


def _at_times(series: Samples | None, at: Values) -> Values:
    """What a series was worth at just these times, 0 where it has no sample."""
    found = np.zeros(len(at))
    if series is not None and len(series.times):
        places = np.minimum(np.searchsorted(series.times, at), len(series.times) - 1)
        same = (series.times[places] == at) & ~np.isnan(series.values[places])
        found[same] = series.values[places[same]]
    return found


def _uuids(pages: Iterable[Series]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {"": set()}
    for series in pages:
        labels = dict(series.labels)
        identity = dcgm_names.identity_of(labels)
        if identity is not None:
            uuid = identity.parent_uuid or identity.uuid
            found[""].add(uuid)
            if labels.get("pod"):
                found.setdefault(labels["pod"], set()).add(uuid)
    return {pod: frozenset(each) for pod, each in found.items()}


def _machine(labels: Mapping[str, str], shown: Series) -> str:
    """The host: what labels call it, else the one in the target's address."""
    on_page = dict(shown.labels)
    told = next((text for name in _MACHINES if (text := labels.get(name) or on_page.get(name))), "")
    return told or labels.get("instance", "").rpartition(":")[0]


def _renamed(targets: list[Target]) -> Iterator[Target]:
    """All of them, those of one cluster with names of their own."""
    taken: dict[str, set[str]] = {}
    for target in sorted(targets, key=lambda each: (each.name, sorted(each.labels.items()))):
        names = taken.setdefault(target.labels.get(CLUSTER, ""), set())
        name = target.name
        if name in names:
            name = ",".join(f"{label}={text}" for label, text in sorted(target.labels.items()))
        names.add(name)
        yield target if name == target.name else replace(target, name=name)
