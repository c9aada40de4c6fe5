"""What a YAML or JSON file holds, each value with the place where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from alerts.lint.reading.source import Source


class Style(Enum):
    """How a scalar is written: what its characters look like in the file."""

    PLAIN = "plain"
    SINGLE = "'"
    DOUBLE = '"'
    BLOCK = "|"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value. ``at`` and ``end`` are where it stands in the text of the file."""

    value: object
    at: int
    end: int
    style: Style = Style.PLAIN


@dataclass(frozen=True, slots=True)
class Listing:
    """Values in order."""

    items: tuple[Node, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Table:
    """Values by name, and where each name stands. ``end`` is where it is over."""

    entries: Mapping[str, Node]
    keys_at: Mapping[str, int]
    at: int
    end: int

    def text(self, key: str) -> str | None:
        """The value of ``key`` where it is a text."""
        value = value_of(self.entries.get(key))
        return value if isinstance(value, str) else None

    def table(self, key: str) -> Table | None:
        """The value of ``key`` where it is a table."""
        found = self.entries.get(key)
        return found if isinstance(found, Table) else None

    def tables(self, key: str) -> Iterator[Table]:
        """Those items of the list at ``key`` that are tables."""
        found = self.entries.get(key)
        for item in found.items if isinstance(found, Listing) else ():
            if isinstance(item, Table):
                yield item

    def scalars(self, key: str) -> dict[str, Scalar]:
        """The single values of the table at ``key``, by name."""
        found = self.table(key)
        entries = found.entries.items() if found else ()
        return {name: node for name, node in entries if isinstance(node, Scalar)}

    def key_at(self, key: str) -> int:
        """Where a key stands; where the table does, when it hasn't the key."""
        return self.keys_at.get(key, self.at)


Node = Scalar | Listing | Table
_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_BLANK_ESCAPES = frozenset("nrt \n")
_SURROGATES = range(0xD800, 0xDC00)


def value_of(node: Node | None) -> object:
    """What a scalar holds; None of anything else."""
    return node.value if isinstance(node, Scalar) else None


def plain(node: Node) -> object:
    """As dicts, lists and single values, as ``json.loads`` gives them."""
    if isinstance(node, Table):
        return {name: plain(inner) for name, inner in node.entries.items()}
    if isinstance(node, Listing):
        return [plain(inner) for inner in node.items]
    value = node.value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def spots(source: Source, scalar: Scalar) -> tuple[int, ...]:
    """For each character of a text, where it stands in the file.

    Folding, indentation and escapes change white space alone and how single characters are written, so that the
    others come in the same order. Of white space the place is that of what comes before it.
    """
    letters = list(_written(source.text, scalar))
    value = scalar.value if isinstance(scalar.value, str) else ""
    found: list[int] = []
    last, taken = scalar.at, 0
    for letter in value:
        if not letter.isspace() and taken < len(letters):
            last = letters[taken]
            taken += 1
        found.append(last)
    return tuple(found)


def _written(text: str, scalar: Scalar) -> Iterator[int]:
    """Where the characters that aren't white space stand."""
    at, end = scalar.at, scalar.end
    if scalar.style is Style.BLOCK:
        at = text.find("\n", at, end) + 1
    elif scalar.style is not Style.PLAIN:
        at, end = at + 1, end - 1
    while at < end:
        letter = text[at]
        if scalar.style is Style.DOUBLE and letter == "\\":
            escape = _ESCAPE.match(text, at)
            length = len(escape.group()) if escape else 1
            if text[at + 1 : at + 2] not in _BLANK_ESCAPES:
                yield at
                if _is_first_of_pair(text, at):
                    length += 6
            at += length
        elif scalar.style is Style.SINGLE and letter == "'":
            yield at
            at += 2
        else:
            if not letter.isspace():
                yield at
            at += 1


def _is_first_of_pair(text: str, at: int) -> bool:
    """Whether an escape is the first half of a character that JSON writes in two."""
    digits = text[at + 2 : at + 6]
    if text[at + 1 : at + 2] != "u" or text[at + 6 : at + 8] != "\\u":
        return False
    return re.fullmatch(r"[0-9a-fA-F]{4}", digits) is not None and int(digits, 16) in _SURROGATES
