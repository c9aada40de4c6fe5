"""Reads the Prometheus text format: bytes in, only the wanted series out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

Slot = TypeVar("Slot")


@dataclass(frozen=True, slots=True)
class Series:
    """A sample's name and labels, unescaped, labels in the order of the text."""

    name: str
    labels: tuple[tuple[str, str], ...]


class Reader(Generic[Slot]):
    """Reads one endpoint's text again and again.

    ``interpret`` is called once for each distinct series and says what it means to the caller, or
    None for a series that is not wanted.
    """

    def __init__(self, interpret: Callable[[Series], Slot | None]) -> None:
        self._interpret = interpret

    def read(self, body: bytes) -> list[tuple[Slot, float]]:
        """What the wanted series of ``body`` hold, in the order of the text."""
        raise NotImplementedError
