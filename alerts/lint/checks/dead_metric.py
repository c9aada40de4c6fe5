"""Names that no engine has, has any more, or has yet."""

from __future__ import annotations

import re
from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found, at, readings
from alerts.lint.facts.lookup import verdict
from alerts.lint.problem import Severity
from alerts.lint.promql.tree import Binary, Node, Selector, selectors
from alerts.lint.reading.query import Query


def _find(query: Query, context: Context) -> Iterator[Found]:
    releases = context.settings.in_use
    for selector, above in readings(query):
        said = verdict(selector.name, releases, context.recorded)
        if said is None or not said.sure or _has_successor(selector, above, said.fix):
            continue
        yield Found(at(query, selector), said.what, said.fix)


def _has_successor(selector: Selector, above: tuple[Node, ...], fix: str) -> bool:
    """Whether what to take instead is on the other side of an ``or``: old or new, whichever an engine has."""
    for node in above:
        if isinstance(node, Binary) and node.operator == "or":
            names = {each.name for each in selectors(node)} - {selector.name}
            if any(re.search(rf"(?<![\w:]){re.escape(name)}(?![\w:])", fix) for name in names if name):
                return True
    return False


CHECK = Check("dead-metric", Severity.ERROR, "A name that no engine has, has any more, or has yet.", _find)
