"""Reads pieces onto one grid: finds its step first, looks whether it fits, and stops in time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
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
) -> Columns | None:
    """Read all pieces onto a grid. Without a given step the fullest piece of each group is read first, to find it."""
    held: list[tuple[Piece, Answer]] = []
    columns: Columns | None = None
    step = asked.step_seconds
    reader.expect(pieces)
    try:
        async with asyncio.timeout_at(deadline):
            if step is None:
                first = _fullest(pieces)
                pieces = [piece for piece in pieces if piece not in first]
                await reader.read(first, lambda piece, answer: held.append((piece, answer)))
                step = _step(held, reader)
            columns = _empty(asked, step, pieces + [piece for piece, _ in held], counted)
            gather = _Gathering(columns, asked)
            for piece, answer in held:
                gather(piece, answer)
            held.clear()
            if not reader.told.stopped:
                await reader.read(pieces, gather)
    except TimeoutError:
        reader.told.stopped = (
            f"{asked.deadline_seconds:g} s were up; read it again to go on where it was, or give it more time"
        )
    return columns


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
    start = max(asked.between[0] + 1, min(piece.start for piece in pieces)) / 1000 if pieces else 0.0
    end = max(piece.end for piece in pieces) / 1000 if pieces else 0.0
    series = sum(each.most_series for each in counted)
    instants = (end - start) / step
    if instants * max(series, 1) > asked.most_values:
        raise HistoryError(
            f"{series} series at {instants:.0f} instants would take {instants * series * 8 / 1e9:.1f} GB, more than"
            f" {asked.most_values * 8 / 1e9:.1f} GB; read less time, a longer step, or fewer names"
        )
    return Columns(start, end, step)


@dataclass(frozen=True, slots=True)
class _Gathering:
    """Puts pieces into columns. Raises HistoryError once there are more series than allowed."""

    columns: Columns
    asked: Asked

    def __call__(self, piece: Piece, answer: Answer) -> None:
        for series in answer.series:
            self.columns.put(series, piece.start / 1000, piece.end / 1000)
        if len(self.columns) > self.asked.most_series:
            raise HistoryError(
                f"{len(self.columns)} series so far, more than {self.asked.most_series} in one frame;"
                " read less time, or narrow it with names or matchers"
            )
