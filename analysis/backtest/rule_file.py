"""A user's rule file as a backtest asks it of a server, and what of it can't be asked, in words and with its place.

Needs the ``lint`` extra, whose parser knows the grammar of Prometheus 3.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from alerts.lint.promql.parse import PromqlError, parse
from alerts.lint.promql.tree import Binary, Call, Node, Selector, children, selectors
from alerts.lint.reading.query import Contents, Query
from alerts.lint.reading.rules import read_rules
from alerts.lint.reading.source import Source, UnreadableError
from alerts.lint.reading.yaml_file import read_yaml
from analysis.backtest.outcome import Labels, Rule

_SEVERITY = "severity"
_WAKING = frozenset({"page", "critical"})
_SILENT = frozenset({"info", "none"})
_OF_ABSENCE = frozenset({"absent", "absent_over_time"})


class RulesError(Exception):
    """Rules that can't be tested: one line each, with file, line and what to do."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Asked:
    """A rule and its expression. ``every_seconds`` None: as often as all others. ``place``: for people, with its file.

    ``labels``: those that the rule adds to its series'.
    """

    rule: Rule
    expression: str
    tree: Node
    place: str
    every_seconds: float | None = None
    labels: Labels = ()


@dataclass(frozen=True, slots=True)
class RuleFile:
    """``recorded``: names that the file's recording rules make, by the place that says so."""

    asked: tuple[Asked, ...]
    recorded: Mapping[str, str]


def read_rule_file(path: Path, names: Collection[str] = ()) -> RuleFile:
    """All alerts of a rule file or a PrometheusRule, or those of these names.

    Raises RulesError: it can't be read, holds no alert (of that name), or an expression that is no PromQL.
    """
    contents = _contents(path)
    problems = [
        f"{each.file}:{each.place.line}:{each.place.column}: {each.problem}" for each in contents.troubles
    ]
    alerts = [query for query in contents.queries if query.alert is not None]
    there = {query.name for query in alerts}
    unknown = [name for name in names if name not in there]
    if unknown:
        told = ", ".join(sorted(there)) or "none at all"
        raise RulesError([f"{path}: no alert {', '.join(unknown)}: there are {told}"])
    if not alerts and not problems:
        raise RulesError([f"{path}: holds no alert"])
    wanted = [query for query in alerts if not names or query.name in names]
    severities = any(_SEVERITY in query.alert.labels for query in alerts if query.alert is not None)
    asked = []
    for query in wanted:
        if query.expression.refusal:
            problems.append(f"{_place(query)}: {query.name}: {query.expression.refusal}")
        else:
            asked.append(_asked(query, severities=severities))
    if problems:
        raise RulesError(problems)
    recorded = {query.record: _place(query) for query in contents.queries if query.record}
    return RuleFile(tuple(asked), recorded)


def asked_of(rule: Rule, expression: str, labels: Labels) -> Asked:
    """An alert that stands in no file. Raises RulesError: no PromQL."""
    try:
        tree = parse(expression)
    except PromqlError as error:
        raise RulesError([f"{rule.name}: {error}"]) from error
    read = tuple(dict.fromkeys(each.name for each in selectors(tree) if each.name))
    return Asked(replace(rule, signals=rule.signals or read), expression, tree, rule.name, None, labels)


def lacking(asked: Asked, there: Collection[str]) -> tuple[str, ...]:
    """Names that an expression reads and that aren't there, but for those that it can do without.

    It can where ``or`` gives it another that is there, and where it asks for absence.
    """
    return tuple(dict.fromkeys(_lacking(asked.tree, there)))


def check_names(file: RuleFile, there: Collection[str], source: str) -> None:
    """Raises RulesError with a line for each name that a rule reads and the server at ``source`` hasn't."""
    problems = []
    for asked in file.asked:
        for name in lacking(asked, there):
            told = (
                f"{asked.place}: {asked.rule.name} reads {name}, of which {source} has nothing in this time"
            )
            near = difflib.get_close_matches(name, there, 1, 0.85)
            if near and name not in file.recorded:
                told += f"; did you mean {near[0]}?"
            if name in file.recorded:
                told += (
                    f": the rule at {file.recorded[name]} would record it, but it isn't recorded there;"
                    " have Prometheus record it first (promtool tsdb create-blocks-from rules fills the past)"
                )
            problems.append(told)
    if problems:
        raise RulesError(problems)


def _contents(path: Path) -> Contents:
    try:
        source = Source.read(path)
        found = read_rules(source, read_yaml(source))
    except UnreadableError as error:
        raise RulesError([f"{path}:{error.place.line}:{error.place.column}: {error.problem}"]) from error
    if found is None:
        raise RulesError(
            [f"{path}: is no rule file: it has no groups, and no PrometheusRule whose spec has them"]
        )
    return found


def _asked(query: Query, *, severities: bool) -> Asked:
    alert = query.alert
    assert alert is not None  # noqa: S101 - the caller took the alerts
    labels = tuple(sorted((name, str(scalar.value)) for name, scalar in alert.labels.items()))
    severity = dict(labels).get(_SEVERITY, "")
    names = tuple(dict.fromkeys(each.name for each in selectors(query.tree) if each.name))
    rule = Rule(
        alert.name,
        severity,
        severity in _WAKING or not severities,
        severity in _SILENT,
        alert.for_seconds,
        alert.keep_firing_seconds,
        names,
    )
    every = query.group.interval_seconds if query.group is not None else None
    return Asked(rule, query.expression.text, query.tree, _place(query), every, labels)


def _place(query: Query) -> str:
    place = query.expression.place(0)
    return f"{query.source.name}:{place.line}"


def _lacking(node: Node, there: Collection[str]) -> Iterator[str]:
    if isinstance(node, Selector):
        if node.name and node.name not in there:
            yield node.name
    elif isinstance(node, Binary) and node.operator == "or":
        sides = [list(_lacking(side, there)) for side in (node.left, node.right)]
        if all(sides):
            yield from (name for side in sides for name in side)
    elif isinstance(node, Binary) and node.operator == "unless":
        yield from _lacking(node.left, there)
    elif not (isinstance(node, Call) and node.name in _OF_ABSENCE):
        for child in children(node):
            yield from _lacking(child, there)
