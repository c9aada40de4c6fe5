"""Files of public traces, plain or compressed, line by line; and what is said of a bad one."""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from pathlib import Path

EXCERPTS = Path(__file__).parent / "excerpts"
"""Excerpts that come with the drill: see the README there for licences and what was changed."""

LONGEST_GAP_SECONDS = 600.0
"""A trace in which nobody comes for longer has a hole: the longest gap of those we know is 217 s."""


class TraceError(ValueError):
    """A file that isn't the trace it should be: which file and line, what is wrong, what to do."""

    def __init__(self, path: Path, line: int | None, what: str) -> None:
        super().__init__(f"{path}{'' if line is None else f', line {line}'}: {what}")


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered from 1, without their ends; .xz is unpacked. Raises TraceError."""
    number = 0
    try:
        with (
            lzma.open(path, "rt", encoding="utf-8-sig")
            if path.suffix == ".xz"
            else path.open(encoding="utf-8-sig") as file
        ):
            for number, line in enumerate(file, 1):
                yield number, line.rstrip("\r\n")
    except (OSError, EOFError, lzma.LZMAError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TraceError(path, number + 1, f"can't be read: {what}") from error


class Clock:
    """Watches a trace's times, in seconds: they start at or after 0, never fall, and have no holes."""

    def __init__(self, path: Path, longest_gap_seconds: float | None) -> None:
        self._path = path
        self._longest = longest_gap_seconds
        self._last: float | None = None

    def check(self, seconds: float, line: int) -> None:
        """The next time. Raises TraceError."""
        last = self._last
        if not 0 <= seconds < float("inf"):
            raise TraceError(self._path, line, f"a time of {seconds:g} s: times begin at 0")
        if last is not None and seconds < last:
            raise TraceError(
                self._path, line, f"a time of {seconds:g} s after one of {last:g} s: sort the file by time"
            )
        if last is not None and self._longest is not None and seconds - last > self._longest:
            raise TraceError(
                self._path,
                line,
                f"nobody comes for {seconds - last:g} s before it: the trace has a hole. Cut the file there, or allow "
                "it with longest_gap_seconds",
            )
        self._last = seconds


def tokens(path: Path, line: int, name: str, value: object) -> int:
    """A number of tokens, at least 1. Raises TraceError."""
    try:
        count = int(value) if type(value) is int or isinstance(value, str) else None
    except ValueError:
        count = None
    if count is None:
        raise TraceError(path, line, f"{name} is {value!r}: a whole number of tokens is expected")
    if count < 1:
        raise TraceError(path, line, f"{name} is {count}: at least 1 token is expected")
    return count
