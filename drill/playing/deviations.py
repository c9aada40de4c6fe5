"""Where a run's figures are others than published ones, each with its reason."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import NamedTuple

from drill.playing.counted import Counted
from drill.playing.key_metrics import PHASES, KeyMetrics
from drill.playing.run import Ran
from drill.playing.table import FLOOR_NOTE, ROWS, table
from drill.scenarios.published import Published

TOLERANCE = 0.1
"""Shares by which figures may differ and still be called the same."""


class Deviation(NamedTuple):
    """``ours`` and ``theirs`` in words; ``reason`` None: nobody has said why."""

    title: str
    phase: str
    ours: str
    theirs: str
    reason: str | None


def deviations(
    metrics: Mapping[str, KeyMetrics],
    counted: Mapping[str, Counted],
    published: Published,
    floors: Mapping[str, frozenset[str]] | None = None,
) -> list[Deviation]:
    """All of them, row by row. ``floors``: by phase, fields that are lower bounds."""
    found = []
    for row in ROWS:
        for phase in PHASES:
            figure = published.figures.get(row.field, {}).get(phase)
            if figure is None:
                continue
            value = row.value(metrics[phase], counted[phase])
            if value is None or abs(value - figure.value) > TOLERANCE * abs(figure.value):
                words = row.words(value, is_floor=row.field in (floors or {}).get(phase, ()))
                found.append(
                    Deviation(row.title, phase, words, figure.words, published.reason(row.field, phase))
                )
    return found


def told(found: list[Deviation], width: int) -> str:
    """As lines of text: a reason is said once, after all the figures that it is of."""
    lines: list[str] = []
    by_reason: dict[str, list[Deviation]] = {}
    for each in found:
        by_reason.setdefault(each.reason or "nobody has said why", []).append(each)
    for reason, group in by_reason.items():
        figures = "; ".join(f"{each.title} {each.phase} {each.ours}, there {each.theirs}" for each in group)
        lines += textwrap.wrap(
            f"{figures}: {reason}.",
            width,
            initial_indent="- ",
            subsequent_indent="  ",
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def beside(ran: Ran, published: Published | None, width: int = 110) -> str:
    """The table of a run; where there are published figures, these beside it, and below what differs and why."""
    rows = table(ran.metrics, ran.counted, published, ran.floors)
    if any(ran.floors.values()):
        rows += f"\n\n{FLOOR_NOTE}"
    if published is None:
        return rows
    found = deviations(ran.metrics, ran.counted, published, ran.floors)
    return (
        f"{rows}\n\nWhere it differs from {published.where} by more than {TOLERANCE:.0%}, and why:\n"
        f"{told(found, width)}"
    )
