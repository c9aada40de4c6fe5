"""A sidecar beside a scene: what its sources show each second, and what one cycle makes of it."""

from __future__ import annotations

from drill.scenarios.scene import Scene
from drill.second import Second
from drill.watching.engine import WatchedEngine
from drill.watching.gateway import NAME, cluster_of, listener_of, sample_of
from drill.watching.gpus import WatchedGpus
from exporter.cycle import CycleSettings, initial, step
from exporter.engine_settings import EngineSettings
from exporter.facts import engine_facts
from exporter.gateway_join import Behind
from exporter.observation import Observation, SourceStatus
from exporter.snapshot import Snapshot

VERSION = "drill"


class Watch:
    """One sidecar for all engines of a scene, their GPUs and the gateway; ``seed`` is of how late engines answer."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self.scene = scene
        self.engines = [
            WatchedEngine(
                name,
                scene.release_of(name),
                scene.epoch,
                seed * 1009 + place,
                [each for each in scene.upgrades if each.engine == name],
            )
            for place, name in enumerate(scene.servers)
        ]
        self.gpus = [
            WatchedGpus(
                name,
                scene.engines[name],
                scene.epoch,
                place,
                scene.shows_gpus,
                [each for each in scene.blindness if each.engine == name],
            )
            for place, name in enumerate(scene.names)
        ]
        places = {name: place for place, name in enumerate(scene.names)}
        self._ranks = [[places[rank] for rank in ranks] for ranks in scene.servers.values()]
        """Of each engine, by their places among the fleet's."""
        self._state = initial(
            CycleSettings(
                {
                    name: engine_facts(
                        EngineSettings(
                            url=f"http://{name}:8000/metrics",
                            name=name,
                            kv_bytes_per_token=float(scene.engines[name].model.kv.bytes_per_token),
                            tensor_parallel=scene.engines[name].tensor_parallel,
                            gpus=tuple(uuid for rank in ranks for uuid in self.gpus[rank].uuids),
                        )
                    )
                    for name, ranks in zip(scene.servers, self._ranks, strict=True)
                },
                VERSION,
                Behind({NAME: None}, tuple(scene.servers)),
            )
        )

    def observe(self, second: Second) -> list[Observation]:
        """What the sources show at the end of a second. To be told of every second, in order."""
        now = second.seconds
        observations = []
        for engine, ranks in zip(self.engines, self._ranks, strict=True):
            told = [second.engines[rank] for rank in ranks]
            engine.see(*told)
            observations.append(engine.observe(now, busy=any(each.is_busy for each in told)))
            for rank, each in zip(ranks, told, strict=True):
                self.gpus[rank].see(each, now)
                observations.append(self.gpus[rank].observe(now))
        at = self.scene.epoch + now
        listener = listener_of(second.gateway, second.gateway_gauges)
        sample = sample_of(listener, cluster_of(second.gateway, second.gateway_gauges), at)
        status = SourceStatus(NAME, "gateway", True, at, 0.001)
        observations.append(Observation(status, gateway=sample))
        return observations

    def cycle(self, observations: list[Observation], now: float) -> Snapshot:
        """One cycle at ``now`` on the drill's clock. Raises RuntimeError where a derivation broke off: a bug."""
        self._state, snapshot = step(self._state, self.scene.epoch + now, observations)
        for failure in snapshot.failures:
            raise RuntimeError(f"{failure.phenomenon} of {failure.subject} broke off") from failure.error
        return snapshot
