"""The two ways to show the demo's picture: redrawn on a terminal, or line by line."""

from __future__ import annotations

import os
import shutil
import textwrap
from typing import Protocol, TextIO

from drill.rows import ROWS
from drill.screen import ASCII, BLOCKS, Glyphs, State, frame, plain
from drill.words import minute

_PLAIN_EVERY_SECONDS = 5.0


class Screen(Protocol):
    """Where the picture goes."""

    def show(self, state: State) -> None:
        """Show the newest state."""

    def close(self) -> None:
        """Leave the terminal as it was found."""


class LiveScreen:
    """Redraws in place on the terminal's second page, so that what was there before comes back."""

    def __init__(self, stream: TextIO, *, colour: bool, glyphs: Glyphs) -> None:
        self._stream = stream
        self._colour = colour
        self._glyphs = glyphs
        stream.write("\x1b[?1049h\x1b[?25l")

    def show(self, state: State) -> None:
        """Draw over the last picture, in the size the terminal has now."""
        columns, rows = shutil.get_terminal_size()
        picture = frame(state, columns, colour=self._colour, height=rows, glyphs=self._glyphs)
        self._stream.write("\x1b[H" + picture.replace("\n", "\x1b[K\r\n") + "\x1b[K\x1b[J")
        self._stream.flush()

    def close(self) -> None:
        """Show the cursor and the first page again."""
        self._stream.write("\x1b[?25h\x1b[?1049l")
        self._stream.flush()


class PlainScreen:
    """Writes a few plain lines every 5 s, and each event as it comes: for logs and pipes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._next = 0.0
        self._said = 0
        self._sure: dict[str, str] = {}

    def show(self, state: State) -> None:
        """Write what is new."""
        width = shutil.get_terminal_size().columns
        for event in state.events[self._said :]:
            self._write(f"{minute(event.at):>5}  ** {event.text}", width)
        self._said = len(state.events)
        if state.history and state.elapsed >= self._next:
            self._stream.write(plain(state, width) + "\n")
            self._sure.update(state.history[-1][1].confidence)
            self._next = (state.elapsed // _PLAIN_EVERY_SECONDS + 1) * _PLAIN_EVERY_SECONDS
        self._stream.flush()

    def _write(self, text: str, width: int) -> None:
        self._stream.write(textwrap.fill(text, width, subsequent_indent=" " * 10) + "\n")

    def close(self) -> None:
        """Say how sure each signal is, once; the terminal itself was not changed."""
        by_kind: dict[str, list[str]] = {}
        for row in ROWS:
            if row.signal in self._sure:
                by_kind.setdefault(self._sure[row.signal].replace("_", " "), []).append(row.short)
        for kind, rows in by_kind.items():
            self._write(f"       {kind}: {', '.join(rows)}", shutil.get_terminal_size().columns)
        self._stream.flush()


def is_live(stream: TextIO) -> bool:
    """Whether ``stream`` is a terminal that can be drawn on."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def wants_colour(stream: TextIO) -> bool:
    """Whether to colour: on a terminal, unless NO_COLOR is set (no-color.org)."""
    return is_live(stream) and not os.environ.get("NO_COLOR")


def glyphs_for(stream: TextIO) -> Glyphs:
    """Block characters where the stream can carry them."""
    return BLOCKS if (stream.encoding or "").lower().replace("-", "") == "utf8" else ASCII
