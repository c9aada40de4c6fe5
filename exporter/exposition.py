"""Reads the Prometheus text format: bytes in, only the wanted series out.

Understands text format 0.0.4 and 1.0.0 (quoted UTF-8 names) and what OpenMetrics adds to a sample's
line (exemplars, ``# EOF``). Comments, ``TYPE`` and ``HELP`` among them, are skipped: what a series
means is the caller's knowledge, and engines leave types out or get them wrong.

An endpoint's text hardly changes between two reads: the same lines in the same order, most with the
same values. So a reader works in three gears. Lines equal to those of the last read keep their
readings; lines with only a new value are recognised by what stands before their last space; and any
other line goes through the careful parser. Each gear gives exactly what the careful parser alone would.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import compress
from operator import eq, ne
from typing import Generic, TypeVar

Slot = TypeVar("Slot")

# How much text one reader remembers between reads, so that labels that never come twice can't fill the
# memory. An engine needs a fifth of a megabyte, one with 16 data-parallel ranks about three.
_REMEMBERED_BYTES = 8 << 20
# What a remembered series costs beside its text (objects, table entry), roughly.
_SERIES_OVERHEAD_BYTES = 200
# No line holds a newline, so none begins with this.
_NO_PREFIX = b"\n"

# Quantifiers are possessive (``*+``) so that no input can make a match take more than linear time.
_NAME = rb"[a-zA-Z_:][a-zA-Z0-9_:]*+"
_QUOTED = rb'"((?:[^"\\]++|\\.)*+)"'
_UNTIL_BRACE = rb'(?:[^"}]++|"(?:[^"\\]++|\\.)*+")*+'
# Groups: name, inside of the braces. Needs braces or a blank after the name: ``up-1`` is no sample.
_SERIES = re.compile(rb"[ \t]*+(" + _NAME + rb")?+(?:[ \t]*+\{(" + _UNTIL_BRACE + rb")\}|(?=[ \t]))")
# Groups: label name, quoted name, value. A quoted name without a value is the metric's.
_TERM = re.compile(
    rb"[ \t]*+(?:(" + _NAME + rb")|" + _QUOTED + rb")[ \t]*+(?:=[ \t]*+" + _QUOTED + rb"[ \t]*+)?+(?:,|\Z)"
)
_ESCAPE = re.compile(r'\\([\\n"])')


@dataclass(frozen=True, slots=True)
class Series:
    """A sample's name and labels, unescaped, labels in the order of the text."""

    name: str
    labels: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Known(Generic[Slot]):
    """What a series means to the caller, and its text with the space before the value."""

    prefix: bytes
    slot: Slot | None


@dataclass(slots=True)
class _Layout(Generic[Slot]):
    """The last read, line by line; ``lines``, ``prefixes`` and ``places`` run in parallel.

    ``prefixes`` holds the text of the line's series and a space, ``_NO_PREFIX`` for a line without a
    readable sample; ``places`` says where in ``readings`` a line's reading stands, -1 for none.
    """

    lines: list[bytes]
    prefixes: list[bytes]
    places: list[int]
    readings: list[tuple[Slot, float]]
    rejected: int


class Reader(Generic[Slot]):
    """Reads one endpoint's text again and again. Not for two threads at once.

    ``interpret`` says what a series means to the caller, or None for a series that is not wanted. It
    is called once for each distinct spelling of a series and must answer the same every time: memory
    is bounded, and a series that was forgotten is asked about again. What it raises, ``read`` raises.
    """

    def __init__(self, interpret: Callable[[Series], Slot | None]) -> None:
        self._interpret = interpret
        self._known: dict[bytes, _Known[Slot]] = {}
        self._room = _REMEMBERED_BYTES
        self._crowded = False
        self._layout: _Layout[Slot] | None = None
        self.rejected_lines = 0
        """How many lines of the last read were neither blank, nor a comment, nor a readable sample."""

    def read(self, body: bytes) -> list[tuple[Slot, float]]:
        """What the wanted series of ``body`` hold, in the order of the text.

        No bytes make it raise: a line that can't be read is skipped and counted in
        ``rejected_lines``. A series that stands there twice is reported twice. Timestamps and
        exemplars are skipped. A number too large for a float is infinite, as in Prometheus' client.
        Invalid UTF-8 in a label reads as U+FFFD.

        Text after the last newline is never reported, though it may look whole: the format wants a
        newline after every line, and without it nobody can tell ``12`` from a ``1234`` that was cut.
        Unless blank or a comment it counts as rejected.
        """
        lines = body.split(b"\n")
        cut = lines.pop()
        # Put aside: should ``interpret`` raise, the next read starts without a half-made layout.
        layout, self._layout = self._layout, None
        if layout is None or not _take_changes(layout, lines):
            layout = self._read_all(lines)
        if len(body) <= _REMEMBERED_BYTES:
            self._layout = layout
        self.rejected_lines = layout.rejected + _is_rejected(cut)
        return layout.readings.copy()

    def _read_all(self, lines: list[bytes]) -> _Layout[Slot]:
        """Every line anew; fast for those whose series is known."""
        layout: _Layout[Slot] = _Layout(lines, [], [], [], 0)
        for line in lines:
            spelling, _, text = line.rpartition(b" ")
            known = self._known.get(spelling)
            value = 0.0
            if known is not None:
                try:
                    value = float(text)
                except ValueError:
                    known = None
                if b"_" in text:  # Python reads 1_0 as 10
                    known = None
            if known is None and not line.startswith(b"#"):
                found = self._parse(line)
                if found is None:
                    layout.rejected += _is_rejected(line)
                else:
                    known, value = found
            layout.prefixes.append(_NO_PREFIX if known is None else known.prefix)
            if known is None or known.slot is None:
                layout.places.append(-1)
            else:
                layout.places.append(len(layout.readings))
                layout.readings.append((known.slot, value))
        if self._crowded:
            self._forget_all_but(layout.prefixes)
        return layout

    def _parse(self, line: bytes) -> tuple[_Known[Slot], float] | None:
        """The series and value of any line that holds a sample, else None."""
        match = _SERIES.match(line)
        if match is None:
            return None
        value = _value(line[match.end() :])
        if value is None:
            return None
        spelling = match[0]
        known = self._known.get(spelling)
        if known is None:
            series = _series(match[1], match[2])
            if series is None:
                return None
            known = _Known(spelling + b" ", self._interpret(series))
            self._remember(spelling, known)
        return known, value

    def _remember(self, spelling: bytes, known: _Known[Slot]) -> None:
        """Keeps a series for the next reads while there is room."""
        cost = _cost(spelling)
        if cost > self._room:
            self._crowded = True
            return
        self._room -= cost
        self._known[spelling] = known

    def _forget_all_but(self, prefixes: list[bytes]) -> None:
        """Makes room: of the series remembered, only those of the newest text stay."""
        newest = set(prefixes)
        self._known = {spelling: known for spelling, known in self._known.items() if known.prefix in newest}
        self._room = _REMEMBERED_BYTES - sum(map(_cost, self._known))
        self._crowded = False


def _take_changes(layout: _Layout[Slot], lines: list[bytes]) -> bool:
    """Brings ``layout`` up to ``lines`` where they differ from its own in nothing but values.

    Says False where there is any other difference; the layout is then good for nothing.
    """
    if len(lines) != len(layout.lines):
        return False
    differs = list(map(ne, lines, layout.lines))
    changed = list(compress(lines, differs))
    # What stands behind the prefix must be one number. Whatever else could follow the text of a series
    # (braces, a timestamp, an exemplar) is none, so the line can't mean anything else.
    texts = list(map(bytes.removeprefix, changed, compress(layout.prefixes, differs)))
    if True in map(eq, texts, changed) or b"_" in b"".join(texts):
        return False
    readings = layout.readings
    number: bytes | None = None
    value = 0.0
    try:
        for place, text in zip(compress(layout.places, differs), texts, strict=True):
            if text != number:  # the buckets of a histogram repeat, and converting is dear
                number, value = text, float(text)
            if place >= 0:
                readings[place] = (readings[place][0], value)
    except ValueError:
        return False
    layout.lines = lines
    return True


def _cost(spelling: bytes) -> int:
    """What remembering a series costs, in bytes: its text as key and prefix, and the objects."""
    return 2 * len(spelling) + _SERIES_OVERHEAD_BYTES


def _is_rejected(line: bytes) -> bool:
    """Whether a line without a readable sample should have held one."""
    content = line.strip()
    return bool(content) and not content.startswith(b"#")


def _number(text: bytes) -> float | None:
    """A number as Prometheus writes them, else None."""
    if b"_" in text:  # Python reads 1_0 as 10
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _value(rest: bytes) -> float | None:
    """The value in what follows a series: a value, perhaps a timestamp, perhaps an exemplar."""
    words = rest.split()
    if not words:
        return None
    after = words[1:]
    if after and not after[0].startswith(b"#") and _number(after[0]) is not None:
        after = after[1:]
    if after and not after[0].startswith(b"#"):
        return None
    return _number(words[0])


def _series(name: bytes | None, inside: bytes | None) -> Series | None:
    """The series of a name before and the terms within the braces; None when they make no series."""
    names = [] if name is None else [name.decode("ascii")]
    labels: dict[str, str] = {}
    inside = (inside or b"").strip()
    position = 0
    while position < len(inside):
        term = _TERM.match(inside, position)
        if term is None:
            return None
        position = term.end()
        label, quoted, value = term.groups()
        key = _text(label if quoted is None else quoted)
        if key and value is not None and key != "__name__" and key not in labels:
            labels[key] = _text(value)
        elif key and value is None and label is None:
            names.append(key)
        else:  # nothing in the quotes, a label twice, the name as a label, or a bare word
            return None
    if len(names) != 1:
        return None
    return Series(names[0], tuple(labels.items()))


def _text(escaped: bytes) -> str:
    """Text between quotes; a backslash before anything but a backslash, quote or n stands for itself."""
    text = escaped.decode("utf-8", "replace")
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda match: "\n" if match[1] == "n" else match[1], text)
