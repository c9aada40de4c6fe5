"""The incident of 2026-09-29: a burst of long documents fills the KV pools, V0 swaps, clients come again, nobody dies.

Before it, chat sessions and a few that read documents, on engines that swap when preempted (``--preemption-mode swap``,
40 GB of swap space a GPU), prefill prompts whole, and keep no prefixes. Then more sessions send documents of 8k to
64k tokens within seconds. What a person sees, in this order: prompts are computed one after the other and no token
comes for most of a minute (``tpot_p99_seconds``, ``head_of_line_ratio``); clients that wait for 30 s leave and send
everything again, which the gateway doesn't tell the engines (``orphan_sequences``, ``retry_amplification_ratio``);
``kv_usage_ratio`` stands at 1 and answers of thousands of tokens grow beyond the pool: ``swapped_sequences`` rises a
sequence every few seconds and nobody new is let in; when the orphans' connections time out all of the swapped come
back at once, and a queue of requests whose clients are gone is computed before the living. It doesn't end by itself.
PCIe stays at a few per cent of its link while it lasts: V0 copies blocks in pieces of 4 KiB. ``incident-pages`` is the
same with blocks that are copied in one piece (``Copies.PAGES``), which fills the link, for as long as a copy takes.
``incident-swap-full`` is the same with 16 GB of swap space a GPU: ``swap_tier_used_ratio`` rises, and where somebody
has to be swapped and the pool on the host is full, the engine dies with all that is in it, and is started again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from alerts.causes import Cause
from drill.actions import ChangeGateway, Restart
from drill.clients import ClientConfig, Patience
from drill.gateway_config import Admission, GatewayConfig
from drill.scenarios import scene as scenes
from drill.scenarios.fleets import decode_cost, engine_config, names
from drill.scenarios.incident_postmortem import POSTMORTEM
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Episode, Scene
from drill.scenarios.setting import Setting, SettingError
from drill.serving.config import Copies, EngineConfig, Generation
from drill.serving.request import PreemptionMode
from drill.serving.step_time import Batch
from drill.workload.arrivals import Stream
from drill.workload.lengths import Lengths, LogNormal
from drill.workload.rates import Rate
from drill.workload.synthetic import Load, closed_loop

CHAT = Load(
    LogNormal(780, 0.87, least=100, most=12_000),
    LogNormal(420, 0.4, least=50, most=4_000),
    system_tokens=900,
    tenant="chat",
    clients=40,
)
DOCUMENTS = Load(
    LogNormal(5_600, 0.8, least=2_000, most=58_000),
    LogNormal(14_000, 0.25, least=2_000, most=30_000),
    system_tokens=6_000,
    tenant="documents",
    clients=20,
)
"""8k to 64k tokens, of which instructions and examples are the same for all: 44 % of prompt tokens, as the prefix cache
absorbed after the incident. Answers have to be long: what makes V0 swap is growth beyond the pool."""


class Kind(NamedTuple):
    """Sessions of a kind: what they ask, and the mean of the time before they ask anew."""

    load: Load
    think_seconds: float


CHATTING, READING = Kind(CHAT, 1.0), Kind(DOCUMENTS, 10.0)
BATCHED_TOKENS = 131_072
SWAP_BYTES_GPU, SMALL_SWAP_BYTES_GPU = 40e9, 16e9
TENSOR_PARALLEL = 8
_CHAT_POOL_RATIO = 0.0555
_READING_POOL_RATIO = 0.03
"""Of the engines' pools, by prompts: that sessions begin with."""
_MOST_PREFILL_RATIO = 0.35
_BURST_SECONDS = 5.0
EPOCH = scenes.EPOCH + 600.0
START_SECONDS = 60.0
"""Within which the sessions of the baseline begin."""
GATEWAY: dict[str, Any] = {"passes_disconnects": True, "admission": Admission(expected_output_tokens=2_000)}
CLIENTS = ClientConfig(timeout_seconds=30.0, patience=Patience.SILENCE, retries=3)


@dataclass(frozen=True, slots=True)
class _Course:
    """When what happens, in seconds; each engine takes ``start_seconds`` to start.

    ``burst_pool_ratio``: of the engines' pools, by prompts, that sessions of the burst begin with. ``orphan_seconds``:
    after which the gateway ends a connection that nobody reads from; "minutes later", says the postmortem.
    """

    onset: float
    clamp: float
    restart: float
    waves: int
    wave_seconds: float
    drain_seconds: float
    start_seconds: float
    admission: float
    end: float
    seconds: int
    burst_pool_ratio: float
    orphan_seconds: float


_FULL = _Course(480, 1380, 1560, 3, 150, 30, 120, 2040, 3300, 3480, 0.63, 420)
"""From 14:10 on: the burst comes at 14:18, the clamp at 14:33, restarts from 14:36 on, admission control at 14:44; the
incident is closed at 15:05."""
_SMALL = _Course(150, 620, 650, 2, 60, 10, 30, 750, 780, 900, 0.72, 285)
"""Gaps grow beyond 10 s where sessions ask for prompts as fast as an engine computes them. In the full run that takes a
quarter of an hour: until then answers still come for some, who therefore ask for nothing, and their attempts rise from
1.6 a second and engine to 2.7. Here there is no time for it, so that more sessions come, and ask as often at once."""


def course_of(setting: Setting) -> _Course:
    """By size."""
    return setting.choose(_SMALL, _FULL)


def sessions_of(config: EngineConfig, load: Load, pool_ratio: float) -> float:
    """How many begin with prompts that take so much of an engine's pool."""
    pool = config.usable_blocks * config.block_tokens
    return pool_ratio * pool / _mean_prompt(load)


def chat_sessions(config: EngineConfig, pool_ratio: float, most_prefill_ratio: float) -> float:
    """How many an engine carries: by its pool, or where it computes prompts slowly by its time for them."""
    prompt, answer = _mean_prompt(CHAT), _mean(CHAT.output)
    wanted = sessions_of(config, CHAT, pool_ratio)
    step = decode_cost(config, max(1, round(wanted)), prompt + answer / 2).seconds
    own = round(prompt - (CHAT.system_tokens if config.prefix_caching else 0))
    batch = Batch(
        prefill_tokens=own, prefill_pairs=own * prompt / 2, prefill_context=own, prefills=1, samples=1
    )
    prefill = config.roofline().cost(batch, 0.0).seconds
    return min(wanted, most_prefill_ratio * (answer * step + CHATTING.think_seconds) / prefill)


@lru_cache(maxsize=16)
def _mean(lengths: Lengths) -> float:
    chance = np.random.default_rng(0)
    return float(np.mean([lengths.draw(chance) for _ in range(2000)]))


def _mean_prompt(load: Load) -> float:
    return load.system_tokens + _mean(load.prompt)


def sessions(kind: Kind, count: float, begin: tuple[float, float], seed: int) -> Stream:
    """So many, one at least, that stay. ``begin``: evenly from one time on, within so many seconds."""
    start, within = begin
    rate = Rate.constant(max(1, round(count)) / within, start + within, start)
    return closed_loop(kind.load, rate, seed, think_seconds=kind.think_seconds)


def _fleet(setting: Setting, copies: Copies = Copies.PIECES, swap_bytes_gpu: float = SWAP_BYTES_GPU) -> Scene:
    course = course_of(setting)
    generation = setting.generation or Generation.V0
    swaps = generation is Generation.V0
    config = engine_config(
        setting,
        "llama-70b",
        "h100",
        generation,
        tensor_parallel=TENSOR_PARALLEL,
        chunked_prefill=False,
        prefix_caching=False,
        max_batched_tokens=BATCHED_TOKENS,
        preemption=PreemptionMode.SWAP if swaps else None,
        swap_bytes_gpu=swap_bytes_gpu,
        copies=copies,
    )
    engines = dict.fromkeys(names(setting, 2, 12), config)
    count = len(engines)
    chats = count * chat_sessions(config, _CHAT_POOL_RATIO, _MOST_PREFILL_RATIO)
    readers = count * sessions_of(config, DOCUMENTS, _READING_POOL_RATIO)
    begin = (0.0, START_SECONDS)
    load = sessions(CHATTING, chats, begin, setting.seed * 10).beside(
        sessions(READING, readers, begin, setting.seed * 10 + 1)
    )
    return Scene(
        engines,
        load,
        max(course.seconds, setting.least_seconds),
        gateway=GatewayConfig(rate_per_second=1500.0),
        clients=CLIENTS,
        start_seconds=course.start_seconds,
        shows_gpus=1,
        epoch=EPOCH,
    )


def _trouble(scene: Scene, setting: Setting, name: str = "incident") -> Scene:
    course = course_of(setting)
    count = sum(sessions_of(each, DOCUMENTS, course.burst_pool_ratio) for each in scene.engines.values())
    begin = (course.onset, max(_BURST_SECONDS, setting.ramp_within(course.clamp - course.onset)))
    burst = sessions(READING, count, begin, setting.seed * 10 + 2)
    in_wave = math.ceil(len(scene.names) / course.waves)
    restarts = [
        (
            course.restart + course.wave_seconds * (place // in_wave),
            Restart(name, hardening(scene.engines[name].generation), course.drain_seconds),
        )
        for place, name in enumerate(scene.names)
    ]
    swaps = any(each.preemption is PreemptionMode.SWAP for each in scene.engines.values())
    cause = Cause.SWAP_THRASH if swaps else Cause.RECOMPUTE_THRASH
    gateway = replace(scene.gateway, passes_disconnects=False, orphan_seconds=course.orphan_seconds)
    scene = replace(scene, gateway=gateway, seconds=max(scene.seconds, course.seconds))
    return (
        scene.with_load(burst)
        .with_plan(
            (course.clamp, ChangeGateway({"rate_per_second": 400.0})),
            *restarts,
            (course.admission, ChangeGateway(GATEWAY)),
        )
        .with_episode(Episode(name, cause, course.onset, course.end, scene.names))
    )


def _fleet_with_little_swap(setting: Setting) -> Scene:
    if setting.generation is Generation.V1:
        raise SettingError("incident-swap-full: V1 has no swap space that could be full: take generation v0")
    return _fleet(setting, swap_bytes_gpu=SMALL_SWAP_BYTES_GPU)


def _trouble_with_little_swap(scene: Scene, setting: Setting) -> Scene:
    return _trouble(scene, setting, "incident-swap-full")


def _trouble_with_pages(scene: Scene, setting: Setting) -> Scene:
    return _trouble(scene, setting, "incident-pages")


def hardening(generation: Generation) -> dict[str, Any]:
    """What engines are set up with after it: swap off, prefixes kept, chunks of 512 tokens and 256 decodes."""
    changes: dict[str, Any] = {"chunked_prefill": True, "max_batched_tokens": 768, "prefix_caching": True}
    if generation is Generation.V0:  # V1 has no swap to turn off
        changes |= {"preemption": PreemptionMode.RECOMPUTE, "swap_bytes_gpu": 0.0}
    return changes


INCIDENT = Scenario(
    "incident",
    Cause.SWAP_THRASH,
    "A burst of long documents, V0 swapping, clients that come again, triage and recovery.",
    _fleet,
    _trouble,
    POSTMORTEM,
    alerts=("KvSequencesSwapped", "KvSwapEnabled"),
)
INCIDENT_PAGES = Scenario(
    "incident-pages",
    Cause.SWAP_THRASH,
    "The incident on engines whose blocks are copied in one piece: the link is the limit.",
    partial(_fleet, copies=Copies.PAGES),
    _trouble_with_pages,
    POSTMORTEM,
    alerts=("KvSequencesSwapped",),
)
INCIDENT_SWAP_FULL = Scenario(
    "incident-swap-full",
    Cause.SWAP_THRASH,
    "The incident on engines with less swap space: it fills, and an engine that has to swap then dies.",
    _fleet_with_little_swap,
    _trouble_with_little_swap,
    alerts=("KvSequencesSwapped", "SwapPoolFilling"),
)
