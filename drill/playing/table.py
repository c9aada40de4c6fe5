"""The key-metric table of a run, as people read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from drill.playing.counted import Counted
from drill.playing.key_metrics import PHASES, KeyMetrics
from drill.scenarios.published import Published

ABSENT = "-"
_FLOOR = ">"
FLOOR_NOTE = f"{_FLOOR}: within the engine's top bucket, which has no upper bound; its lower one is shown"


def _milliseconds(value: float) -> str:
    return f"{value * 1000:,.0f} ms"


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _gigabytes(value: float) -> str:
    return f"{value / 1e9:.1f} GB/s"


def _percent(value: float) -> str:
    return f"{value:.0%}"


@dataclass(frozen=True, slots=True)
class Row:
    """``field``: of KeyMetrics, or of Counted."""

    title: str
    field: str
    form: Callable[[float], str]

    def value(self, metrics: KeyMetrics, counted: Counted | None) -> float | None:
        """Of a phase; None where nothing tells."""
        source: KeyMetrics | Counted | None = metrics if self.field in KeyMetrics._fields else counted
        value: float | None = getattr(source, self.field, None)
        return value

    def words(self, value: float | None, *, is_floor: bool) -> str:
        """A figure as the table has it; ``is_floor``: what it is of is larger."""
        if value is None:
            return ABSENT
        return f"{_FLOOR} {self.form(value)}" if is_floor else self.form(value)


ROWS = (
    Row("TPOT p50", "tpot_p50_seconds", _milliseconds),
    Row("TPOT p99", "tpot_p99_seconds", _milliseconds),
    Row("sessions", "sessions", _count),
    Row("swapped sequences", "swapped_sequences", _count),
    Row("swapped blocks/s", "swapped_blocks_per_second", _count),
    Row("PCIe, busiest GPU", "pcie_bytes_per_second", _gigabytes),
    Row("PCIe, share of link", "pcie_saturation_ratio", _percent),
    Row("PCIe, while copying", "copying_bytes_per_second", _gigabytes),
    Row("requests hit", "requests_hit", _count),
)


def table(
    metrics: Mapping[str, KeyMetrics],
    counted: Mapping[str, Counted],
    published: Published | None = None,
    floors: Mapping[str, frozenset[str]] | None = None,
) -> str:
    """Lines of text, ``published`` figures beside the run's. ``floors``: by phase, fields that are lower bounds."""
    head = ["", *PHASES]
    if published:
        head += [f"{phase} there" for phase in PHASES]
    lines = [head]
    for row in ROWS:
        values = [
            row.words(
                row.value(metrics[phase], counted[phase]), is_floor=row.field in (floors or {}).get(phase, ())
            )
            for phase in PHASES
        ]
        line = [row.title, *values]
        if published:
            figures = published.figures.get(row.field, {})
            line += [figures[phase].words if phase in figures else ABSENT for phase in PHASES]
        lines.append(line)
    widths = [max(len(line[place]) for line in lines) for place in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
