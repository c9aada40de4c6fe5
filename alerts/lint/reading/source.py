"""A file's text, and which line and column a place in it has."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


class Place(NamedTuple):
    """Line and column, both from 1."""

    line: int
    column: int


class UnreadableError(Exception):
    """What can't be read, where, and why; the file goes on being read where that makes sense."""

    def __init__(self, place: Place, problem: str) -> None:
        super().__init__(problem)
        self.place = place
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Source:
    """``name`` is what people are told. ``line_starts``: offsets into ``text``.

    A text that stands in a value of another file has that one as ``outer``, and in ``spots`` where each of its
    characters stands there: places and lines are the outer file's.
    """

    name: str
    text: str
    line_starts: tuple[int, ...]
    outer: Source | None = None
    spots: tuple[int, ...] = ()

    @classmethod
    def of(cls, name: str, text: str) -> Source:
        """A text that stands in no file, or has been read already."""
        starts = [0]
        starts += [at + 1 for at, letter in enumerate(text) if letter == "\n"]
        return cls(name, text, tuple(starts))

    @classmethod
    def read(cls, path: Path) -> Source:
        """A file. Raises UnreadableError: it can't be opened, or isn't UTF-8."""
        try:
            data = path.read_bytes()
        except OSError as error:
            raise UnreadableError(Place(1, 1), f"can't be read: {error.strerror}") from error
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            before = data[: error.start]
            line = before.count(b"\n") + 1
            raise UnreadableError(
                Place(line, error.start - before.rfind(b"\n")), "is no text in UTF-8"
            ) from error
        return cls.of(str(path), text.replace("\r\n", "\n"))

    def place(self, offset: int) -> Place:
        """Of a character."""
        if self.outer is not None:
            return self.outer.place(self.spots[min(offset, len(self.spots) - 1)] if self.spots else 0)
        line = bisect_right(self.line_starts, offset)
        return Place(line, offset - self.line_starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """The text of a line, counted from 1; empty beyond the last."""
        if self.outer is not None:
            return self.outer.line(number)
        if not 0 < number <= len(self.line_starts):
            return ""
        start = self.line_starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start:] if end < 0 else self.text[start:end]
