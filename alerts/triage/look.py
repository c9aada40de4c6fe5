"""What a look at a live engine has brought: its samples, who tells of it, and who doesn't answer."""

from __future__ import annotations

from dataclasses import dataclass, field

from alerts.triage.findings import Subjects
from alerts.triage.known import Known, Witness
from alerts.triage.rows import Row
from exporter.derive.amplification import AMPLIFICATION
from exporter.derive.blocks import KV_USAGE
from exporter.derive.gateway import INFO as GATEWAY_INFO
from exporter.derive.inventory import GPU_UP
from exporter.derive.traffic import SEQUENCES
from exporter.gateway_sample import GatewaySample
from exporter.sample import EngineSample, RankSample


@dataclass(frozen=True, slots=True)
class Beside:
    """The sidecar that was looked for. ``problem``: why it is of no use; empty where it is.

    ``answers``: it does, and only doesn't say which of its engines, if any, this is, or asks for a password.
    """

    url: str
    asked_for: bool
    problem: str = ""
    answers: bool = False
    version: str = ""
    witness: Witness | None = None

    @property
    def failed(self) -> bool:
        """Whether one that somebody counts on is silent, or blind to every engine: no wrong ``--name`` makes it so."""
        return self.asked_for and bool(self.problem) and not self.answers


@dataclass(frozen=True, slots=True)
class Envoy:
    """A gateway that can be clamped. ``admin``: the URL of its admin port; ``cluster``: its name of the engines.

    Either is empty where it isn't known.
    """

    admin: str
    cluster: str


@dataclass(frozen=True, slots=True)
class Look:
    """``samples``: the first and the last read of the engine, none where it didn't answer: then ``failure`` says why.

    ``own``: what the cycle made of them, None as well. ``gateways``: as read last. ``problems``: of other sources.
    ``gpus``: UUIDs that settings tell of the engine, ``other_engines`` the names of others that the sidecar reads.
    ``envoys``: those that were read. ``words``: of the command line, for another look at the same; none: ``url``.
    """

    engine: str
    url: str
    seconds: float
    samples: tuple[EngineSample, ...] = ()
    failure: str = ""
    own: Witness | None = None
    beside: Beside | None = None
    gateways: tuple[GatewaySample, ...] = ()
    problems: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    other_engines: frozenset[str] = frozenset()
    envoys: tuple[Envoy, ...] = ()
    words: tuple[str, ...] = ()
    witnesses: tuple[Witness, ...] = field(init=False)

    def __post_init__(self) -> None:
        sidecar = self.beside.witness if self.beside else None
        object.__setattr__(self, "witnesses", tuple(each for each in (sidecar, self.own) if each is not None))

    @property
    def newest(self) -> EngineSample | None:
        """The last read."""
        return self.samples[-1] if self.samples else None

    @property
    def sidecar(self) -> Witness | None:
        """Who has seen more than the look."""
        return self.beside.witness if self.beside else None

    def sample_of(self, known: Known) -> RankSample | None:
        """The newest sample of a rank."""
        ranks = self.newest.ranks if self.newest else ()
        return next(
            (each for each in ranks if (each.rank, each.model_name) == (known.rank, known.model_name)), None
        )

    def subjects(self) -> Subjects:
        """The engine's ranks, fullest first, its GPUs, and all gateways that are told of."""
        told: dict[tuple[str, str], None] = {}
        for witness in self.witnesses:
            for signal in (SEQUENCES, KV_USAGE):
                rows = witness.last.of(signal)
                told |= {_rank(row): None for row in rows if row.labels[0] == witness.engine}
        gpus = self.gpus or tuple(
            dict.fromkeys(uuid for witness in self.witnesses for uuid in witness.last.owners(GPU_UP))
        )
        ranks = [Known(self.witnesses, *key, gpus=gpus) for key in told]
        if not ranks and self.witnesses:
            ranks = [Known(self.witnesses, gpus=gpus)]
        ranks.sort(key=lambda known: known.value(KV_USAGE) or 0.0, reverse=True)
        owned = ranks[0].joined_gpus() if ranks else ()
        names = dict.fromkeys(
            name
            for witness in self.witnesses
            for signal in (GATEWAY_INFO, AMPLIFICATION)
            for name in witness.last.owners(signal)
        )
        return Subjects(
            tuple(ranks),
            tuple(Known(self.witnesses, uuid=uuid, gpus=gpus) for uuid in owned),
            tuple(Known(self.witnesses, gateway=name, gpus=gpus) for name in names),
        )


def _rank(row: Row) -> tuple[str, str]:
    return row.labels[1], row.labels[2]
