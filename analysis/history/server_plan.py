"""Cuts a range into pieces that a server can answer at once, and a piece it refused into two. Pure.

Pieces lie on whole days and on halves of halves of them, wherever a range begins: what was read once for one range
serves the next. Within a day names go together until they make up a good answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

DAY = 86_400_000
"""Milliseconds, as all times here are."""
SHORTEST = 10_000
GOOD_SAMPLES = 500_000
"""In one answer: some 15 MB as JSON. A server's own limit is 50 million unless set."""
_FINEST = 675_000
"""A day halved seven times."""
_LITTLE = 60_000


@dataclass(frozen=True, slots=True)
class Piece:
    """Series of ``names`` after ``start`` and up to ``end``, with some ``expected`` samples: counted, or a guess."""

    names: tuple[str, ...]
    start: int
    end: int
    expected: float

    @property
    def length(self) -> int:
        """Milliseconds."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Census:
    """How many series of each name there were in a day, by the day's end; a day that is missing wasn't counted.

    ``samples_per_series``: in a day, the most.
    """

    series: Mapping[int, Mapping[str, int]]
    samples_per_series: float

    @property
    def most_series(self) -> int:
        """Of all names together, in one day."""
        return max((sum(each.values()) for each in self.series.values()), default=0)


def days(start: int, end: int) -> Iterator[tuple[int, int]]:
    """A range in pieces that end with the days (UTC); what is left of the first one goes with the next, if little."""
    while start < end:
        until = min(end, ((start + _LITTLE) // DAY + 1) * DAY)
        yield start, until
        start = until


def day_of(instant: int) -> int:
    """The end of the day that an instant is in; the last instant of a day is its end."""
    return -(-instant // DAY) * DAY


def plan(names: Sequence[str], start: int, end: int, census: Census) -> list[Piece]:
    """What to ask for, the newest first; nothing for names and days of which there is nothing."""
    usual = _usual(census)
    groups = _groups(names, {name: usual.get(name, 0) * census.samples_per_series for name in names})
    pieces: list[Piece] = []
    for day_start, day_end in days(start, end):
        counted = census.series.get(day_of(day_end))
        share = (day_end - day_start) / DAY
        for group in groups:
            there = sum((usual if counted is None else counted).get(name, 0) for name in group)
            guess = 0 if counted is not None or usual else GOOD_SAMPLES
            expected = share * (there * census.samples_per_series or guess)
            if expected:
                pieces += cut(Piece(group, day_start, day_end, expected), GOOD_SAMPLES)
    return sorted(pieces, key=lambda piece: (-piece.end, piece.names))


def halves(piece: Piece, *, names_first: bool = False) -> tuple[Piece, ...]:
    """A piece in two: of time, or where that is short already of names; nothing for what can't be cut."""
    if len(piece.names) > 1 and (names_first or piece.length < 2 * SHORTEST):
        half = len(piece.names) // 2
        parts: tuple[Piece, ...] = (
            replace(piece, names=piece.names[:half]),
            replace(piece, names=piece.names[half:]),
        )
    elif piece.length >= 2 * SHORTEST:
        middle = _middle(piece.start, piece.end)
        parts = replace(piece, start=middle), replace(piece, end=middle)
    else:
        return ()
    return tuple(replace(each, expected=piece.expected / 2) for each in parts)


def cut(piece: Piece, most_samples: float) -> list[Piece]:
    """A piece in as many as it takes for none to be expected to have more samples, the newest first."""
    parts = halves(piece) if piece.expected > most_samples else ()
    return [small for part in parts for small in cut(part, most_samples)] or [piece]


def _middle(start: int, end: int) -> int:
    """Where to cut: the instant between that a day halved most often would have, else the middle."""
    unit = DAY
    while unit >= _FINEST:
        first = (start // unit + 1) * unit
        if first < end:
            # of several the one that is nearest to the middle
            last = (end - 1) // unit * unit
            return min(range(first, last + 1, unit), key=lambda at: abs(2 * at - start - end))
        unit //= 2
    return (start + end) // 2


def _usual(census: Census) -> dict[str, int]:
    """The most series of each name in a day."""
    usual: dict[str, int] = {}
    for counted in census.series.values():
        for name, count in counted.items():
            usual[name] = max(usual.get(name, 0), count)
    return usual


def _groups(names: Sequence[str], samples: Mapping[str, float]) -> list[tuple[str, ...]]:
    """Names in order, as many together as make up a good answer in a day."""
    groups: list[tuple[str, ...]] = []
    group: list[str] = []
    total = 0.0
    for name in names:
        if group and total + samples[name] > GOOD_SAMPLES:
            groups.append(tuple(group))
            group, total = [], 0.0
        group.append(name)
        total += samples[name]
    return [*groups, tuple(group)] if group else groups
