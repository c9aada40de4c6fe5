"""What a linter finds, and how it is told: of rules and boards alike, whoever looked at them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from alerts.lint.reading.source import Place

NARROWEST = 40
_INDENT = "    "
_QUOTE = "| "
_DOTS = "..."


class Severity(StrEnum):
    """How bad it is; both end with exit code 1."""

    ERROR = "error"
    """It never works: never fires, is always empty, shows something else than it says."""
    WARNING = "warning"
    """It works until something else comes: a second cluster, a slow scrape, another release."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One find, as it is told. ``fix``: what to write instead; empty where ``what`` says so already."""

    file: str
    place: Place
    check: str
    severity: Severity
    where: str
    what: str
    fix: str
    line: str


def told(problem: Problem, width: int) -> Iterator[str]:
    """Line by line: where and what, the line with a caret below it, and what to write instead, where that is known."""
    line, column = problem.place
    where = f" ({problem.where})" if problem.where else ""
    yield f"{problem.file}:{line}:{column}: {problem.severity}: {problem.check}{where}"
    yield from textwrap.wrap(
        problem.what, width, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False
    )
    shown, caret = _cut(problem.line, column, width - len(_INDENT) - len(_QUOTE))
    yield f"{_INDENT}{_QUOTE}{shown}"
    yield f"{_INDENT}{_QUOTE}{' ' * caret}^"
    if not problem.fix:
        return
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


def counted(number: int, what: str) -> str:
    """A number of things, in words."""
    return f"{number} {what}{'' if number == 1 else 's'}"
