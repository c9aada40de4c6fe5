"""What a cluster's PCIe links are like as a whole, for boards: a thousand workers have eight thousand of them."""

from __future__ import annotations

from collections.abc import Callable

from alerts.conditions import Rendering
from alerts.pack.promql import by, gauge
from alerts.recording import Recording, RecordingGroup
from alerts.recording_gpus import DOWNGRADED as DOWNGRADED_GPUS
from alerts.recording_gpus import SATURATED
from exporter.derive.attribution import SWAP_SHARE
from exporter.derive.pcie import PCIE_DOWNGRADED, PCIE_SATURATION
from exporter.signal import PEAK_SUFFIX, Signal

EVERY_SECONDS = 60
"""A twin has the maximum of a minute, so that nothing is lost."""


def _name(signal: Signal, operation: str, more: str = "") -> str:
    return f"cluster:{signal.full_name}{more}:{operation}"


def _each(rendering: Rendering, signal: Signal, labels: tuple[str, ...]) -> str:
    """One value of each subject, however often it is scraped: the largest, of its twin where it has one."""
    name = signal.full_name + (PEAK_SUFFIX if signal.peak else "")
    held = f"max_over_time({name}{rendering.matchers()}[{rendering.lookback}])"
    return f"max by ({by(rendering, labels)}) ({held})"


def _largest(signal: Signal, labels: tuple[str, ...]) -> Callable[[Rendering], str]:
    return lambda rendering: _each(rendering, signal, labels)


def _above(rendering: Rendering) -> str:
    """Of what alerts have recorded already, which is nothing where no link is full: 0 where links are known at all."""
    group = by(rendering, ())
    return f"count by ({group}) ({SATURATED.record})\nor on ({group})\n0 * max by ({group}) ({BUSIEST.name})"


def _by_swap(rendering: Rendering) -> str:
    """Of engines at the line alone: all of next to nothing is a share of 1 too."""
    on = by(rendering, SATURATED.scope.labels)
    shares = _each(rendering, SWAP_SHARE, SATURATED.scope.labels)
    return f"max by ({by(rendering, ())}) ({shares} and on ({on}) {SATURATED.record})"


def _downgraded(rendering: Rendering) -> str:
    """The same: 0 where it is told at all."""
    group = by(rendering, ())
    told = f"0 * group by ({group}) ({gauge(rendering, PCIE_DOWNGRADED)})"
    return f"count by ({group}) ({DOWNGRADED_GPUS.record})\nor on ({group})\n{told}"


BUSIEST = Recording(
    _name(PCIE_SATURATION, "max"),
    "Saturation of the busiest PCIe link within a minute, by direction.",
    _largest(PCIE_SATURATION, ("direction",)),
    ("direction",),
)
AT_THE_LINE = Recording(
    _name(PCIE_SATURATION, "count", "_above"),
    "Engines with a PCIe link above `pcie_saturation_ratio`.",
    _above,
    (),
)
DOWNGRADED = Recording(
    _name(PCIE_DOWNGRADED, "count"), "GPUs whose PCIe link lost lanes or speed.", _downgraded, ()
)
BY_SWAP = Recording(
    _name(SWAP_SHARE, "max", "_above"),
    "The largest share of PCIe bytes that swap has on an engine with a link above `pcie_saturation_ratio`; absent while"
    " there is none.",
    _by_swap,
    (),
)
LINKS = RecordingGroup((BUSIEST, AT_THE_LINE, DOWNGRADED, BY_SWAP), EVERY_SECONDS)
