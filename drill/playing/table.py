"""The key-metric table of a run, as people read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from drill.playing.key_metrics import PHASES, KeyMetrics

_Form = Callable[[float], str]


def _milliseconds(value: float) -> str:
    return f"{value * 1000:,.0f} ms"


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _gigabytes(value: float) -> str:
    return f"{value / 1e9:.1f} GB/s"


def _percent(value: float) -> str:
    return f"{value:.0%}"


ROWS: tuple[tuple[str, str, _Form], ...] = (
    ("TPOT p50", "tpot_p50_seconds", _milliseconds),
    ("TPOT p99", "tpot_p99_seconds", _milliseconds),
    ("sessions", "sessions", _count),
    ("swapped sequences", "swapped_sequences", _count),
    ("PCIe, busiest GPU", "pcie_bytes_per_second", _gigabytes),
    ("PCIe, share of link", "pcie_saturation_ratio", _percent),
)
_ABSENT = "-"


def table(metrics: Mapping[str, KeyMetrics], beside: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """Lines of text. ``beside``: what else to show of a row (by field) in each phase, in its own words."""
    head = ["", *PHASES]
    if beside:
        head += [f"{phase} there" for phase in PHASES]
    lines = [head]
    for title, field, form in ROWS:
        values = [getattr(metrics[phase], field) for phase in PHASES]
        line = [title, *(_ABSENT if value is None else form(value) for value in values)]
        if beside:
            line += [beside.get(field, {}).get(phase, _ABSENT) for phase in PHASES]
        lines.append(line)
    widths = [max(len(line[place]) for line in lines) for place in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
