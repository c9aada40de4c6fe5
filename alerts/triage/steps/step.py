"""One question of the runbook: its answer in a line, numbers below it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Step:
    """``answer`` begins with a word that can be read from afar; ``alarming``: whether that word is bad news.

    ``values`` are what ``lines`` say, in base units, for programs.
    """

    name: str
    answer: str
    alarming: bool = False
    lines: tuple[str, ...] = ()
    values: Mapping[str, float | str] = field(default_factory=dict)
