"""What a cluster's PCIe links are like as a whole, for boards: a thousand workers have eight thousand of them."""

from __future__ import annotations

from collections.abc import Callable

from alerts.conditions import Rendering
from alerts.pack.promql import by
from alerts.recording import Recording, RecordingGroup
from exporter.derive.pcie import PCIE_DOWNGRADED, PCIE_SATURATION
from exporter.signal import PEAK_SUFFIX, Signal

EVERY_SECONDS = 30


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
    limit = rendering.thresholds.pcie_saturation_ratio
    return f"sum by ({by(rendering, ())}) ({_each(rendering, PCIE_SATURATION, ('uuid',))} > bool {limit:g})"


def _downgraded(rendering: Rendering) -> str:
    return f"sum by ({by(rendering, ())}) ({_each(rendering, PCIE_DOWNGRADED, ('uuid',))})"


BUSIEST = Recording(
    _name(PCIE_SATURATION, "max"),
    "Saturation of the busiest PCIe link within a minute, by direction.",
    _largest(PCIE_SATURATION, ("direction",)),
    ("direction",),
)
AT_THE_LINE = Recording(
    _name(PCIE_SATURATION, "count", "_above"),
    "GPUs with a PCIe link above `pcie_saturation_ratio` within a minute.",
    _above,
    (),
)
DOWNGRADED = Recording(
    _name(PCIE_DOWNGRADED, "count"), "GPUs whose PCIe link lost lanes or speed.", _downgraded, ()
)
LINKS = RecordingGroup((BUSIEST, AT_THE_LINE, DOWNGRADED), EVERY_SECONDS)
