"""Reads Envoy's own stats: requests as its listener counts them, attempts as the engine's cluster does."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from exporter.dialects.cells import NOT_A_NUMBER
from exporter.dialects.envoy_names import (
    BREAKER_KINDS,
    BY_LISTENER,
    BY_NAME,
    CLUSTER,
    CODE,
    CODE_CLASS,
    HISTOGRAMS,
    LISTENER,
    OWN_LISTENERS,
    PRIORITIES,
    SENTINEL,
    Field,
    is_of_envoy,
)
from exporter.dialects.envoy_outcomes import outcomes
from exporter.dialects.gateway_dialect import AmbiguousError, Asked
from exporter.exposition import Series
from exporter.gateway_sample import Breaker, GatewaySample
from exporter.sample import Histogram

SEVERAL_LISTENERS = "several_listeners"
SEVERAL_SERVICES = "several_services"
NO_TRAFFIC_YET = "no_traffic_yet"
_MOST_NAMED = 5

_OF_THE_LISTENER = (
    "not known of one listener alone: set the gateway's listener, or look whether http stats are filtered"
)
_OF_THE_CLUSTER = (
    "not known of the engines' cluster: set the gateway's cluster, or look whether cluster stats are filtered away or"
    " left out (usedonly)"
)
ABSENCES = (
    ("inflight", _OF_THE_LISTENER),
    ("request_time", _OF_THE_LISTENER),
    ("outcomes_total", "needs one listener and the engines' cluster, and all of their stats (no usedonly)"),
    ("upstream_inflight", _OF_THE_CLUSTER),
    ("pending", _OF_THE_CLUSTER),
    ("retries_total", _OF_THE_CLUSTER),
    ("upstream_requests_total", _OF_THE_CLUSTER),
    ("upstream_time", _OF_THE_CLUSTER),
    ("turned_away_total", _OF_THE_CLUSTER),
    ("breakers", _OF_THE_CLUSTER),
    ("keys", "Envoy knows no API keys"),
)


class Slot(NamedTuple):
    """What a series means: a field of a listener or a cluster; ``detail`` is a code, a breaker or a bucket's bound."""

    field: Field
    owner: str
    detail: str | float = ""


Cells = Mapping[str | float, float]
Table = Mapping[tuple[Field, str], Cells]


class EnvoyDialect:
    """Envoy's ``/stats/prometheus``, of its own admin port or passed on by Istio or Envoy Gateway.

    ``envoy_listener_*`` repeats what the connection managers count and is never read.
    """

    kind = "envoy"
    title = "Envoy"
    absences = ABSENCES

    def recognises(self, names: Collection[str]) -> bool:
        """Whether clusters are counted there: Envoy shows them as soon as it has one."""
        return any(name.startswith(("envoy_cluster_", "envoy_http_downstream_")) for name in names)

    def interpret(self, series: Series) -> Slot | None:
        """What one series means."""
        labels = dict(series.labels)
        part = HISTOGRAMS.get(series.name)
        if part is not None:
            field, suffix = part
            owner = labels.get(LISTENER if field in BY_LISTENER else CLUSTER, "")
            bound = _bound(labels.get("le", "")) if suffix == "_bucket" else None
            return (
                Slot(field, owner, suffix if bound is None else bound)
                if bound is not None or suffix != "_bucket"
                else None
            )
        if series.name.startswith(Field.BREAKER.value):
            return _breaker(series.name, labels.get(CLUSTER, ""))
        found = BY_NAME.get(series.name)
        if found is None:
            return None
        if found is Field.RATE_LIMITED:
            return Slot(found, "")
        detail = labels.get(CODE_CLASS) or labels.get(CODE) or ""
        return Slot(found, labels.get(LISTENER if found in BY_LISTENER else CLUSTER, ""), detail)

    def sample(
        self, readings: Sequence[tuple[Slot, float]], asked: Asked, *, at: float, read_seconds: float
    ) -> GatewaySample:
        """One read. Raises AmbiguousError where the engine's cluster can't be told."""
        notes: set[str] = set()
        table: defaultdict[tuple[Field, str], dict[str | float, float]] = defaultdict(dict)
        for (field, owner, detail), value in readings:
            if not 0.0 <= value < SENTINEL:
                notes.add(NOT_A_NUMBER)
                continue
            cells = table[field, owner]
            cells[detail] = cells.get(detail, 0.0) + value
        cluster, shared = _cluster(table, asked)
        if cluster is None:
            notes.add(NO_TRAFFIC_YET)
        listener = _listener(table, asked, notes, shared=shared)
        request_time = _histogram(table, Field.REQUEST_TIME, listener)
        return GatewaySample(
            at,
            asked.gateway,
            self.kind,
            read_seconds,
            inflight=_one(table, Field.ACTIVE, listener),
            upstream_inflight=_one(table, Field.UPSTREAM_ACTIVE, cluster),
            pending=_one(table, Field.UPSTREAM_PENDING, cluster),
            requests_total=_one(table, Field.REQUESTS, listener),
            outcomes_total=outcomes(table, listener, cluster),
            retries_total=_one(table, Field.RETRIES, cluster),
            upstream_requests_total=_one(table, Field.UPSTREAM_REQUESTS, cluster),
            given_up_total=_given_up(table, cluster),
            turned_away_total=_turned_away(table, listener, cluster),
            breakers=tuple(_breakers(table, cluster)),
            request_time=request_time,
            upstream_time=_histogram(table, Field.UPSTREAM_TIME, cluster) or _empty(request_time, cluster),
            backends=_one(table, Field.MEMBERS, cluster),
            notes=tuple(sorted(notes)),
            cluster=cluster or "",
        )


def _breaker(name: str, cluster: str) -> Slot | None:
    rest = name.removeprefix(Field.BREAKER.value)
    for priority in PRIORITIES:
        kind = BREAKER_KINDS.get(rest.removeprefix(priority + "_"))
        if kind is not None and rest.startswith(priority + "_"):
            return Slot(Field.BREAKER, cluster, f"{priority} {kind}")
    return None


def _bound(text: str) -> float | None:
    try:
        bound = float(text)
    except ValueError:
        return None
    return None if math.isnan(bound) else bound


def _cluster(table: Table, asked: Asked) -> tuple[str | None, bool]:
    """The engine's cluster, and whether others take requests beside it."""
    sent = {
        owner: sum(cells.values())
        for (field, owner), cells in table.items()
        if field is Field.UPSTREAM_REQUESTS
    }
    mine = {owner: count for owner, count in sent.items() if not is_of_envoy(owner)}
    busy = sorted(owner for owner, count in mine.items() if count > 0)
    if asked.cluster:
        if asked.cluster not in sent:
            known = ", ".join(sorted(sent)[:_MOST_NAMED]) or "none"
            raise AmbiguousError(
                f"has no cluster {asked.cluster} (it has {known})", "check the gateway's cluster"
            )
        return asked.cluster, any(owner != asked.cluster for owner in busy)
    if len(busy) > 1:
        names = ", ".join(busy[:_MOST_NAMED]) + (", ..." if len(busy) > _MOST_NAMED else "")
        raise AmbiguousError(
            f"sends requests to {len(busy)} clusters ({names})",
            "set the gateway's cluster to the engines' one",
        )
    if busy:
        return busy[0], False
    return (next(iter(mine)), False) if len(mine) == 1 else (None, False)


def _listener(table: Table, asked: Asked, notes: set[str], *, shared: bool) -> str | None:
    """Where the requests of the engine's clients are counted; None where that can't be told."""
    arrived = {
        owner: sum(cells.values())
        for (field, owner), cells in table.items()
        if field is Field.REQUESTS and owner not in OWN_LISTENERS
    }
    if asked.listener:
        if asked.listener not in arrived:
            known = ", ".join(sorted(arrived)[:_MOST_NAMED]) or "none"
            raise AmbiguousError(
                f"has no listener {asked.listener} (it has {known})", "check the gateway's listener"
            )
        return asked.listener
    if shared:
        notes.add(SEVERAL_SERVICES)
        return None
    busy = [owner for owner, count in arrived.items() if count > 0]
    if len(busy) > 1:
        notes.add(SEVERAL_LISTENERS)
        return None
    if busy:
        return busy[0]
    return next(iter(arrived)) if len(arrived) == 1 else None


def _one(table: Table, field: Field, owner: str | None) -> float | None:
    return None if owner is None or (field, owner) not in table else sum(table[field, owner].values())


def _given_up(table: Table, cluster: str | None) -> float | None:
    """Attempts at engines that Envoy broke off itself; None where neither counter is on the page."""
    fields = (Field.GIVEN_UP_STREAMS, Field.GIVEN_UP_CONNECTIONS)
    known = [count for field in fields if (count := _one(table, field, cluster)) is not None]
    return sum(known) if known else None


def _turned_away(table: Table, listener: str | None, cluster: str | None) -> float | None:
    """Requests that Envoy answered itself for want of room: local limits and breakers."""
    if listener is None or cluster is None:
        return None
    limited = _one(table, Field.RATE_LIMITED, "") or 0.0
    pending, active = (
        _one(table, field, cluster) or 0.0 for field in (Field.PENDING_OVERFLOW, Field.ACTIVE_OVERFLOW)
    )
    return limited + pending + active


def _breakers(table: Table, cluster: str | None) -> list[Breaker]:
    if cluster is None:
        return []
    found = []
    for name, value in sorted(table.get((Field.BREAKER, cluster), {}).items(), key=str):
        priority, _, kind = str(name).partition(" ")
        found.append(Breaker(priority, kind, value > 0))
    return found


def _histogram(table: Table, field: Field, owner: str | None) -> Histogram | None:
    """In seconds; the text has milliseconds."""
    cells = table.get((field, owner or ""), {})
    bounds = sorted(bound for bound in cells if isinstance(bound, float))
    if owner is None or not bounds:
        return None
    total = cells.get("_sum")
    return Histogram(
        tuple(bound / 1000 for bound in bounds),
        tuple(cells[bound] for bound in bounds),
        None if total is None else total / 1000,
    )


def _empty(other: Histogram | None, cluster: str | None) -> Histogram | None:
    """What a cluster's histogram holds that Envoy will show with the first answer."""
    if other is None or cluster is None:
        return None
    return Histogram(other.bounds, (0.0,) * len(other.bounds), 0.0)
