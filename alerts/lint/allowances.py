"""What is left alone, with a reason: by a comment in YAML, by the settings.

    # thrashold: allow rate-window: this exporter is scraped each second
    - alert: ...

A comment holds for the rule that it stands in or right before; with ``allow-file`` for the whole file. One without a
reason, or of a check that there isn't, is a problem itself.
"""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from alerts.lint.check import Found
from alerts.lint.reading.query import Query
from alerts.lint.reading.source import Source
from alerts.lint.settings import Allowance

NAME = "allowance"
"""What problems of allowances themselves are told under."""
_COMMENT = re.compile(
    r"^(?P<before>.*?)#\s*thrashold:\s*(?P<word>allow(?:-file)?)\b[ \t]*(?P<checks>[\w-]+(?:[ \t]*,[ \t]*[\w-]+)*)?"
    r"[ \t]*(?P<colon>:)?[ \t]*(?P<reason>.*)$",
    re.MULTILINE,
)
_ONLY_COMMENT = re.compile(r"[ \t]*(?:#.*)?\n?")


@dataclass(frozen=True, slots=True)
class Comment:
    """One that allows something between ``start`` and ``end`` of the file."""

    at: int
    checks: tuple[str, ...]
    reason: str
    start: int
    end: int

    def covers(self, check: str, query: Query) -> bool:
        """Whether it allows what a check finds in a query."""
        return check in self.checks and self.start <= query.start < self.end


def comments(source: Source, queries: Iterable[Query]) -> tuple[Comment, ...]:
    """Those of a YAML file, each with the rules it holds for."""
    spans = sorted({(query.start, query.end) for query in queries})
    found = []
    for match in _COMMENT.finditer(source.text):
        at = match.start() + len(match["before"])
        checks = tuple(each.strip() for each in (match["checks"] or "").split(",") if each.strip())
        start, end = 0, len(source.text)
        if match["word"] == "allow":
            start, end = _rule_at(source.text, at, spans)
        reason = match["reason"].strip() if match["colon"] else ""
        found.append(Comment(at, checks, reason, start, end))
    return tuple(found)


def faults(source: Source, said: Iterable[Comment], names: Collection[str]) -> Iterator[Found]:
    """What is wrong with comments themselves."""
    for comment in said:
        place = source.place(comment.at)
        if not comment.checks:
            yield Found(
                place, "this allows nothing: it names no check", "# thrashold: allow rate-window: why"
            )
            continue
        for check in comment.checks:
            if check not in names:
                near = difflib.get_close_matches(check, names, 1)
                hint = f"did you mean {near[0]}?" if near else "`thrashold alerts lint --list` names them all"
                yield Found(place, f"there is no check {check}", hint)
        if not comment.reason:
            yield Found(
                place,
                "this says no reason, and allows nothing without one",
                f"# thrashold: allow {', '.join(comment.checks)}: why",
            )
        elif comment.start == comment.end:
            yield Found(place, "no rule stands behind this", "put it in a rule, or right before one")


def allows(allowance: Allowance, check: str, query: Query) -> bool:
    """Whether a setting allows what a check finds in a query."""
    file, name = allowance.file or "*", allowance.name or "*"
    return (
        allowance.check == check
        and fnmatch.fnmatchcase(query.source.name, f"*{file}")
        and fnmatch.fnmatchcase(query.name, name)
    )


def _rule_at(text: str, at: int, spans: list[tuple[int, int]]) -> tuple[int, int]:
    """The rule that a comment stands in, or the one that comes next with nothing but comments between."""
    for start, end in spans:
        if start <= at < end and not _is_behind(text, at, end):
            return start, end
    for start, end in spans:
        if start > at:
            between = text[text.find("\n", at) + 1 : text.rfind("\n", 0, start) + 1]
            if all(_ONLY_COMMENT.fullmatch(line) for line in between.splitlines()):
                return start, end
            break
    return at, at


def _is_behind(text: str, at: int, end: int) -> bool:
    """Whether nothing of a rule comes after the comment: PyYAML's values reach to the next one, comments included."""
    rest = text[text.find("\n", at) + 1 : end] if "\n" in text[at:end] else ""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return not line.strip() and all(_ONLY_COMMENT.fullmatch(each) for each in rest.splitlines())
