"""What is done to a fleet at some time: triage, and faults. Each is given to ``Fleet`` with its time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace

from drill.fleet import Fleet
from drill.replica import Replica


def _words(changes: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {_value(value)}" for name, value in changes.items())


def _value(value: object) -> str:
    """As a person writes it: on and off, 400 for 400.0, settings of settings by their names."""
    if value is None or isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:,.10g}"
    if is_dataclass(value) and not isinstance(value, type):
        return f"({_words({each.name: getattr(value, each.name) for each in fields(value)})})"
    return str(value)


def _fields(config: object, names: Iterable[str]) -> dict[str, object]:
    return {name: getattr(config, name) for name in names}


def _unchanged(
    config: object, set_to: Mapping[str, object], before: Mapping[str, object]
) -> dict[str, object]:
    """What there was before, of fields that still are as they were set."""
    return {name: before[name] for name, value in set_to.items() if getattr(config, name) == value}


@dataclass(frozen=True)
class ChangeGateway:
    """Other settings of the gateway: fields of ``GatewayConfig``. ``seconds``: for so long; None: for good.

    Then those that nobody has changed meanwhile are as before.
    """

    changes: Mapping[str, object]
    seconds: float | None = None

    def __str__(self) -> str:
        return f"gateway: {_words(self.changes)}"

    def apply(self, fleet: Fleet) -> None:
        """Do it."""
        if self.seconds is not None:
            before = _fields(fleet.gateway.config, self.changes)
            fleet.at(fleet.now + self.seconds, lambda: self._undo(fleet, before))
        fleet.gateway.change(replace(fleet.gateway.config, **self.changes), fleet.now)  # type: ignore[arg-type]

    def _undo(self, fleet: Fleet, before: Mapping[str, object]) -> None:
        back = _unchanged(fleet.gateway.config, self.changes, before)
        if back:
            fleet.act(ChangeGateway(back))


@dataclass(frozen=True)
class LimitInFlight:
    """The gateway's breaker opens at a share of what is in flight now, or at one request. ``seconds``: as above."""

    share: float
    seconds: float | None = None

    def __str__(self) -> str:
        return f"gateway: max_requests {self.share:g} of what is in flight"

    def apply(self, fleet: Fleet) -> None:
        """Do it."""
        active = fleet.gateway.gauges(fleet.now).downstream_rq_active
        ChangeGateway({"max_requests": max(1, round(self.share * active))}, self.seconds).apply(fleet)


@dataclass(frozen=True)
class ChangeClients:
    """Other habits of clients, from their next attempts on: fields of ``ClientConfig``. ``seconds``: as above."""

    changes: Mapping[str, object]
    seconds: float | None = None

    def __str__(self) -> str:
        return f"clients: {_words(self.changes)}"

    def apply(self, fleet: Fleet) -> None:
        """Do it."""
        if self.seconds is not None:
            before = _fields(fleet.clients.config, self.changes)
            fleet.at(fleet.now + self.seconds, lambda: self._undo(fleet, before))
        fleet.clients.config = replace(fleet.clients.config, **self.changes)  # type: ignore[arg-type]

    def _undo(self, fleet: Fleet, before: Mapping[str, object]) -> None:
        back = _unchanged(fleet.clients.config, self.changes, before)
        if back:
            fleet.act(ChangeClients(back))


@dataclass(frozen=True)
class Restart:
    """Drain an engine for ``drain_seconds`` at most and start it with other settings: fields of ``EngineConfig``."""

    engine: str
    changes: Mapping[str, object] = field(default_factory=dict)
    drain_seconds: float = 60.0

    def __str__(self) -> str:
        return f"{self.engine}: drain and restart{' with ' if self.changes else ''}{_words(self.changes)}"

    def apply(self, fleet: Fleet) -> None:
        """Do it."""
        index = fleet.index(self.engine)
        config = replace(fleet.replicas[index].config, **self.changes)  # type: ignore[arg-type]
        fleet.rollout.restart(index, config, self.drain_seconds)


@dataclass(frozen=True)
class Freeze:
    """No iteration of an engine ends for ``seconds``."""

    engine: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.engine}: frozen for {self.seconds:g} s"

    def apply(self, fleet: Fleet) -> None:
        """Do it."""
        index, now = fleet.index(self.engine), fleet.now
        life = fleet.replicas[index].life
        fleet.change(index, lambda replica: replica.freeze(now))
        fleet.at(now + self.seconds, lambda: fleet.change(index, lambda one: one.thaw(fleet.now, life)))


@dataclass(frozen=True)
class Crash:
    """An engine's process dies with all that is in it, and is started again."""

    engine: str

    def __str__(self) -> str:
        return f"{self.engine}: its process dies"

    def apply(self, fleet: Fleet) -> None:
        """Do it, unless it is not there now."""
        index = fleet.index(self.engine)
        if not fleet.replicas[index].listens:
            return
        fleet.change(index, lambda replica: replica.kill())
        fleet.rollout.start_later(index)


@dataclass(frozen=True)
class LeakBlocks:
    """An engine loses so many blocks, or as many as it has free."""

    engine: str
    blocks: int

    def __str__(self) -> str:
        return f"{self.engine}: {self.blocks} blocks leak"

    def apply(self, fleet: Fleet) -> None:
        """Do it."""
        fleet.change(fleet.index(self.engine), lambda replica: replica.leak(self.blocks))


@dataclass(frozen=True)
class SlowCollectives:
    """An engine's all-reduces take ``factor`` times as long; 1: as they should."""

    engine: str
    factor: float

    def __str__(self) -> str:
        return f"{self.engine}: collectives {self.factor:g} times as long"

    def apply(self, fleet: Fleet) -> None:
        """Do it."""
        _trouble(fleet, self.engine, collective_slowdown=self.factor)


@dataclass(frozen=True)
class OtherTenant:
    """Somebody else moves so much over the PCIe link of each of an engine's GPUs, in each direction; 0: nobody."""

    engine: str
    bytes_per_second: float

    def __str__(self) -> str:
        return f"{self.engine}: another tenant moves {self.bytes_per_second / 1e9:g} GB/s over PCIe"

    def apply(self, fleet: Fleet) -> None:
        """Do it."""
        _trouble(fleet, self.engine, foreign_bytes_per_second=self.bytes_per_second)


@dataclass(frozen=True)
class NarrowLink:
    """The PCIe links of an engine's GPUs run with so many lanes."""

    engine: str
    lanes: int

    def __str__(self) -> str:
        return f"{self.engine}: PCIe links with {self.lanes} lanes"

    def apply(self, fleet: Fleet) -> None:
        """Do it."""
        fleet.change(fleet.index(self.engine), lambda replica: replica.narrow_link(self.lanes, fleet.now))


@dataclass(frozen=True)
class LoseGpu:
    """One of an engine's GPUs falls off the bus, and the engine dies of it."""

    engine: str
    gpu: int

    def __str__(self) -> str:
        return f"{self.engine}: GPU {self.gpu} lost"

    def apply(self, fleet: Fleet) -> None:
        """Do it."""
        fleet.change(fleet.index(self.engine), lambda replica: replica.lose_gpu(self.gpu))


def _trouble(fleet: Fleet, engine: str, **changes: float) -> None:
    def change(replica: Replica) -> None:
        replica.troubles = replace(replica.troubles, **changes)
        replica.apply_troubles(fleet.now)

    fleet.change(fleet.index(engine), change)
