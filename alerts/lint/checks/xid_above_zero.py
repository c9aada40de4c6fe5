"""DCGM's XID gauge above 0: it holds the last number for good."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found, at
from alerts.lint.facts.gpus import is_xid
from alerts.lint.problem import Severity
from alerts.lint.promql.shape import bare, compared
from alerts.lint.promql.tree import Selector
from alerts.lint.reading.query import Query


def _find(query: Query, _context: Context) -> Iterator[Found]:
    if query.alert is None:
        return
    for node, value, operator, limit in compared(query.tree):
        inner = bare(value)
        if not isinstance(inner, Selector) or not is_xid(inner.name):
            continue
        if (operator in (">", "!=") and limit == 0) or (operator == ">=" and limit == 1):
            yield Found(
                at(query, node),
                f"{inner.name} keeps the number of the last XID until the exporter restarts: this fires for ever, and"
                " not again for the same one",
                f"changes({inner.name}[15m]) > 0, or thrashold_gpu_xid_errors_total, which counts them",
            )


CHECK = Check("xid-above-zero", Severity.ERROR, "DCGM's XID gauge compared with 0.", _find)
