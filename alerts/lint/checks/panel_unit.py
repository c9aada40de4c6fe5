"""Panels whose unit or limits don't fit a ratio: 93 % that reads 0.93 %, a red line at 85 that is never reached."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found
from alerts.lint.problem import Severity
from alerts.lint.promql.shape import share, told
from alerts.lint.reading.query import Query

_PERCENT, _RATIO = "percent", "percentunit"
_BEYOND = 1.5


def _find(query: Query, _context: Context) -> Iterator[Found]:
    panel = query.panel
    found = share(told(query.tree)) if panel is not None else None
    if panel is None or found is None:
        return
    unit = panel.unit.value if panel.unit is not None else None
    if panel.unit is not None and unit == _PERCENT and found.factor == 1:
        yield Found(
            query.source.place(panel.unit.at),
            "the value goes from 0 to 1, and this unit shows 0.93 of it as 0.93 %",
            f'take the unit "{_RATIO}"',
        )
    if panel.unit is not None and unit == _RATIO and found.factor >= 100:  # noqa: PLR2004 -- per cent
        yield Found(
            query.source.place(panel.unit.at),
            f"the value goes from 0 to {found.factor:g}, and this unit multiplies it by 100 once more",
            f'take the unit "{_PERCENT}", or leave the factor out',
        )
    for limit in panel.limits:
        if isinstance(limit.value, float) and limit.value > _BEYOND * found.factor:
            yield Found(
                query.source.place(limit.at),
                f"the value goes from 0 to {found.factor:g} and never reaches the limit {limit.value:g}",
                f"write {limit.value / 100 * found.factor:g}",
            )


CHECK = Check("panel-unit", Severity.ERROR, "A panel whose unit or limits don't fit a ratio.", _find)
