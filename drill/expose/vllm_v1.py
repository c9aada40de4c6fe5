"""``/metrics`` of vLLM V1, 0.8.5 to 0.33, in the order of 0.32: one server, before one or more data-parallel ranks.

With several API servers the metrics of their processes are put together: no ``_created``, nothing of the process,
families by kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from drill.expose.cache_config import cache_config
from drill.expose.front_end import FrontEnd
from drill.expose.observed_v1 import ObservedV1
from drill.expose.rows import Row, by_kind, told, write
from drill.expose.text import Family, Labels, Page, Told
from drill.expose.v1_histograms import HISTOGRAM_ROWS
from drill.expose.v1_offload import FETCH_ROW, OFFLOAD_ROWS
from drill.expose.v1_rows import ESTIMATE_ROWS, QUEUE_ROWS, STATE_ROWS

_CONFIG = Family("vllm:cache_config_info", "gauge", "Information of the LLMEngine CacheConfig")
_REJECTIONS = Family(
    "vllm:admission_rejections_total",
    "counter",
    "Number of admission attempts rejected by a queue limit, by reason.",
)
_LIMITS = ("max_num_queued_reqs", "max_num_queued_tokens")


def page(ranks: Sequence[ObservedV1], front: FrontEnd) -> str:
    """The answer of one server. ``ranks`` are of one model and release; ``front`` has seen them all."""
    labelled = [
        ((("engine", str(rank)), ("model_name", seen.served.model_name)), seen)
        for rank, seen in enumerate(ranks)
    ]
    families: list[tuple[Family, Iterator[Told] | tuple[Told, ...]]] = [
        *_written((*_tier_rows(ranks[0]), *ESTIMATE_ROWS, *QUEUE_ROWS), labelled),
        *_written((*_fetch_rows(ranks[0]), *STATE_ROWS), labelled),
        *_rejections(ranks[0]),
        *_written(HISTOGRAM_ROWS, labelled),
        (_CONFIG, tuple(_configs(ranks))),
        *front.of_http(),
    ]
    if front.several_servers:
        return write(Page(several_processes=True), by_kind(families))
    return write(Page(several_processes=False), (*front.of_process(), *families))


def _written(
    rows: Sequence[Row[ObservedV1]], ranks: Sequence[tuple[Labels, ObservedV1]]
) -> Iterator[tuple[Family, Iterator[Told]]]:
    release = ranks[0][1].served.release
    for row in rows:
        if row.among(release):
            yield row.family, told(row, ranks)


def _tier_rows(seen: ObservedV1) -> tuple[Row[ObservedV1], ...]:
    return OFFLOAD_ROWS if seen.config.offload_bytes else ()


def _fetch_rows(seen: ObservedV1) -> tuple[Row[ObservedV1], ...]:
    return (FETCH_ROW,) if seen.config.offload_bytes else ()


def _rejections(seen: ObservedV1) -> Iterator[tuple[Family, tuple[Told, ...]]]:
    """The drill's engines have no limit to their queues; the counters are there nevertheless (0.32)."""
    served = seen.served
    if served.release.in_range((0, 32), None):
        model = ("model_name", served.model_name)
        yield (
            _REJECTIONS,
            tuple(Told(0.0, (model, ("reason", limit)), served.started_at) for limit in _LIMITS),
        )


def _configs(ranks: Sequence[ObservedV1]) -> Iterator[Told]:
    for rank, seen in enumerate(ranks):
        served = seen.served
        labels = cache_config(served.config, served.release, len(ranks))
        if served.release.in_range((0, 9), None):
            labels["engine"] = str(rank)
        yield Told(1.0, tuple(labels.items()))
        if not served.release.in_range((0, 9), None):
            break
