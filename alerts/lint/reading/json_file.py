"""JSON into a document that knows where its values stand."""

from __future__ import annotations

import re
from json import JSONDecodeError
from json.decoder import scanstring  # type: ignore[attr-defined] # public by its documented place, not typed

from alerts.lint.reading.document import Listing, Node, Scalar, Style, Table
from alerts.lint.reading.source import Source, UnreadableError

_SPACE = re.compile(r"[ \t\n\r]*")
_WORD = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null")
_WORDS = {"true": True, "false": False, "null": None}


def read_json(source: Source) -> Node:
    """What a file holds. Raises UnreadableError: no JSON."""
    reading = _Reading(source.text)
    try:
        node = reading.whole()
    except JSONDecodeError as error:
        raise UnreadableError(source.place(error.pos), f"is no JSON: {error.msg}") from error
    except RecursionError as error:
        raise UnreadableError(source.place(0), "is nested too deeply") from error
    return node


class _Reading:
    def __init__(self, text: str) -> None:
        self._text = text

    def whole(self) -> Node:
        """The one value of the text. Raises as ``node``."""
        node, at = self.node(self.past_space(0))
        at = self.past_space(at)
        if at < len(self._text):
            raise JSONDecodeError("something stands behind its end", self._text, at)
        return node

    def past_space(self, at: int) -> int:
        """Where the next thing begins."""
        found = _SPACE.match(self._text, at)
        return found.end() if found else at

    def node(self, at: int) -> tuple[Node, int]:
        """The value that begins at ``at``, and where it ends. Raises JSONDecodeError, RecursionError."""
        first = self._text[at : at + 1]
        if first == "{":
            return self._table(at)
        if first == "[":
            return self._listing(at)
        if first == '"':
            value, end = scanstring(self._text, at + 1, False)
            return Scalar(value, at, end, Style.DOUBLE), end
        word = _WORD.match(self._text, at)
        if word is None:
            raise JSONDecodeError("a value is missing", self._text, at)
        said = word.group()
        value = _WORDS[said] if said in _WORDS else float(said)
        return Scalar(value, at, word.end()), word.end()

    def _table(self, start: int) -> tuple[Table, int]:
        entries: dict[str, Node] = {}
        keys_at: dict[str, int] = {}
        at = self.past_space(start + 1)
        while self._text[at : at + 1] != "}":
            if self._text[at : at + 1] != '"':
                raise JSONDecodeError("a name in double quotes is missing", self._text, at)
            key_at = at
            key, at = scanstring(self._text, at + 1, False)
            at = self._past(":", at)
            entries[key], at = self.node(at)
            keys_at[key] = key_at
            at = self._past_comma(at, "}")
        return Table(entries, keys_at, start, at + 1), at + 1

    def _listing(self, start: int) -> tuple[Listing, int]:
        items: list[Node] = []
        at = self.past_space(start + 1)
        while self._text[at : at + 1] != "]":
            item, at = self.node(at)
            items.append(item)
            at = self._past_comma(at, "]")
        return Listing(tuple(items), start), at + 1

    def _past(self, letter: str, at: int) -> int:
        at = self.past_space(at)
        if self._text[at : at + 1] != letter:
            raise JSONDecodeError(f"{letter!r} is missing", self._text, at)
        return self.past_space(at + 1)

    def _past_comma(self, at: int, closing: str) -> int:
        """Where the next item begins, or the closing bracket stands."""
        at = self.past_space(at)
        if self._text[at : at + 1] == closing:
            return at
        at = self._past(",", at)
        if self._text[at : at + 1] == closing:
            raise JSONDecodeError("a comma stands before the end", self._text, at)
        return at
