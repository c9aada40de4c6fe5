"""Where things stand in a PromQL text: series, calls, operators, numbers and ranges, in their order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|\#[^\n]*)
  | (?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`)
  | (?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![a-zA-Z_0-9]))
  | (?P<duration>\d[\da-z]*)
  | (?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)
  | (?P<sign>==|!=|=~|!~|>=|<=|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_LISTS = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})
_OPERATORS = frozenset({"and", "or", "unless", "atan2"})
_BRACKETED = frozenset({"start", "end", "fill", "fill_left", "fill_right"})
_NUMBERS = frozenset({"inf", "nan"})
_SIGNS = frozenset({"+", "-", "*", "/", "%", "^", "==", "!=", ">", "<", ">=", "<="})


class Word(NamedTuple):
    """A token: ``kind`` is a group of the pattern."""

    kind: str
    text: str
    at: int

    @property
    def lower(self) -> str:
        """Keywords are written as one likes."""
        return self.text.lower()


@dataclass(slots=True)
class Landmarks:
    """By what kind of node they are, in the order of the text."""

    selectors: list[Word] = field(default_factory=list)
    calls: list[Word] = field(default_factory=list)
    operators: list[Word] = field(default_factory=list)
    numbers: list[Word] = field(default_factory=list)
    windows: list[Word] = field(default_factory=list)
    """What stands between brackets."""


def words(text: str) -> list[Word]:
    """All tokens but spaces and comments."""
    found = (Word(match.lastgroup or "", match.group(), match.start()) for match in _TOKEN.finditer(text))
    return [word for word in found if word.kind != "space"]


def most_levels(text: str) -> int:
    """How deep an expression's tree can be at most: each operator and each bracket that opens may be a level of it."""
    levels = _SIGNS | _OPERATORS | {"("}
    return sum(word.lower in levels for word in words(text) if word.kind in {"name", "sign"})


def unquoted(text: str) -> str:
    """The text with an x for each character that stands in quotes or in a comment."""
    plain = list(text)
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "text":
            plain[match.start() + 1 : match.end() - 1] = "x" * (match.end() - match.start() - 2)
        elif match.lastgroup == "space":
            plain[match.start() : match.end()] = " " * (match.end() - match.start())
    return "".join(plain)


def landmarks(text: str) -> Landmarks:
    """Of an expression. What isn't PromQL gives something too: whether it fits is for the caller to see."""
    marks = Landmarks()
    tokens = _Tokens(words(text))
    for word in tokens:
        if word.text == "[":
            marks.windows.append(tokens.past_bracket(text, word))
        elif word.text == "{":
            tokens.past("}")
            if not tokens.named:
                marks.selectors.append(word)
            tokens.named = False
        else:
            _place(marks, tokens, word)
    return marks


class _Tokens:
    """Goes through tokens. ``named``: the last one was the name of series; ``operand``: one may end here."""

    def __init__(self, tokens: list[Word]) -> None:
        self._tokens = tokens
        self._next = 0
        self.named = False
        self.operand = False

    def __iter__(self) -> Iterator[Word]:
        while self._next < len(self._tokens):
            self._next += 1
            yield self._tokens[self._next - 1]

    def ahead(self) -> str:
        """The next token, in small letters."""
        return self._tokens[self._next].lower if self._next < len(self._tokens) else ""

    def past(self, closing: str) -> None:
        """Leave out everything to a closing bracket."""
        while self._next < len(self._tokens) and self._tokens[self._next].text != closing:
            self._next += 1
        self._next += 1
        self.operand = True

    def past_bracket(self, text: str, opening: Word) -> Word:
        """Leave a range out, and give it."""
        start = opening.at + 1
        self.past("]")
        end = self._tokens[self._next - 1].at if self._next <= len(self._tokens) else len(text)
        return Word("window", text[start:end], start)

    def past_one(self) -> None:
        """Leave out a duration, or a time, with its sign."""
        if self.ahead() in ("-", "+"):
            self._next += 1
        self._next += 1
        self.operand = True


def _place(marks: Landmarks, tokens: _Tokens, word: Word) -> None:
    tokens.named = False
    if word.kind == "number" or (word.kind == "name" and word.lower in _NUMBERS):
        marks.numbers.append(word)
        tokens.operand = True
    elif word.kind == "name":
        _place_name(marks, tokens, word)
    elif word.text == "@":
        if tokens.ahead() not in ("start", "end"):
            tokens.past_one()
    elif word.text in _SIGNS:
        if tokens.operand:
            marks.operators.append(word)
        tokens.operand = False
    else:
        tokens.operand = word.text == ")" or word.kind == "text"


def _place_name(marks: Landmarks, tokens: _Tokens, word: Word) -> None:
    ahead = tokens.ahead()
    if word.lower in _LISTS and (ahead == "(" or word.lower.startswith("group_")):
        if ahead == "(":
            tokens.past(")")
        # a grouping before its operand, or behind it: what comes is for the next token to say
        tokens.operand = word.lower in ("by", "without") and tokens.ahead() != "("
    elif word.lower in _OPERATORS and tokens.operand:
        marks.operators.append(word)
        tokens.operand = False
    elif word.lower == "offset" and tokens.operand:
        tokens.past_one()
    elif word.lower == "bool" and not tokens.operand:
        pass
    elif word.lower in _BRACKETED and ahead == "(":
        tokens.past(")")
        tokens.operand = word.lower in ("start", "end")
    elif ahead == "(" or (ahead in ("by", "without") and not tokens.operand):
        marks.calls.append(word)
        tokens.operand = False
    else:
        marks.selectors.append(word)
        tokens.named = tokens.operand = True
