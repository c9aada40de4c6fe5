"""The demo's picture: pure functions from its state to text."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from drill.rows import ROWS, Row, most_telling
from drill.sidecar import Reading
from drill.story import Event
from drill.words import minute

PHASE_WORDS = {"idle": "idle", "load": "calm load", "overload": "OVERLOAD", "after": "recovery"}
_WIDEST = 120
_TITLE, _NOW, _SURE = 19, 19, 11
_NARROWEST_SPARK = 10
_HEAD, _HEAD_BLANKS = 3, 2
_EVENTS = 8
"""Lines for events, before rows that can be spared: a burst that fills the pool has as many to tell."""
_READING_HOLDS_SECONDS = 3.0

_CODES = {
    "": "",
    "bold": "\x1b[1m",
    "dim": "\x1b[2m",
    "red": "\x1b[31m",
    "green": "\x1b[32m",
    "yellow": "\x1b[33m",
    "cyan": "\x1b[36m",
}
_RESET = "\x1b[0m"
_PHASE_COLOURS = {"overload": "red", "load": "green", "after": "green"}


class Glyphs(NamedTuple):
    """The characters to draw with: sparkline levels from low to high, bar, rest of the bar, dash, dot."""

    levels: str
    full: str
    rest: str
    dash: str
    dot: str


BLOCKS = Glyphs("▁▂▃▄▅▆▇█", "█", "░", "─", "·")
ASCII = Glyphs("_.:-=+*#", "#", ".", "-", "-")


@dataclass(frozen=True, slots=True)
class State:
    """Everything the picture needs: ``elapsed`` of ``total`` seconds; ``phases`` as (until, name).

    ``history`` holds (elapsed, reading), oldest first; its last is what is shown as now.
    """

    elapsed: float
    total: float
    url: str
    phases: tuple[tuple[float, str], ...]
    history: tuple[tuple[float, Reading], ...] = ()
    events: tuple[Event, ...] = ()

    @property
    def phase(self) -> str:
        """What the recorded load does now."""
        return self._phase_at(self.elapsed)

    def _phase_at(self, second: float) -> str:
        return next((name for until, name in self.phases if second < until), self.phases[-1][1])

    def bar_phases(self, cells: int) -> list[str]:
        """The phase of each of ``cells`` equal parts of the whole time."""
        return [self._phase_at((cell + 0.5) * self.total / cells) for cell in range(cells)]


Segment = tuple[str, str]


def frame(
    state: State, width: int, *, colour: bool, height: int | None = None, glyphs: Glyphs = BLOCKS
) -> str:
    """The whole screen as lines of at most ``width`` characters, at most ``height`` of them.

    Where ``height`` is short, blank lines go first, then rows with much to spare, then older events.
    """
    width = min(width, _WIDEST)
    rows, room, blank = _fitted(height)
    events = [line for event in state.events for line in _event(event, width)] or _hint(state)
    if room is not None:
        events = events[-room:] if room > 0 else []
    title, bar = _head(state, width, glyphs)
    gap: list[list[Segment]] = [[]] if blank else []
    lines = [title, *gap, bar, *gap, _titles(state, width, glyphs, shown=len(rows))]
    lines += [_row(row, state, width, glyphs) for row in rows]
    lines += [[], *events] if events else []
    return "\n".join(_painted(line, width, colour=colour) for line in lines)


def _fitted(height: int | None) -> tuple[tuple[Row, ...], int | None, bool]:
    """For a screen of ``height``: its rows, how many lines of events, whether blank lines fit into the head.

    It depends on nothing else, so that no row comes or goes while one looks.
    """
    if height is None:
        return ROWS, None, True
    blank = height >= _HEAD + _HEAD_BLANKS + len(ROWS) + 1 + _EVENTS
    left = height - _HEAD - (_HEAD_BLANKS if blank else 0) - 1
    rows = most_telling(max(1, left - max(0, min(_EVENTS, left // 2))))
    return rows, left - len(rows), blank


def _head(state: State, width: int, glyphs: Glyphs) -> tuple[list[Segment], list[Segment]]:
    """Its two lines: what this is, and how far it is."""
    left = f"thrashold {glyphs.dot} a real vLLM 0.8.5 fills its KV cache"
    right = state.url.removeprefix("http://")
    if len(left) + 1 + len(right) > width:
        left = "thrashold"
    gap = " " * max(1, width - len(left) - len(right))
    title: list[Segment] = [(left, "bold"), (gap, ""), (right, "cyan")]
    word = f"{PHASE_WORDS.get(state.phase, state.phase):<10}"
    clock = f" {minute(state.elapsed)} / {minute(state.total)}"
    cells = max(1, width - len(word) - len(clock))
    done = round(cells * min(1.0, state.elapsed / state.total))
    bar: list[Segment] = [
        (glyphs.full, _PHASE_COLOURS.get(phase, "cyan")) if cell < done else (glyphs.rest, "dim")
        for cell, phase in enumerate(state.bar_phases(cells))
    ]
    return title, [(word, _PHASE_COLOURS.get(state.phase, "cyan")), *bar, (clock, "")]


def _spark_width(width: int) -> int:
    """What the sparkline gets; below its least the last column is given up for it."""
    room = width - _TITLE - _NOW - 2
    with_sure = room - _SURE - 1
    return with_sure if with_sure >= _NARROWEST_SPARK else max(0, room)


def _titles(state: State, width: int, glyphs: Glyphs, *, shown: int) -> list[Segment]:
    cells = _spark_width(width)
    end = minute(state.total)
    line = glyphs.dash * max(0, cells - 4 - len(end) - 2)
    axis = f"0:00 {line} {end}"[:cells].ljust(cells)
    what = "signal" if shown == len(ROWS) else f"signal ({shown} of {len(ROWS)})"
    return [(f"{what:<{_TITLE}} {'now':<{_NOW}} {axis} {'how sure':<{_SURE}}", "dim")]


def _row(row: Row, state: State, width: int, glyphs: Glyphs) -> list[Segment]:
    reading = state.history[-1][1] if state.history else Reading({}, {})
    value = row.value(reading)
    if value is None:
        text, style = _why_absent(row, state), "dim"
    else:
        text, style = row.show(value, reading), "red" if row.crossed(value) else "bold"
    sure = reading.confidence.get(row.signal, "").replace("_", " ")
    return [
        (f"{row.title:<{_TITLE}} ", ""),
        (f"{text:<{_NOW}.{_NOW}} ", style),
        (sparkline(row, state, _spark_width(width), glyphs), "cyan"),
        (f" {sure:<{_SURE}}", "dim"),
    ]


def _why_absent(row: Row, state: State) -> str:
    missing = _missing_seconds(row, state)
    return f"needs {missing:.0f} s more" if missing >= 1 else row.absent


def _missing_seconds(row: Row, state: State) -> float:
    """How much the row's window still lacks; 0 where it speaks of none."""
    known_for = state.elapsed - state.history[0][0] if state.history else 0.0
    return max(0.0, row.window - known_for)


def sparkline(row: Row, state: State, cells: int, glyphs: Glyphs) -> str:
    """The row's history over the whole time, ``cells`` wide: the largest value of each part.

    A part without a value stays blank: absent is not zero.
    """
    parts: list[float | None] = [None] * cells
    ends = [at for at, _ in state.history[1:]]
    for (at, reading), until in itertools.zip_longest(state.history, ends):
        value = row.value(reading)
        if value is None or not cells:
            continue
        first = min(cells - 1, int(at / state.total * cells))
        # where there are more cells than readings, a reading holds until the next
        beyond = int(until / state.total * cells) if until and until - at < _READING_HOLDS_SECONDS else 0
        for cell in range(first, max(first + 1, min(cells, beyond))):
            parts[cell] = max(value, parts[cell] or 0.0)
    top = row.top or max((part for part in parts if part is not None), default=0.0)
    steps = len(glyphs.levels) - 1
    return "".join(
        " " if part is None else glyphs.levels[round(min(1.0, part / top) * steps) if top > 0 else 0]
        for part in parts
    )


def _event(event: Event, width: int) -> list[list[Segment]]:
    style = "green" if event.is_good else "yellow"
    when = f"{minute(event.at):>5}  "
    words = textwrap.wrap(event.text, max(20, width - len(when)))
    return [[(" " * len(when) if place else when, "dim"), (text, style)] for place, text in enumerate(words)]


def _hint(state: State) -> list[list[Segment]]:
    """Before anything has happened: what to wait for."""
    for (until, _), (_, name) in itertools.pairwise(state.phases):
        if name == "overload" and state.elapsed < until:
            return [[(f"This is what normal looks like. The burst comes at {minute(until)}.", "dim")]]
    return []


def _painted(line: Sequence[Segment], width: int, *, colour: bool) -> str:
    painted, room = [], width
    for text, style in line:
        shown = text[:room]
        room -= len(shown)
        code = _CODES[style] if colour and shown.strip() else ""
        painted.append(f"{code}{shown}{_RESET}" if code else shown)
    return "".join(painted).rstrip()


def plain(state: State, width: int) -> str:
    """The same content for a log: one entry of lines of at most ``width`` characters."""
    reading = state.history[-1][1] if state.history else Reading({}, {})
    parts, unknown = [], []
    for row in ROWS:
        value = row.value(reading)
        if value is not None:
            parts.append(f"{row.short} {' '.join(row.show(value, reading).split())}")
        elif _missing_seconds(row, state) >= 1:
            unknown.append(row.short)
    text = f"{minute(state.elapsed):>5}  {PHASE_WORDS.get(state.phase, state.phase)}: {', '.join(parts)}"
    if unknown:
        text += f"; not known yet: {', '.join(unknown)}"
    return textwrap.fill(text, width, subsequent_indent=" " * 7, break_long_words=False)
