"""A report for people, with the line and a caret below it, and for programs."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any

from alerts.lint.run import Problem, Report

NARROWEST = 40
_INDENT = "    "
_QUOTE = "| "
_DOTS = "..."


def for_people(report: Report, width: int) -> Iterator[str]:
    """Line by line, in ``width`` columns, ``NARROWEST`` at least; a place stays whole, for those who click on it."""
    width = max(width, NARROWEST)
    for trouble in report.troubles:
        line, column = trouble.place
        yield f"{trouble.file}:{line}:{column}: unreadable: {trouble.problem}"
    if report.troubles:
        yield ""
    for problem in report.problems:
        yield from _told(problem, width)
        yield ""
    yield summary(report)


def summary(report: Report) -> str:
    """How it came out, in one line."""
    looked = f"{_count(report.files, 'file')}, {_count(report.queries, 'expression')}"
    parts = [_count(len(report.problems), "problem")]
    if report.troubles:
        parts.append(f"{len(report.troubles)} unreadable")
    if report.allowed:
        parts.append(f"{report.allowed} allowed")
    if report.passed_over:
        parts.append(f"{_count(report.passed_over, 'file')} of other kinds passed over")
    return f"{looked}: {', '.join(parts)}"


def for_programs(report: Report) -> str:
    """As JSON."""
    told: dict[str, Any] = {
        "files": report.files,
        "expressions": report.queries,
        "allowed": report.allowed,
        "passed_over": report.passed_over,
        "problems": [
            {
                "file": problem.file,
                "line": problem.place.line,
                "column": problem.place.column,
                "check": problem.check,
                "severity": problem.severity.value,
                "where": problem.where,
                "what": problem.what,
                "fix": problem.fix,
            }
            for problem in report.problems
        ],
        "unreadable": [
            {
                "file": trouble.file,
                "line": trouble.place.line,
                "column": trouble.place.column,
                "problem": trouble.problem,
            }
            for trouble in report.troubles
        ],
    }
    return json.dumps(told, indent=2)


def _told(problem: Problem, width: int) -> Iterator[str]:
    line, column = problem.place
    where = f" ({problem.where})" if problem.where else ""
    yield f"{problem.file}:{line}:{column}: {problem.severity}: {problem.check}{where}"
    yield from textwrap.wrap(
        problem.what, width, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False
    )
    shown, caret = _cut(problem.line, column, width - len(_INDENT) - len(_QUOTE))
    yield f"{_INDENT}{_QUOTE}{shown}"
    yield f"{_INDENT}{_QUOTE}{' ' * caret}^"
    yield from textwrap.wrap(
        problem.fix,
        width,
        initial_indent=f"{_INDENT}fix: ",
        subsequent_indent=f"{_INDENT}     ",
        break_on_hyphens=False,
    )


def _cut(line: str, column: int, room: int) -> tuple[str, int]:
    """As much of a line as fits, without its indentation, and where in it the caret stands."""
    line = line.replace("\t", " ")
    text = line.lstrip()
    at = max(column - 1 - (len(line) - len(text)), 0)
    if len(text) <= room:
        return text, at
    room -= 2 * len(_DOTS)
    start = max(at - room // 3, 0)
    end = start + room
    before, behind = _DOTS if start else "", _DOTS if end < len(text) else ""
    return before + text[start:end] + behind, len(before) + at - start


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
