"""The Protocol every dialect keeps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol, TypeVar

from exporter.exposition import Series
from exporter.sample import EngineSample

Slot = TypeVar("Slot")


class Dialect(Protocol[Slot]):
    """How one engine spells what an ``EngineSample`` holds."""

    @property
    def kind(self) -> str:
        """The engine's name: ``vllm``, ``sglang``, ..."""

    @property
    def title(self) -> str:
        """The engine as people write it: ``vLLM``, ``SGLang``, ..."""

    @property
    def absences(self) -> tuple[tuple[str, str], ...]:
        """Why a field of a sample may be unknown, and what can be done: (field, reason), for people."""

    def recognises(self, names: Collection[str]) -> bool:
        """Whether an endpoint with series of these names speaks this dialect."""

    def interpret(self, series: Series) -> Slot | None:
        """What one series means (None: nothing to us). Called once a distinct series."""

    def sample(
        self, readings: Sequence[tuple[Slot, float]], *, engine: str, at: float, read_seconds: float
    ) -> EngineSample:
        """One read of the engine called ``engine`` that began at ``at`` (seconds since the epoch)."""
