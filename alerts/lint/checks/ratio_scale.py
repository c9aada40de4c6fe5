"""A gauge from 0 to 1 beside 85, and one of per cent beside 0.85."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found, at
from alerts.lint.problem import Severity
from alerts.lint.promql.shape import compared, share
from alerts.lint.promql.tree import Selector
from alerts.lint.reading.query import Query

_NEARLY_WHOLE = 1.5
"""Times the whole: beyond what rounding and a sum over processes make of a ratio."""
_PER_CENT = 100.0


def _find(query: Query, _context: Context) -> Iterator[Found]:
    for node, value, _operator, limit in compared(query.tree):
        found = share(value)
        if found is None:
            continue
        name = found.of.name if isinstance(found.of, Selector) else "this ratio"
        whole = found.factor
        if limit > _NEARLY_WHOLE * whole:
            meant = limit / _PER_CENT * whole
            better = f"compare with {meant:g}" if limit <= _PER_CENT else f"compare with a part of {whole:g}"
            yield Found(
                at(query, node),
                f"{name} goes from 0 to {whole:g} here and is compared with {limit:g}",
                better,
            )
        elif whole >= _PER_CENT and 0 < limit < 1:
            yield Found(
                at(query, node),
                f"{name} goes from 0 to {whole:g} here and is compared with {limit:g}, less than one per cent",
                f"compare with {limit * whole:g}",
            )


CHECK = Check(
    "ratio-scale", Severity.ERROR, "A gauge from 0 to 1 beside 85, or one of per cent beside 0.85.", _find
)
