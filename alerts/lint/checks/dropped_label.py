"""Texts that name a label which the expression has dropped: they come out with a hole."""

from __future__ import annotations

import re
from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found, within
from alerts.lint.problem import Severity
from alerts.lint.promql.labels import Labels, labels_of
from alerts.lint.promql.tree import selectors
from alerts.lint.reading.document import Scalar
from alerts.lint.reading.query import Query

_IN_TEMPLATE = re.compile(r"\$labels\.([a-zA-Z_]\w*)|index\s+\$labels\s+\"([^\"]+)\"")
_ASKED_FOR = re.compile(r"\b(?:if|with)\s+(?:or\s+|and\s+|not\s+)?\$labels\.([a-zA-Z_]\w*)")
_IN_LEGEND = re.compile(r"\{\{\s*([a-zA-Z_]\w*)\s*\}\}")
_NEVER = frozenset({"alertname"})
"""The alert's own name is not among the labels of its expression."""


def _find(query: Query, _context: Context) -> Iterator[Found]:
    if query.expression.refusal or any(not each.name for each in selectors(query.tree)):
        return
    labels = labels_of(query.tree)
    if query.alert is not None:
        alerts = any(each.name == "ALERTS" for each in selectors(query.tree))
        for value in (*query.alert.labels.values(), *query.alert.annotations.values()):
            yield from _holes(query, value, labels, _IN_TEMPLATE, _NEVER if not alerts else frozenset())
    elif query.panel is not None and query.panel.legend is not None:
        yield from _holes(query, query.panel.legend, labels, _IN_LEGEND, frozenset())


def _holes(
    query: Query, value: Scalar, labels: Labels, pattern: re.Pattern[str], never: frozenset[str]
) -> Iterator[Found]:
    text = value.value if isinstance(value.value, str) else ""
    asked = set(_ASKED_FOR.findall(text))
    for found in pattern.finditer(text):
        label = next(each for each in found.groups() if each)
        if label in asked or (labels.may_have(label) and label not in never):
            continue
        has = (
            ", ".join(sorted(labels.only)) if labels.only else "none" if labels.only is not None else "others"
        )
        yield Found(
            within(query, value, found.start()),
            f"the expression's result has no label {label}: the text has a hole there",
            f"keep it in the expression (by, on, group_left), or leave it out; the result has {has}",
        )


CHECK = Check(
    "dropped-label", Severity.ERROR, "A text that names a label which the expression dropped.", _find
)
