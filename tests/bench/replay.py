"""A long run of an engine, made from the scrapes there are: what a busy engine answers, second by second."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tests.support.captures import NAMES, recording
from tests.support.pages import advanced, written

_TYPE = re.compile(rb"# TYPE \S+ (\S+)")
_FAMILY = re.compile(rb"(?<=# TYPE )\S+|(?<=# HELP )\S+|^[A-Za-z_:][\w:]*")
_WRITTEN_SECONDS = 45
_RISING = (b"counter", b"histogram", b"summary")
_BUSY = "overload"


class _Line(NamedTuple):
    """A line's text up to its value, and the value where it is a counter's; the whole text elsewhere."""

    text: bytes
    counter: float | None


@dataclass(frozen=True, slots=True)
class Replay:
    """Scrapes a second apart, played again and again; counters go on rising where a lap begins anew.

    ``told`` says in words what it is made from.
    """

    told: str
    bodies: tuple[bytes, ...]
    _lines: tuple[tuple[_Line, ...], ...]
    _rise: dict[bytes, float]

    @classmethod
    def of(cls, bodies: Sequence[bytes], told: str) -> Replay:
        """The replay of ``bodies``, at least two of them.

        A lap raises a counter by what it rises from the first body to the last and one step more.
        """
        lines = tuple(tuple(_parsed(body)) for body in bodies)
        first, last = (
            {text: counter for text, counter in each if counter is not None} for each in (lines[0], lines[-1])
        )
        rise: dict[bytes, float] = {}
        for text, value in last.items():
            begin = first.get(text, 0.0)
            lap = (value - begin) * len(lines) / (len(lines) - 1)
            # rounding keeps buckets in order: a larger rise never becomes the smaller one
            rise[text] = float(round(lap)) if value.is_integer() and begin.is_integer() else lap
        return cls(told, tuple(bodies), lines, rise)

    def body(self, second: int) -> bytes:
        """What the engine answers in ``second``, from 0 on."""
        lap, index = divmod(second, len(self.bodies))
        if lap == 0:
            return self.bodies[index]
        return b"\n".join(
            text if counter is None else text + repr(counter + lap * self._rise.get(text, 0.0)).encode()
            for text, counter in self._lines[index]
        )


def _parsed(body: bytes) -> list[_Line]:
    rising = False
    lines = []
    for text in body.split(b"\n"):
        if text.startswith(b"#"):
            kind = _TYPE.match(text)
            rising = kind[1] in _RISING if kind else rising
        elif rising and b" " in text:
            series, _, value = text.rpartition(b" ")
            lines.append(_Line(series + b" ", float(value)))
            continue
        lines.append(_Line(text, None))
    return lines


def replay(name: str) -> Replay:
    """The busy scrapes of the recording ``name``."""
    bodies = [body for entry, body in recording(name).scrapes() if entry["phase"] == _BUSY]
    return Replay.of(bodies, f"{name}: the {len(bodies)} busy scrapes of the recording")


def filled(name: str, size: int) -> Replay:
    """A recording or a written page, as it moves on, each scrape filled up to ``size`` bytes.

    What fills it are the page's own series under names that nobody reads: they change as often.
    """
    if name in NAMES:
        bodies, told = list(replay(name).bodies), f"{name}: a recording"
    else:
        bodies, told = (
            [advanced(written(name), second) for second in range(_WRITTEN_SECONDS)],
            f"{name}: written",
        )
    return Replay.of([_fill(body, size) for body in bodies], f"{told}, filled up to {size / 1000:.0f} kB")


def _fill(body: bytes, size: int) -> bytes:
    whole = [body]
    short = size - len(body)
    lines = body.splitlines(keepends=True)
    for copy in itertools.count():
        for line in lines:
            if short <= 0:
                return b"".join(whole)
            unread = _FAMILY.sub(b"\\g<0>_unread%d" % copy, line, count=1)
            whole.append(unread)
            short -= len(unread)
    raise AssertionError("a page without lines")
