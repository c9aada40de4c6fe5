"""Counters as they stand: they only say how long the process has run."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found, at, readings
from alerts.lint.problem import Severity
from alerts.lint.promql.shape import is_counter
from alerts.lint.promql.tree import COMPARISONS, Aggregation, Binary, Call, Node, Number, Selector
from alerts.lint.reading.query import Panel, Query

_OVER_TIME = frozenset({"graph", "timeseries", "heatmap", "barchart", "trend"})
"""Panels that show a course; a single number may well be a total."""
_OF_BUCKETS = frozenset({"bargauge", "histogram"})
_ABOUT_PRESENCE = frozenset({"absent", "timestamp", "histogram_quantile", "absent_over_time"})
_COUNTING = frozenset({"count", "group", "count_values"})


def _find(query: Query, _context: Context) -> Iterator[Found]:
    if query.record:
        return
    for selector, above in readings(query):
        if query.panel is not None and not _is_drawn(query.panel, selector):
            continue
        if selector.window is not None or selector.offset_seconds or not is_counter(selector):
            continue
        if _is_excused(selector, above) or (query.alert is not None and not _is_compared(above)):
            continue
        yield Found(
            at(query, selector),
            f"{selector.name} is a counter: as it stands it only says how much there was since the process began",
            f"rate({selector.name}[{'$__rate_interval' if query.panel is not None else '5m'}])",
        )


def _is_drawn(panel: Panel, selector: Selector) -> bool:
    """Over time, or as buckets beside one another: those of all time say nothing of now."""
    return panel.kind in _OVER_TIME or (panel.kind in _OF_BUCKETS and selector.name.endswith("_bucket"))


def _is_excused(selector: Selector, above: tuple[Node, ...]) -> bool:
    """Whether it is part of a difference, of a division (told by lifetime-average), or there for its labels."""
    child: Node = selector
    compared = False
    for node in reversed(above):
        if isinstance(node, Call) and node.name in _ABOUT_PRESENCE:
            return True
        if isinstance(node, Aggregation) and node.name in _COUNTING:
            return True
        if isinstance(node, Binary):
            if node.operator in ("-", "/", "*") and not _is_constant(node):
                return True
            if node.operator == "*" and _has_zero(node):
                return True
            if node.operator in ("and", "unless") and child is node.right and not compared:
                return True
            compared = compared or node.operator in COMPARISONS
        child = node
    return False


def _is_constant(node: Binary) -> bool:
    return isinstance(node.left, Number) or isinstance(node.right, Number)


def _has_zero(node: Binary) -> bool:
    return any(isinstance(side, Number) and side.value == 0 for side in (node.left, node.right))


def _is_compared(above: tuple[Node, ...]) -> bool:
    return any(
        isinstance(node, Binary) and node.operator in COMPARISONS and _is_constant(node) for node in above
    )


CHECK = Check(
    "counter-without-rate", Severity.ERROR, "A counter that is compared or drawn without a rate.", _find
)
