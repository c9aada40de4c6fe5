"""What the watch hands to the cycle is what the sidecar's own readers find in the text at the same instant.

The watch never writes a page. Here pages are written beside it, read as the sidecar reads them, and compared field by
field: at every 100th cycle and wherever a life begins or something is done to the fleet.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from drill.actions import ChangeClients, ChangeGateway, Freeze, LoseGpu, Restart
from drill.breaker import BreakerConfig
from drill.clients import ClientConfig, Patience
from drill.expose.dcgm import Dcgm
from drill.expose.envoy import page as envoy_page
from drill.gateway_config import Admission, GatewayConfig
from drill.gateway_counts import Reject
from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.chat import chat_fleet, chat_load, chat_rate
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Scene
from drill.scenarios.setting import Setting, SettingError
from drill.second import Second
from drill.serving.config import Generation
from drill.watching.engine import WatchedEngine
from drill.watching.gateway import NAME, cluster_of, listener_of
from drill.watching.watch import Watch
from drill.workload.rates import Rate
from drill.workload.synthetic import open_loop
from exporter.dialects.envoy import EnvoyDialect
from exporter.dialects.gateway_dialect import Asked
from exporter.dialects.vllm import VllmDialect
from exporter.exposition import Reader
from exporter.gateway_sample import GatewaySample, Outcome
from exporter.gpu_sample import GpuSample
from exporter.observation import Observation
from exporter.sample import EngineSample
from tests.drill.exposing import differing
from tests.exporter.dialects.dcgm_text import Story

EVERY = 100
GATEWAY_EVERY = 10
BEFORE_ONSET_SECONDS, AFTER_ONSET_SECONDS = 60, 100
START_SECONDS = 15.0
GENERATIONS = pytest.mark.parametrize("generation", list(Generation))


class Shortcut:
    """Watches a scene as its sidecar does and holds each fresh sample that is due against the text."""

    def __init__(self, scene: Scene, seed: int = 1) -> None:
        self._scene = scene
        self._watch = Watch(scene, seed)
        self._fleet = scene.fleet(seed)
        self._dialect, self._envoy = VllmDialect(), EnvoyDialect()
        self._reader, self._gateway_reader = (
            Reader(self._dialect.interpret),
            Reader(self._envoy.interpret),
        )
        self._newest: dict[str, EngineSample | None] = dict.fromkeys(scene.names)
        self._due = set(scene.names)
        self._lives = dict.fromkeys(scene.names, -1)
        self._machines = {name: (Dcgm(name, 1.0), Story()) for name in scene.names}
        self.compared: Counter[str] = Counter()
        """How often, by what: an engine, the gateway, GPUs, and engines of which nothing was read."""
        self.last: Second | None = None
        self.gateway: GatewaySample | None = None

    def play(self, seconds: int) -> None:
        """So many seconds, all of which have to agree."""
        for second in self._fleet.run(seconds):
            marked = second.seconds % EVERY == 0 or bool(second.actions)
            observations = {each.status.name: each for each in self._watch.observe(second)}
            places = {each.name: each for each in second.engines}
            for engine in self._watch.engines:
                told = places[engine.name]
                if marked or told.life != self._lives[engine.name]:
                    self._due.add(engine.name)
                self._lives[engine.name] = told.life
                self._compare_engine(engine, observations[engine.name], second.seconds)
            if marked or second.seconds % GATEWAY_EVERY == 0:
                self._compare_gateway(second, observations[NAME])
            if second.seconds % EVERY in {EVERY - 1, 0}:
                self._compare_gpus(second, observations)
            self.last = second

    def _compare_engine(self, engine: WatchedEngine, seen: Observation, now: float) -> None:
        sample, before = seen.engine, self._newest[engine.name]
        self._newest[engine.name] = sample
        page = engine.page()
        if page is None:
            # nothing new can have come of a server that isn't there
            assert sample is before, now
            self.compared["not there"] += 1
        elif sample is not None and sample is not before and engine.name in self._due:
            readings = self._reader.read(page.encode())
            read = self._dialect.sample(
                readings, engine=engine.name, at=sample.at, read_seconds=sample.read_seconds
            )
            assert differing(read, sample) == {}, (engine.name, now)
            assert not self._reader.rejected_lines
            self._due.discard(engine.name)
            self.compared["engine"] += 1
            self.compared["a later life"] += self._lives[engine.name] > 0

    def _compare_gateway(self, second: Second, seen: Observation) -> None:
        handed = seen.gateway
        assert handed is not None
        clusters = [cluster_of(second.gateway, second.gateway_gauges)]
        text = envoy_page(listener_of(second.gateway, second.gateway_gauges), clusters)
        readings = self._gateway_reader.read(text.encode())
        read = self._envoy.sample(readings, Asked(NAME), at=handed.at, read_seconds=handed.read_seconds)
        assert read == handed, second.seconds
        self.compared["gateway"] += 1
        self.gateway = handed

    def _compare_gpus(self, second: Second, observations: dict[str, Observation]) -> None:
        for gpus in self._watch.gpus:
            seen = observations[gpus.name]
            dcgm, story = self._machines[gpus.name.removeprefix("nvml ")]
            dcgm.see(seen.gpus)
            read = {sample.identity.uuid: sample for sample in story.reads(dcgm.page(), second.seconds)}
            up = {sample.identity.uuid: sample for sample in seen.gpus if sample.up}
            if second.seconds % EVERY == 0 and seen.status.answering and up:
                shown = {uuid: sample for uuid, sample in read.items() if sample.up}
                assert shown.keys() == up.keys()
                for uuid, sample in up.items():
                    compare_gpu(shown[uuid], sample)
                self.compared["gpus"] += 1


def compare_gpu(read: GpuSample, handed: GpuSample) -> None:
    """What dcgm-exporter's text carries, as exactly as it writes it."""
    assert (read.identity, read.link) == (handed.identity, handed.link)
    assert read.memory is not None
    assert handed.memory is not None
    assert read.memory.used_bytes == pytest.approx(handed.memory.used_bytes, abs=2**20)
    assert read.utilisation is not None
    assert handed.utilisation is not None
    for ratio in ("sm_active_ratio", "memory_bandwidth_ratio"):
        assert getattr(read.utilisation, ratio) == pytest.approx(getattr(handed.utilisation, ratio), abs=1e-6)


def begun_late(scene: Scene, since: float) -> Scene:
    """The scene as if it had begun so late: its calm beginning shows nothing else. Starts are short."""
    return replace(
        scene,
        load=scene.load.shifted(-since),
        start_seconds=min(scene.start_seconds, START_SECONDS),
        plan=tuple((max(0.0, at - since), action) for at, action in scene.plan),
        episodes=(),
        upgrades=tuple(replace(each, seconds=each.seconds - since) for each in scene.upgrades),
        blindness=tuple(
            replace(each, start_seconds=each.start_seconds - since, end_seconds=each.end_seconds - since)
            for each in scene.blindness
        ),
    )


@GENERATIONS
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=list(SCENARIOS))
def test_samples_of_a_scenario_are_those_in_the_text(scenario: Scenario, generation: Generation) -> None:
    try:
        scene = scenario.scene(Setting(generation=generation, engines=1))
    except SettingError as error:
        pytest.skip(str(error))
    onset = max((each.onset_seconds for each in scene.episodes), default=BEFORE_ONSET_SECONDS)
    scene, seconds = (
        begun_late(scene, onset - BEFORE_ONSET_SECONDS),
        BEFORE_ONSET_SECONDS + AFTER_ONSET_SECONDS,
    )
    shortcut = Shortcut(scene)
    shortcut.play(seconds)
    assert shortcut.compared["engine"] + shortcut.compared["not there"] >= seconds // EVERY
    assert shortcut.compared["gateway"] >= seconds // GATEWAY_EVERY
    assert shortcut.compared["a later life"] >= len(scene.upgrades)


def rough(generation: Generation) -> Scene:
    """Three times what two engines can do; the gateway turns away in one way after the other, engines come and go."""
    seconds = 330
    calm = chat_fleet(Setting(generation=generation, engines=2), seconds=seconds)
    rate = Rate.constant(3 * chat_rate(calm, 1.0), float(seconds))
    free = {"rate_per_second": None, "max_requests": None, "admission": None}
    return replace(
        calm.loaded(open_loop(chat_load(), rate, 1)),
        gateway=GatewayConfig(rate_per_second=1.0, burst=2.0),
        clients=ClientConfig(timeout_seconds=20, patience=Patience.FIRST_TOKEN, retries=2),
        start_seconds=30.0,
        plan=(
            (30.0, ChangeGateway(free | {"max_requests": 20})),
            (60.0, ChangeGateway(free | {"admission": Admission(600)})),
            (90.0, ChangeGateway(free)),
            (110.0, ChangeGateway({"timeout_seconds": 8.0, "breaker": BreakerConfig(3, 20.0)})),
            (150.0, ChangeGateway({"timeout_seconds": None, "passes_disconnects": False})),
            (160.0, ChangeClients({"timeout_seconds": 90.0})),
            (170.0, Freeze("engine-0", 25.0)),
            (200.0, Restart("engine-0", {"max_sequences": 64}, drain_seconds=5.0)),
            (250.0, Restart("engine-1", drain_seconds=0.0)),
            (300.3, LoseGpu("engine-1", 0)),
        ),
    )


@GENERATIONS
def test_samples_are_those_in_the_text_whatever_is_done_to_a_fleet(generation: Generation) -> None:
    scene = rough(generation)
    shortcut = Shortcut(scene, seed=3)
    shortcut.play(scene.seconds)
    second, gateway = shortcut.last, shortcut.gateway
    assert second is not None
    assert gateway is not None
    # else the claim would be about less than it says
    rejected = dict(second.gateway.rejected)
    assert all(rejected[each] for each in (Reject.RATE_LIMITED, Reject.OVERFLOW, Reject.NO_ROOM))
    ended = {outcome for outcome, count in gateway.outcomes_total if count}
    assert ended >= {
        Outcome.OK,
        Outcome.REJECTED,
        Outcome.OVERFLOW,
        Outcome.TIMEOUT,
        Outcome.UPSTREAM_RESET,
        Outcome.CLIENT_LEFT,
    }
    assert sum(each.ejections for each in second.gateway.upstreams)
    assert [each.life for each in second.engines] == [1, 1]
    assert shortcut.compared["engine"] > 15
    assert shortcut.compared["not there"] > 60
    assert shortcut.compared["gpus"] >= 5
