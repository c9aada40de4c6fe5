"""A report for people, with the line and a caret below it, and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from alerts.lint.problem import NARROWEST, counted, told
from alerts.lint.run import Report


def for_people(report: Report, width: int) -> Iterator[str]:
    """Line by line, in ``width`` columns, ``NARROWEST`` at least; a place stays whole, for those who click on it."""
    width = max(width, NARROWEST)
    for trouble in report.troubles:
        line, column = trouble.place
        yield f"{trouble.file}:{line}:{column}: unreadable: {trouble.problem}"
    if report.troubles:
        yield ""
    for problem in report.problems:
        yield from told(problem, width)
        yield ""
    yield summary(report)


def summary(report: Report) -> str:
    """How it came out, in one line."""
    looked = f"{counted(report.files, 'file')}, {counted(report.queries, 'expression')}"
    parts = [counted(len(report.problems), "problem")]
    if report.troubles:
        parts.append(f"{len(report.troubles)} unreadable")
    if report.allowed:
        parts.append(f"{report.allowed} allowed")
    if report.passed_over:
        parts.append(f"{counted(report.passed_over, 'file')} of other kinds passed over")
    return f"{looked}: {', '.join(parts)}"


def for_programs(report: Report) -> str:
    """As JSON."""
    made: dict[str, Any] = {
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
    return json.dumps(made, indent=2)
