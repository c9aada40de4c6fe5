"""A recording rule: a series that Prometheus keeps, so that what is asked often or over days costs little.

Names are ``level:metric:operations``: the labels that are left, the signal, what was done to it. The level is called
``cluster`` whatever the settings call the cluster's labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from alerts.conditions import Recorded, Rendering

_NAME = re.compile(r"[a-z_]+:thrashold_[a-z0-9_]+:[a-z0-9_]+")


@dataclass(frozen=True, slots=True)
class Recording:
    """``write`` makes its expression; ``labels`` are those that its series bear beside the cluster's.

    Raises ValueError: a name that isn't ``level:metric:operations``.
    """

    name: str
    meaning: str
    write: Callable[[Rendering], str]
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"a recorded series named {self.name!r}: take level:metric:operations")

    def promql(self, rendering: Rendering) -> str:
        """Its expression."""
        return self.write(rendering)

    def read(self, rendering: Rendering) -> str:
        """How others read it: by its name, or by its expression where nothing is recorded."""
        return self.name if rendering.recorded else self.promql(rendering)


def recording(shared: Recorded, meaning: str) -> Recording:
    """What is recorded of a condition that alerts share."""
    return Recording(shared.record, meaning, shared.raw, shared.scope.labels)


@dataclass(frozen=True, slots=True)
class RecordingGroup:
    """Recorded one after the other, so that later ones may read earlier ones.

    ``every_seconds``: how often; None: as often as Prometheus evaluates rules. ``before``: a group of alerts that it
    stands at the head of instead of being one by itself, so that they read it at the same instant.
    """

    recordings: tuple[Recording, ...]
    every_seconds: int | None = None
    before: str = ""
