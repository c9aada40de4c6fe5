"""A scene: a fleet, its load, what is done to it, who watches it, and what is true of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import NamedTuple

from alerts.causes import Cause
from drill.clients import ClientConfig
from drill.expose.release import NEWEST_V0, NEWEST_V1, Release
from drill.fleet import Action, Fleet
from drill.gateway_config import GatewayConfig
from drill.serving.config import EngineConfig, Generation
from drill.workload.arrivals import Stream

EPOCH = datetime(2026, 9, 29, 14, tzinfo=UTC).timestamp()
"""The drill's 0 on the wall clock unless a scene has another: shortly before the incident began."""


@dataclass(frozen=True, slots=True)
class Episode:
    """One thing that goes wrong, as it is known beforehand: seconds of the drill.

    ``onset_seconds``: when it is brought about, which may be before anybody can see it. ``end_seconds``: when what
    brought it about has ended or was mended. ``affected``: engines by name.
    """

    scenario: str
    cause: Cause
    onset_seconds: float
    end_seconds: float
    affected: tuple[str, ...]


_STOPS_AN_ENGINE = frozenset(
    {Cause.GPU_LOST, Cause.METRIC_RENAME, Cause.ENGINE_RESTARTS, Cause.ENGINE_DEADLOCKED}
)


class Renamed(NamedTuple):
    """A metric that is called something no dialect knows; ``field``: of a RankSample, which it was read into."""

    field: str
    metric: str
    now_called: str


@dataclass(frozen=True, slots=True)
class Upgrade:
    """From ``seconds`` on the next start of an engine is of another release, with metrics renamed.

    ``release`` None: nothing but these names is other than before.
    """

    seconds: float
    engine: str
    release: Release | None = None
    renamed: tuple[Renamed, ...] = ()


@dataclass(frozen=True, slots=True)
class Blindness:
    """The driver of an engine's machine hangs: the sidecar reads no GPU of it meanwhile."""

    engine: str
    start_seconds: float
    end_seconds: float


@dataclass(frozen=True)
class Scene:
    """What is played. ``seconds``: how long. ``plan``: actions and when they are done.

    ``releases``: of engines by name; unless told the newest whose pages were compared with a real engine's.
    ``shows_gpus``: GPUs of each engine that the sidecar reads; None: all of them, which all do the same.
    ``rank_of``: who is no engine by itself but a further data-parallel rank, and of which engine: all of them stand
    behind one server, that engine's, which is the first of its ranks.
    """

    engines: Mapping[str, EngineConfig]
    load: Stream
    seconds: int
    gateway: GatewayConfig = field(default_factory=GatewayConfig)
    clients: ClientConfig = field(default_factory=ClientConfig)
    plan: tuple[tuple[float, Action], ...] = ()
    start_seconds: float = 120.0
    episodes: tuple[Episode, ...] = ()
    releases: Mapping[str, Release] = field(default_factory=dict)
    upgrades: tuple[Upgrade, ...] = ()
    blindness: tuple[Blindness, ...] = ()
    shows_gpus: int | None = None
    epoch: float = EPOCH
    rank_of: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the engines, in order."""
        return tuple(self.engines)

    @property
    def servers(self) -> Mapping[str, tuple[str, ...]]:
        """Engines as a sidecar knows them, in order, and the ranks of each: itself first."""
        ranks: dict[str, list[str]] = {}
        for name in self.engines:
            ranks.setdefault(self.rank_of.get(name, name), []).append(name)
        return {name: tuple(its) for name, its in ranks.items()}

    def release_of(self, engine: str) -> Release:
        """With which an engine begins."""
        generation = self.engines[engine].generation
        default = NEWEST_V0 if generation is Generation.V0 else NEWEST_V1
        return self.releases.get(engine, default)

    def fleet(self, seed: int) -> Fleet:
        """The fleet, before its first second."""
        return Fleet(
            self.engines,
            self.load.between(0.0, float(self.seconds)),
            gateway=self.gateway,
            clients=self.clients,
            plan=sorted(self.plan, key=lambda entry: entry[0]),
            seed=seed,
            start_seconds=self.start_seconds,
        )

    def one_engine(self, among: Sequence[str] = (), *, stops: bool = False) -> str:
        """The one that a trouble of a single engine hits; ``among``: of these only. ``stops``: it ends its life.

        The first that no other trouble stops, so that both are as they say; who stops one takes one that no other
        trouble has to itself. Where there is none, the first.
        """
        names = among or self.names
        alone = (each for each in self.episodes if len(each.affected) == 1)
        taken = {each.affected[0] for each in alone if stops or each.cause in _STOPS_AN_ENGINE}
        return next((name for name in names if name not in taken), names[0])

    def loaded(self, load: Stream) -> Scene:
        """With that load instead of its own."""
        return replace(self, load=load)

    def with_load(self, more: Stream) -> Scene:
        """With another load beside its own."""
        return replace(self, load=self.load.beside(more))

    def with_plan(self, *more: tuple[float, Action]) -> Scene:
        """With more done to it."""
        return replace(self, plan=(*self.plan, *more))

    def with_episode(self, episode: Episode) -> Scene:
        """With one more thing that goes wrong."""
        return replace(self, episodes=(*self.episodes, episode))
