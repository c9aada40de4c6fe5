"""Runs all checks over files: what is found, what can't be read, what was passed over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from alerts.lint.allowances import NAME as ALLOWANCE
from alerts.lint.allowances import allows, comments, faults
from alerts.lint.catalogue import CHECKS
from alerts.lint.check import Check, Context, Found
from alerts.lint.checks.promql_release import only_newer
from alerts.lint.problem import Problem, Severity
from alerts.lint.promql.tree import Aggregation, Binary, selectors, walk
from alerts.lint.reading.boards import is_board, read_board
from alerts.lint.reading.config_maps import held
from alerts.lint.reading.json_file import read_json
from alerts.lint.reading.query import Contents, Query, Trouble
from alerts.lint.reading.rules import read_rules
from alerts.lint.reading.source import Place, Source, UnreadableError
from alerts.lint.reading.yaml_file import read_yaml
from alerts.lint.settings import LintSettings

_SUFFIXES = (".yml", ".yaml", ".json")


@dataclass(frozen=True, slots=True)
class Report:
    """``queries``: how many expressions were looked at; ``passed_over``: files of a folder that are of another kind."""

    problems: tuple[Problem, ...]
    troubles: tuple[Trouble, ...]
    files: int
    queries: int
    passed_over: int
    allowed: int


def lint(paths: Iterable[Path], settings: LintSettings) -> Report:
    """All files, and those of folders. What can't be read costs itself alone."""
    contents: list[Contents] = []
    troubles: list[Trouble] = []
    passed_over = 0
    for path, named in _files(paths):
        try:
            found = _contents(Source.read(path), named=named)
        except UnreadableError as error:
            troubles.append(Trouble(str(path), error.place, error.problem))
            continue
        contents += found
        passed_over += not found
    return replace(lint_contents(contents, settings, troubles), passed_over=passed_over)


def lint_text(name: str, text: str, settings: LintSettings) -> Report:
    """A rule file or a board that stands in no file."""
    try:
        found = _contents(Source.of(name, text), named=True)
    except UnreadableError as error:
        return lint_contents([], settings, [Trouble(name, error.place, error.problem)])
    return lint_contents(found, settings, [])


def lint_contents(contents: list[Contents], settings: LintSettings, troubles: list[Trouble]) -> Report:
    """What has been read, together: names that one file records are known in the others."""
    recorded = frozenset(query.record for each in contents for query in each.queries if query.record)
    problems: list[Problem] = []
    troubles = [*troubles, *(trouble for each in contents for trouble in each.troubles)]
    allowed = 0
    for each in contents:
        context = Context(settings, recorded, _several_clusters(each, settings))
        found, left_alone = _of_file(each, context)
        problems += found
        allowed += left_alone
        troubles += _unparsed(each)
    queries = sum(len(each.queries) for each in contents)
    problems.sort(key=lambda problem: (problem.file, problem.place, problem.check))
    troubles.sort(key=lambda trouble: (trouble.file, trouble.place))
    files = len({each.source.name for each in contents})
    return Report(tuple(problems), tuple(troubles), files, queries, 0, allowed)


def _files(paths: Iterable[Path]) -> Iterator[tuple[Path, bool]]:
    """Each file once, and whether it was named itself."""
    seen: set[Path] = set()
    for path in paths:
        inside = (
            sorted(each for each in path.rglob("*") if each.suffix in _SUFFIXES) if path.is_dir() else [path]
        )
        for each in inside:
            if each not in seen and not (path.is_dir() and each.is_dir()):
                seen.add(each)
                yield each, each == path


def _contents(source: Source, *, named: bool) -> list[Contents]:
    """Of a file; nothing of one of a folder that is of another kind. Raises UnreadableError."""
    is_json = source.text.lstrip()[:1] in ("{", "[") and not source.name.endswith((".yml", ".yaml"))
    if is_json or source.name.endswith(".json"):
        document = read_json(source)
        return [read_board(source, document)] if named or is_board(document) else []
    documents = read_yaml(source)
    rules = read_rules(source, documents)
    found = [rules] if rules is not None else []
    for inner in held(source, documents):
        try:
            found += _held(inner)
        except UnreadableError as error:
            found.append(Contents(inner, troubles=(Trouble(inner.name, error.place, error.problem),)))
    if not found and named:
        raise UnreadableError(
            Place(1, 1), "is no rule file: it has no groups, and no PrometheusRule whose spec has them"
        )
    return found


def _held(source: Source) -> list[Contents]:
    """Of a text in a ConfigMap, which may be anything."""
    if source.text.lstrip()[:1] in ("{", "["):
        document = read_json(source)
        return [read_board(source, document)] if is_board(document) else []
    rules = read_rules(source, read_yaml(source))
    return [rules] if rules is not None else []


def _several_clusters(contents: Contents, settings: LintSettings) -> bool:
    """Whether a file's expressions name what tells clusters apart."""
    if settings.several_clusters is not None:
        return settings.several_clusters
    labels = set(settings.cluster_labels)
    for query in contents.queries:
        for node, _ in walk(query.tree):
            named = node.labels if isinstance(node, Aggregation) and not node.drops else ()
            joined = (node.on or ()) if isinstance(node, Binary) else ()
            if labels & {*named, *joined}:
                return True
        if any(labels & {matcher.label for matcher in each.matchers} for each in selectors(query.tree)):
            return True
    return False


def _of_file(contents: Contents, context: Context) -> tuple[list[Problem], int]:
    source = contents.source
    has_comments = source.text.lstrip()[:1] not in ("{", "[")
    said = comments(source, contents.queries) if has_comments else ()
    problems = [
        _problem(source, ALLOWANCE, Severity.ERROR, "", found) for found in faults(source, said, CHECKS)
    ]
    allowed = 0
    for check in CHECKS.values():
        for query, found in _found(check, contents.queries, context):
            reasoned = any(each.reason and each.covers(check.name, query) for each in said)
            if reasoned or any(allows(each, check.name, query) for each in context.settings.allow):
                allowed += 1
            else:
                problems.append(_problem(source, check.name, check.severity, query.name, found))
    return problems, allowed


def _found(check: Check, queries: Iterable[Query], context: Context) -> Iterator[tuple[Query, Found]]:
    """What a check finds, each fault once: a panel's limits are looked at with each of its queries."""
    seen: set[Found] = set()
    for query in queries:
        for found in check.find(query, context):
            if found not in seen:
                seen.add(found)
                yield query, found


def _problem(source: Source, name: str, severity: Severity, where: str, found: Found) -> Problem:
    line = source.line(found.place.line)
    return Problem(source.name, found.place, name, severity, where, found.what, found.fix, line)


def _unparsed(contents: Contents) -> Iterator[Trouble]:
    """Expressions that are no PromQL, old or new."""
    for query in contents.queries:
        expression = query.expression
        if expression.refusal and not only_newer(expression.text):
            place = expression.place(0)
            yield Trouble(contents.source.name, place, f"{query.name}: no PromQL: {expression.refusal}")
