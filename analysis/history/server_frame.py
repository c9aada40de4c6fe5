"""Reads pieces onto one grid: finds its step first, looks whether it fits, and stops in time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from analysis.history.history import HistoryError
from analysis.history.server_asked import Asked
from analysis.history.server_columns import Columns, common, intervals_of
from analysis.history.server_json import Answer
from analysis.history.server_plan import Census, Piece
from analysis.history.server_reader import Reader

_PROBED_GROUPS = 8
UNKNOWN_STEP = 15.0
"""Where no series has two samples."""


async def read_columns(
    reader: Reader, pieces: list[Piece], asked: Asked, counted: Sequence[Census], deadline: float
) -> Columns:
    """Read all pieces onto a grid, until ``deadline`` (the loop's time); says in ``told`` where it didn't come so far.

    Without a given step the fullest piece of each group is read first, to find it. Raises HistoryError.
    """
    reader.expect(pieces)
    whole = pieces
    held: list[tuple[Piece, Answer]] = []
    step = asked.step_seconds
    if step is None:
        first = _fullest(pieces)
        pieces = [piece for piece in pieces if piece not in first]
        await _read_in_time(
            reader, first, lambda piece, answer: held.append((piece, answer)), asked, deadline
        )
        step = _step(held, reader)
    gather = _Gathering(_empty(asked, step, whole, counted), asked)
    for piece, answer in held:
        gather(piece, answer)
    held.clear()
    if not reader.told.stopped:
        await _read_in_time(reader, pieces, gather, asked, deadline)
    return gather.columns


async def _read_in_time(
    reader: Reader, pieces: list[Piece], done: Callable[[Piece, Answer], None], asked: Asked, deadline: float
) -> None:
    try:
        async with asyncio.timeout_at(deadline):
            await reader.read(pieces, done)
    except TimeoutError:
        reader.told.stopped = (
            f"{asked.deadline_seconds:g} s were up; read it again to go on, or give it more time"
        )


def _fullest(pieces: Sequence[Piece]) -> list[Piece]:
    """Of each group of names the piece with most to expect."""
    best: dict[tuple[str, ...], Piece] = {}
    for piece in pieces:
        if piece.names not in best or piece.expected > best[piece.names].expected:
            best[piece.names] = piece
    return list(best.values())[:_PROBED_GROUPS]


def _step(held: Iterable[tuple[Piece, Answer]], reader: Reader) -> float:
    found = common(intervals_of(series for _, answer in held for series in answer.series))
    reader.told.undated = found is None
    return UNKNOWN_STEP if found is None else found


def _empty(asked: Asked, step: float, pieces: Sequence[Piece], counted: Sequence[Census]) -> Columns:
    """Columns of the time that there is something of. Raises HistoryError for more than fits."""
    start = max(asked.between[0] + 1, min(piece.start for piece in pieces)) / 1000
    columns = Columns(start, max(piece.end for piece in pieces) / 1000, step)
    _check(asked, columns, sum(each.most_series for each in counted))
    return columns


def _check(asked: Asked, columns: Columns, series: int) -> None:
    if series > asked.most_series:
        raise HistoryError(
            f"{series} series, more than {asked.most_series} in one frame; read less time, or narrow it with"
            " names or matchers"
        )
    values = series * columns.rows
    if values > asked.most_values:
        raise HistoryError(
            f"{series} series at {columns.rows} instants are {values} values, more than {asked.most_values};"
            " read less time, a longer step, or fewer names"
        )


@dataclass(frozen=True, slots=True)
class _Gathering:
    """Puts pieces into columns. Raises HistoryError once there are more of them than allowed."""

    columns: Columns
    asked: Asked

    def __call__(self, piece: Piece, answer: Answer) -> None:
        for series in answer.series:
            self.columns.put(series, piece.start / 1000, piece.end / 1000)
        _check(self.asked, self.columns, len(self.columns))
