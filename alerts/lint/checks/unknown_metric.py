"""Names that look like an engine's and that nobody has seen."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found, at, readings
from alerts.lint.facts.lookup import verdict
from alerts.lint.problem import Severity
from alerts.lint.reading.query import Query


def _find(query: Query, context: Context) -> Iterator[Found]:
    for selector, _ in readings(query):
        said = verdict(selector.name, context.settings.in_use, context.recorded)
        if said is not None and not said.sure:
            yield Found(at(query, selector), said.what, said.fix)


CHECK = Check(
    "unknown-metric",
    Severity.WARNING,
    "A name that looks like an engine's, or ours, and that no known release has.",
    _find,
)
