"""Reads vLLM's own metrics: V0 and V1, told apart by the names and labels that are there."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from exporter.dialects.cells import Cells, detail_of, gathered, one, repeats, told_by
from exporter.dialects.names import PROCESS_START_TIME, Name
from exporter.dialects.vllm_config import CacheConfig
from exporter.dialects.vllm_names import (
    ABSENCES,
    ADMISSION_REJECTIONS,
    CACHE_CONFIG,
    COMPLETION_HANDLERS,
    HTTP_OK,
    HTTP_OTHER,
    HTTP_REQUESTS,
    STARTED_AT,
    TABLE,
)
from exporter.dialects.vllm_rank import rank_facts
from exporter.exposition import Series
from exporter.sample import EngineSample, RankSample

CONFIG_AMBIGUOUS = "config_ambiguous"

DEFAULT_RANK = "0"


class Place(NamedTuple):
    """An engine core behind the endpoint. ``replica`` is empty outside Ray; ``engine`` where unlabelled."""

    replica: str
    engine: str


class Rank(NamedTuple):
    """Whose a series is: a model on one engine core."""

    place: Place
    model_name: str


class Slot(NamedTuple):
    """What a series means, worked out once.

    ``owner`` is None for the front end. ``detail`` tells the readings of one name apart: a bucket's
    bound, a reason, what an info says. ``highest`` puts readings of one detail together by their
    maximum, else by their sum. ``labelled`` is whether the series has an ``engine`` label.
    """

    owner: Rank | Place | None
    name: Name
    detail: Any = None
    highest: bool = False
    labelled: bool = False


class VllmDialect:
    """vLLM from 0.2.7 to 0.33, its Rust front end, and vLLM under Ray.

    A rank is a (model, ``engine`` label) pair; without the label its name is ``0``. Under Ray one
    endpoint serves every replica of a node, each with a KV cache of its own, so ``ReplicaId``
    (before 0.12 ``WorkerId``) tells them apart and the rank is called ``0@<replica>``. All other
    labels are summed over, or, for ratios, the highest is taken, as it is over ``pid``: API servers
    repeat one gauge. A series that stands twice in one text is not noticed.
    """

    kind = "vllm"
    title = "vLLM"
    absences = ABSENCES

    def recognises(self, names: Collection[str]) -> bool:
        """Whether any of the names is one we read under vLLM's prefix."""
        return any(TABLE.spellings(name) for name in names)

    def interpret(self, series: Series) -> Slot | None:
        """What one series means; None for the many we have no use for."""
        if series.name == PROCESS_START_TIME:
            return Slot(None, STARTED_AT, highest=True)
        labels = dict(series.labels)
        if series.name == HTTP_REQUESTS:
            return Slot(None, HTTP_OK if _is_completion(labels) else HTTP_OTHER)
        for name in TABLE.spellings(series.name):
            if name.only is None or labels.get(name.only[0]) == name.only[1]:
                return _slot(name, labels)
        return None

    def sample(
        self, readings: Sequence[tuple[Slot, float]], *, engine: str, at: float, read_seconds: float
    ) -> EngineSample:
        """One read. No reading costs more than its own field: what can't be is left out and noted."""
        notes: set[str] = set()
        tables = gathered(readings, notes)
        labelled = any(slot.labelled for slot, _ in readings)
        front: Cells = tables.get(None, {})
        owners = sorted((owner for owner in tables if isinstance(owner, Rank)), key=_order)
        started_at, http_ok = one(front, STARTED_AT), _http_ok(front)
        configs: dict[Place, CacheConfig] = {
            owner: next(reversed(cells[CACHE_CONFIG]))
            for owner, cells in tables.items()
            if isinstance(owner, Place) and cells[CACHE_CONFIG]
        }
        ranks = []
        for owner in owners:
            config = _config_of(owner, owners, configs, notes)
            engines = _engines_beside(owner.place, owners, configs)
            facts = rank_facts(tables[owner], config, engines=engines, labelled=labelled, notes=notes)
            # behind Ray the process that started is the node's agent, not the replica
            started = None if owner.place.replica else started_at
            alone = http_ok if len(owners) == 1 else None
            ranks.append(
                RankSample(
                    at, _called(owner), owner.model_name, started_at=started, http_ok_total=alone, **facts
                )
            )
        return EngineSample(
            at,
            engine,
            self.kind,
            tuple(ranks),
            read_seconds=read_seconds,
            generation=ranks[0].generation if ranks else "",
            started_at=started_at,
            http_ok_total=http_ok,
            admission_rejections_total=told_by(front, ADMISSION_REJECTIONS) or (),
            config=configs[min(configs)].known if configs else (),
            notes=tuple(sorted(notes)),
        )


def _is_completion(labels: Mapping[str, str]) -> bool:
    """A completion request answered 2xx."""
    return (
        labels.get("handler") in COMPLETION_HANDLERS
        and labels.get("method") == "POST"
        and labels.get("status", "").startswith("2")
    )


def _http_ok(front: Cells) -> float | None:
    """0 while the front end has counted other answers only; None where it counts none at all."""
    ok = one(front, HTTP_OK)
    return 0.0 if ok is None and HTTP_OTHER in front else ok


def _slot(name: Name, labels: Mapping[str, str]) -> Slot | None:
    place = Place(labels.get("ReplicaId") or labels.get("WorkerId", ""), labels.get("engine", ""))
    labelled = "engine" in labels
    if name is CACHE_CONFIG:
        return Slot(place, name, CacheConfig.of(labels), labelled=labelled)
    if name is ADMISSION_REJECTIONS:
        return Slot(None, name, labels.get(name.by or "", ""))
    readable, detail = detail_of(name, labels)
    if not readable:
        return None
    rank = Rank(place._replace(engine=place.engine or DEFAULT_RANK), labels.get("model_name", ""))
    return Slot(rank, name, detail, repeats(name, labels), labelled)


def _engines_beside(place: Place, owners: Sequence[Rank], configs: Collection[Place]) -> int:
    """Engine cores in the process of ``place``; some show gauges only with their first step."""
    places = {owner.place for owner in owners} | {each for each in configs if each.engine}
    return len({each for each in places if each.replica == place.replica})


def _order(owner: Rank) -> tuple[str, str, int, str]:
    """By model and replica; rank 10 after rank 9."""
    place = owner.place
    return owner.model_name, place.replica, len(place.engine), place.engine


def _called(owner: Rank) -> str:
    replica, engine = owner.place
    return f"{engine}@{replica}" if replica else engine


def _config_of(
    owner: Rank, owners: Sequence[Rank], configs: Mapping[Place, CacheConfig], notes: set[str]
) -> CacheConfig | None:
    """The rank's configuration. Without an ``engine`` label (V0, V1 before 0.9) it is every rank's."""
    config = configs.get(owner.place) or configs.get(owner.place._replace(engine=""))
    if config is not None and any(
        other.place == owner.place and other.model_name != owner.model_name for other in owners
    ):
        notes.add(CONFIG_AMBIGUOUS)  # it has no model_name: whose it is can't be told
        return None
    return config
