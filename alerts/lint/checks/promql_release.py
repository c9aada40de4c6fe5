"""PromQL and rule files that not every Prometheus reads, from 2.42 to 3."""

from __future__ import annotations

import re
from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found, at
from alerts.lint.facts.metric import is_earlier, written
from alerts.lint.facts.prometheus import FUNCTIONS, GROUP_KEYS, REMOVED, SYNTAX, Since
from alerts.lint.problem import Severity
from alerts.lint.promql.tree import Aggregation, Call, walk
from alerts.lint.promql.words import unquoted
from alerts.lint.reading.query import Query


def _find(query: Query, context: Context) -> Iterator[Found]:
    oldest = context.settings.oldest_prometheus
    yield from _of_group(query, context)
    text = unquoted(query.expression.text)
    for written_as in SYNTAX:
        found = re.search(written_as.pattern, text)
        if found is not None and is_earlier(oldest, written_as.since.release):
            yield _found(query, found.start(), written_as.title, written_as.since, context)
    for node, _ in walk(query.tree):
        if not isinstance(node, Call | Aggregation):
            continue
        since = FUNCTIONS.get(node.name)
        if since is not None and is_earlier(oldest, since.release):
            yield _found(query, node.at, node.name, since, context)
        if node.name in REMOVED:
            gone, use = REMOVED[node.name]
            yield Found(at(query, node), f"Prometheus {gone} has no {node.name} any more", use)


def _of_group(query: Query, context: Context) -> Iterator[Found]:
    if query.group is None or not query.first:
        return
    for key, since in GROUP_KEYS.items():
        place = query.group.keys_at.get(key)
        if place is not None and is_earlier(context.settings.oldest_prometheus, since.release):
            yield Found(
                query.source.place(place),
                f"{key} of a group came with Prometheus {written(since.release)}: older ones refuse the whole file",
                "leave it out, or say which Prometheus has to read the rules (releases.prometheus)",
            )


def _found(query: Query, offset: int, what: str, since: Since, context: Context) -> Found:
    oldest = written(context.settings.oldest_prometheus)
    behind = f", behind --enable-feature={since.feature}" if since.feature else ""
    refused = "query" if query.panel is not None else "whole file"
    return Found(
        query.expression.place(offset),
        f"{what} came with Prometheus {written(since.release)}{behind}; {oldest} refuses the {refused}",
        f"write it without, or say that no Prometheus before {written(since.release)} has to read it"
        " (releases.prometheus)",
    )


def only_newer(text: str) -> bool:
    """Whether an expression that can't be parsed has something in it that newer grammars know."""
    plain = unquoted(text)
    return any(re.search(each.pattern, plain) for each in SYNTAX)


CHECK = Check(
    "promql-release", Severity.WARNING, "PromQL that some Prometheus between 2.42 and 3 refuses.", _find
)
