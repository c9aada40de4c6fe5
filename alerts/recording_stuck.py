"""Where so many engines are stuck that it explains what their cluster suffers, and which engines that lasts on.

Both are remembered: what is done about it, and users who waited meanwhile, come after it.
"""

from __future__ import annotations

from collections.abc import Iterable

from alerts.conditions import Rendering, number
from alerts.pack.promql import by
from alerts.recording import Recording, RecordingGroup
from alerts.recording_ill import DEADLOCKS, FREEZES, SWAPS, THRASHES
from alerts.recording_presence import ENGINE_THERE, ENGINES_LATELY
from exporter.derive.ranks import ENGINE_INFO

_ENGINE = ENGINE_INFO.scope.labels
KINDS = (THRASHES, SWAPS, FREEZES, DEADLOCKS)
REMEMBERED = "1h"
_ACTING = "5m"
"""After which whoever was woken may have begun to start engines anew."""


def share_of_engines(ill: Iterable[str], rendering: Rendering) -> str:
    """Of the engines that were there within half an hour: those of which one of the expressions is true."""
    cluster, engine = by(rendering, ()), by(rendering, _ENGINE)
    every = " or ".join(f"group by ({engine}) ({each})" for each in ill)
    line = number(rendering.thresholds.fleet_share_ratio)
    return f"count by ({cluster}) ({every})\n/ on ({cluster})\n{ENGINES_LATELY.name} >= {line}"


def _many(rendering: Rendering) -> str:
    return share_of_engines((each.promql(rendering) for each in KINDS), rendering)


MANY_STUCK = Recording(
    f"cluster:{ENGINE_INFO.full_name}_stuck:ratio",
    "The share of engines that thrash, swap or stand still, from `fleet_share_ratio` on; absent below.",
    _many,
    (),
)


def _there(rendering: Rendering) -> str:
    stuck = f"last_over_time({MANY_STUCK.name}[{REMEMBERED}] offset {_ACTING})"
    return f"{ENGINE_THERE.name} and on ({by(rendering, ())}) ({stuck})"


THERE_AMID_TROUBLE = Recording(
    f"cluster_engine:{ENGINE_INFO.full_name}_amid_trouble:group",
    f"1 for each engine that answers while many of its cluster have been stuck, {_ACTING} to {REMEMBERED} ago; absent"
    " for others.",
    _there,
    _ENGINE,
)
STUCK_NOW = RecordingGroup((MANY_STUCK, THERE_AMID_TROUBLE), before="fleet")
