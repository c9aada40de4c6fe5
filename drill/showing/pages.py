"""All pages of a scene at one second, written out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from drill.expose import envoy
from drill.expose.dcgm import Dcgm, together
from drill.gpu import Gpus
from drill.scenarios.scene import Scene
from drill.second import Second
from drill.showing.fake_gpus import FakeGpus
from drill.watching.gateway import cluster_of, listener_of
from drill.watching.watch import Watch

_COLLECT_SECONDS = 1.0
"""Between two collections of a dcgm-exporter, as the sidecar's documents recommend."""


@dataclass(frozen=True, slots=True)
class Pages:
    """At the end of ``second``. ``engines`` by name: None while nobody listens; ``busy``: those that answer late.

    ``machines``: dcgm-exporter's page of each engine's machine, ``all_machines`` of all together.
    """

    second: Second
    engines: dict[str, bytes | None]
    busy: frozenset[str]
    gateway: bytes
    machines: dict[str, bytes]
    all_machines: bytes


class Performance:
    """Of a scene, once, second by second. The same scene and seed give the same pages.

    ``beside``: where its GPUs are shown as well, as soon as a second is worked out.
    """

    def __init__(self, scene: Scene, seed: int, beside: FakeGpus | None = None) -> None:
        self.scene = scene
        self.beside = beside
        self._watch = Watch(scene, seed)
        self._dcgm = {name: Dcgm(name, _COLLECT_SECONDS) for name in scene.names}
        self._seconds: Iterator[Second] = scene.fleet(seed).run(scene.seconds)

    @property
    def gpus(self) -> tuple[Gpus, ...]:
        """Of each engine."""
        return tuple(each.gpus for each in self._watch.gpus)

    @property
    def uuids(self) -> dict[str, tuple[str, ...]]:
        """Of each engine's GPUs, those that are shown."""
        return {name: gpus.uuids for name, gpus in zip(self.scene.names, self._watch.gpus, strict=True)}

    def next(self) -> Pages | None:
        """The next second's; None after the last."""
        second = next(self._seconds, None)
        if second is None:
            return None
        seen = {each.status.name: each for each in self._watch.observe(second)}
        for gpus, dcgm in zip(self._watch.gpus, self._dcgm.values(), strict=True):
            # samples of a driver that hangs bear the time they were read at, and its exporter stands still
            dcgm.see(seen[gpus.name].gpus)
        if self.beside is not None:
            self.beside.show(self.gpus, second)
        pages = {engine.name: engine.page() for engine in self._watch.engines}
        return Pages(
            second,
            {name: None if page is None else page.encode() for name, page in pages.items()},
            frozenset(
                self.scene.rank_of.get(each.name, each.name) for each in second.engines if each.is_busy
            ),
            envoy.page(
                listener_of(second.gateway, second.gateway_gauges),
                [cluster_of(second.gateway, second.gateway_gauges)],
            ).encode(),
            {name: dcgm.page().encode() for name, dcgm in self._dcgm.items()},
            together(list(self._dcgm.values())).encode(),
        )
