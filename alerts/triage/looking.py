"""Takes the look: reads engine, gateways and sidecar at a second's pace, and lets the sidecar's own cycle derive."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from alerts.triage.asked import Asked
from alerts.triage.known import Origin, Witness
from alerts.triage.look import Beside, Envoy, Look
from alerts.triage.rows import Rows, of_page, of_snapshot
from exporter.connection_settings import ConnectionSettings
from exporter.cycle import CycleSettings, initial, step
from exporter.derive.blocks import KV_BLOCKS
from exporter.derive.ranks import ENGINE_INFO
from exporter.derive.traffic import SEQUENCES
from exporter.gateway_join import Behind
from exporter.gateway_settings import PATHS, GatewaySettings
from exporter.observation import Observation
from exporter.sample import EngineSample
from exporter.source_signals import BUILD_INFO, SOURCE_UP
from exporter.sources.endpoint import Endpoint, shown
from exporter.sources.engine import EngineSource
from exporter.sources.failure import Peer, ReadFailedError, Reason
from exporter.sources.gateway import GatewaySource
from exporter.sources.source import Source

PACE_SECONDS = 1.0
SHORTEST_SECONDS = 1.2
"""Between two reads: rates need both, and what shows its numbers once a second has to show new ones."""
NOTICED_SECONDS = 2.5
"""Until a sidecar, which reads once a second, has seen that an engine is gone."""
_SIDECAR_SECONDS = {False: 1.0, True: 5.0}
"""How long one is waited for: by whether it was asked for. It answers within milliseconds, where its machine does."""
_SIDECAR = Peer("the sidecar", "look into the log of the sidecar", "sidecars have it at /metrics")


class UnreadableError(Exception):
    """The engine can't be looked at, and no sidecar knows of it: one line of what, where, and what to do."""


@dataclass(frozen=True, slots=True)
class _Page:
    """The sidecar's page as read once: its values, or why there are none; ``locked``: for others it may have them."""

    rows: Rows | None = None
    problem: str = ""
    locked: bool = False


_ASKS = (
    "it asks for a password, and triage has none: --sidecar-user and --sidecar-password-file give it one, --wait 35"
    " watches instead"
)


async def taken(asked: Asked, wait_seconds: float, clock: Callable[[], float]) -> Look:
    """A look of ``wait_seconds``, at least ``SHORTEST_SECONDS``. Raises UnreadableError."""
    engine = EngineSource(asked.engine, clock, PACE_SECONDS)
    gateways = [GatewaySource(each, clock, PACE_SECONDS) for each in asked.gateways]
    behind = Behind({each.name: each.engines for each in asked.gateways}, (asked.engine.name,))
    state = initial(CycleSettings({asked.engine.name: asked.facts}, behind=behind))
    loop = asyncio.get_running_loop()
    began, reads = loop.time(), max(1, round(wait_seconds / PACE_SECONDS))
    pace = SHORTEST_SECONDS if reads == 1 else PACE_SECONDS
    samples: list[EngineSample] = []
    moments: list[Rows] = []
    pages: list[_Page] = []
    failure = ""
    for turn in range(reads + 1):
        await asyncio.sleep(began + turn * pace - loop.time())
        ends = turn in {0, reads}
        _, page = await asyncio.gather(
            _read([engine, *gateways]), _sidecar_page(asked, clock) if ends else _nothing()
        )
        pages += [page] if page else []
        seen = engine.observe()
        if not seen.status.answering or seen.engine is None:
            failure = seen.status.last_error or f"{asked.engine.url} did not answer"
            break
        if all(rank.running is None and rank.kv_usage_ratio is None for rank in seen.engine.ranks):
            raise UnreadableError(
                f"{shown(asked.engine.url)}: tells neither who runs nor how full its pool is; does a proxy filter its"
                " series, or are its metrics half off? `thrashold exporter --check` says what is missing"
            )
        observations = [seen, *(each.observe() for each in gateways)]
        state, snapshot = step(state, clock(), observations)
        moments.append(replace(of_snapshot(snapshot), at=seen.engine.at))
        samples.append(seen.engine)
    beside = _beside(asked, pages, samples)
    if failure and beside is not None and beside.witness is not None and not _knows_it_down(beside):
        await asyncio.sleep(NOTICED_SECONDS)
        later = await _sidecar_page(asked, clock)
        pages += [later] if later else []
        beside = _beside(asked, pages, samples)
    if failure and not _knows_it_down(beside):
        again = "answered at first, and then: " if samples else ""
        raise UnreadableError(again + failure + _may_know(beside))
    own = None if failure else Witness(Origin.LOOK, asked.engine.name, moments[0], moments[-1])
    observed = [each.observe() for each in gateways]
    return Look(
        asked.name or asked.engine.name,
        shown(asked.engine.url),
        moments[-1].at - moments[0].at if moments else 0.0,
        () if failure else (samples[0], samples[-1]),
        failure,
        own,
        beside,
        tuple(each.gateway for each in observed if each.gateway is not None and each.status.answering),
        tuple(each.status.last_error for each in observed if not each.status.answering),
        gpus=() if asked.facts.gpus is None else asked.facts.gpus,
        other_engines=_other_engines(asked, beside),
        envoys=_envoys(asked.gateways, observed),
        words=asked.words,
    )


def _envoys(settings: Sequence[GatewaySettings], observed: Sequence[Observation]) -> tuple[Envoy, ...]:
    """Those that answered. Stats at another path than the admin port's are of something that takes no orders."""
    found = []
    for each, seen in zip(settings, observed, strict=True):
        sample = seen.gateway
        if sample is not None and seen.status.answering and sample.kind == "envoy":
            url = urlsplit(each.url)
            before, admins, _ = url.path.rpartition(PATHS["envoy"])
            found.append(Envoy(f"{url.scheme}://{url.netloc}{before}" if admins else "", sample.cluster))
    return tuple(found)


async def _read(sources: Sequence[Source]) -> None:
    """All at a time. What a read fails of stands in what its source shows."""
    await asyncio.gather(*(source.read_once() for source in sources))


async def _nothing() -> None:
    return None


async def _sidecar_page(asked: Asked, clock: Callable[[], float]) -> _Page | None:
    if asked.sidecar is None:
        return None
    seconds = _SIDECAR_SECONDS[asked.sidecar.asked_for]
    login = asked.sidecar.login
    settings = ConnectionSettings(asked.sidecar.url, deadline_seconds=seconds, basic_auth=login)
    endpoint = Endpoint(settings, clock, _SIDECAR)
    try:
        reply = await endpoint.read()
    except ReadFailedError as error:
        if error.reason is not Reason.UNAUTHORISED:
            return _Page(problem=str(error))
        refused = _ASKS if login is None else f"it refuses the user {login.username} or this password"
        return _Page(problem=refused, locked=True)
    finally:
        await endpoint.aclose()
    rows = of_page(reply.body, reply.at)
    if rows is None:
        return _Page(
            problem=f"{shown(asked.sidecar.url)}: is no sidecar's page; give --sidecar its URL, or none"
        )
    return _Page(rows)


def _beside(asked: Asked, pages: list[_Page], samples: list[EngineSample]) -> Beside | None:
    if asked.sidecar is None or not pages:
        return None
    url, wanted = shown(asked.sidecar.url), asked.sidecar.asked_for
    told = [page.rows for page in pages if page.rows is not None]
    if not told:
        return Beside(url, wanted, pages[-1].problem, answers=pages[-1].locked)
    first, last = told[0], told[-1]
    name, problem = _called(asked, last, samples)
    if problem:
        return Beside(url, wanted, problem, answers=bool(_engines_on(last)))
    version = next((row.labels[0] for row in last.of(BUILD_INFO)), "")
    return Beside(url, wanted, version=version, witness=Witness(Origin.SIDECAR, name, first, last))


def _called(asked: Asked, page: Rows, samples: list[EngineSample]) -> tuple[str, str]:
    """What the sidecar calls the engine, or why that can't be told."""
    known = _engines_on(page)
    sources = page.owners(SOURCE_UP)
    for name in (asked.name, asked.engine.name):
        if name and (name in known or name in sources):
            return name, ""
    if asked.name:
        return "", f"it reads no engine called {asked.name}; it reads {', '.join(known) or 'none'}"
    alike = [name for name in known if _is_alike(name, page, samples)]
    if len(alike) == 1 and len(known) == 1:
        return alike[0], ""
    if not known:
        return "", "it reads no engine that answers"
    return "", f"it reads {', '.join(known)}: say with --name which of them this is, if any"


def _engines_on(page: Rows) -> tuple[str, ...]:
    """The engines that a sidecar's page tells of."""
    return tuple(dict.fromkeys((*page.owners(ENGINE_INFO), *page.owners(SEQUENCES))))


def _is_alike(name: str, page: Rows, samples: list[EngineSample]) -> bool:
    """Whether an engine on the page has the models and the pools of the one looked at."""
    if not samples:
        return False
    ours = {(each.rank, each.model_name): each.blocks for each in samples[-1].ranks}
    total = {
        (row.labels[1], row.labels[2]): row.value
        for row in page.of(KV_BLOCKS)
        if row.labels[0] == name and row.labels[3] == "total"
    }
    theirs = {(row.labels[1], row.labels[2]) for row in page.of(SEQUENCES) if row.labels[0] == name}
    return theirs == set(ours) and all(ours[key] == blocks for key, blocks in total.items())


def _knows_it_down(beside: Beside | None) -> bool:
    """Whether the sidecar can't read the engine either: then it can tell more than that it is silent."""
    witness = beside.witness if beside else None
    rows = () if witness is None else witness.last.of(SOURCE_UP)
    return any(witness is not None and row.labels[0] == witness.engine and not row.value for row in rows)


def _may_know(beside: Beside | None) -> str:
    """That a sidecar is there which may read the engine under a name of its own, and could tell more."""
    if beside is None or not beside.answers:
        return ""
    return f". The sidecar at {beside.url} may know more: {beside.problem}"


def _other_engines(asked: Asked, beside: Beside | None) -> frozenset[str]:
    """Sources of the sidecar that are engines too."""
    witness = beside.witness if beside else None
    known = witness.last.owners(ENGINE_INFO) if witness else ()
    return frozenset((*asked.others, *known))
