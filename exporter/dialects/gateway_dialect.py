"""The Protocol every dialect of a gateway keeps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from exporter.exposition import Series
from exporter.gateway_sample import GatewaySample

Slot = TypeVar("Slot")


@dataclass(frozen=True, slots=True)
class Asked:
    """Whom a page is read for: the gateway's name, and what settings say of it (empty: not said).

    ``cluster`` is what it calls the engines behind it, ``listener`` where it counts their clients' requests.
    """

    gateway: str
    cluster: str = ""
    listener: str = ""


class AmbiguousError(Exception):
    """The page doesn't tell what was asked for: ``problem`` and ``remedy``, a line together."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}; {remedy}")
        self.problem = problem
        self.remedy = remedy


class GatewayDialect(Protocol[Slot]):
    """How one gateway spells what a ``GatewaySample`` holds."""

    @property
    def kind(self) -> str:
        """The gateway's name: ``envoy``, ``litellm``."""

    @property
    def title(self) -> str:
        """The gateway as people write it: ``Envoy``, ``LiteLLM``."""

    @property
    def absences(self) -> tuple[tuple[str, str], ...]:
        """Why a field of a sample may be unknown, and what can be done: (field, reason), for people."""

    def recognises(self, names: Collection[str]) -> bool:
        """Whether an endpoint with series of these names speaks this dialect."""

    def interpret(self, series: Series) -> Slot | None:
        """What one series means (None: nothing to us). Called once a distinct series."""

    def sample(
        self, readings: Sequence[tuple[Slot, float]], asked: Asked, *, at: float, read_seconds: float
    ) -> GatewaySample:
        """One read that began at ``at`` (seconds since the epoch). Raises AmbiguousError."""
