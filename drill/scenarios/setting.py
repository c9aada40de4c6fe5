"""What a run of a scenario is asked for: its size, its chance, and where it is moved to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from drill.serving.config import Generation

Chosen = TypeVar("Chosen")


class Size(StrEnum):
    """How large a run is."""

    SMALL = "small"
    """At most 3 engines, 20 minutes, and 8 s of CPU."""
    FULL = "full"


MOST_ENGINES = 500
"""More take minutes before the first second is played, and gigabytes."""


class SettingError(ValueError):
    """Something that a scenario can't be run with: what, and what would do."""


@dataclass(frozen=True, slots=True)
class Setting:
    """``model``, ``gpu``, ``generation``, ``engines``: None takes the scenario's own.

    ``ramp_seconds``: what a scenario does at a stroke it does over so long; 0 is a step. Not below 0.
    ``load_ratio``: how much of its own load a scenario gets where that is what is wrong; 1 is all of it. Above 0.
    ``seed``: not below 0. ``least_seconds``: a run lasts so long at least, for what else goes wrong in it.
    Raises SettingError.
    """

    size: Size = Size.SMALL
    seed: int = 1
    model: str | None = None
    gpu: str | None = None
    generation: Generation | None = None
    engines: int | None = None
    ramp_seconds: float = 0.0
    least_seconds: int = 0
    load_ratio: float = 1.0

    def __post_init__(self) -> None:
        if self.engines is not None and self.engines < 1:
            raise SettingError(f"{self.engines} engines asked for: take 1 or more")
        if self.engines is not None and self.engines > MOST_ENGINES:
            raise SettingError(f"{self.engines:,} engines asked for: take at most {MOST_ENGINES}")
        if not 0 <= self.ramp_seconds < math.inf:
            raise SettingError(f"a ramp of {self.ramp_seconds} s asked for: take 0 or more")
        if not 0 < self.load_ratio < math.inf:
            raise SettingError(f"a load of {self.load_ratio} times its own asked for: take more than 0")
        if self.seed < 0:
            raise SettingError(f"a seed of {self.seed} asked for: take 0 or more")

    def ramp_within(self, seconds: float) -> float:
        """The ramp of a load that lasts so long. Raises SettingError for a longer one."""
        if self.ramp_seconds > seconds:
            raise SettingError(
                f"a ramp of {self.ramp_seconds:g} s for a load of {seconds:g} s asked for: take {seconds:g} or less"
            )
        return self.ramp_seconds

    def choose(self, small: Chosen, full: Chosen) -> Chosen:
        """One of two, by size."""
        return small if self.size is Size.SMALL else full
