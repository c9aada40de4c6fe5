"""Runs phenomena over what was seen: one that breaks off costs its own signals only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from exporter.derive.phenomenon import EngineFacts, Phenomenon, Seen
from exporter.signal import Point
from exporter.snapshot import Value


def run(
    phenomena: Sequence[Phenomenon[Seen, Any]],
    seen: Seen,
    facts: EngineFacts,
    memory: Mapping[str, Any],
    failed: Callable[[str, Exception], None],
) -> tuple[dict[str, Any], dict[str, Sequence[Point]]]:
    """Every phenomenon once, its memory and its points by name; one that raises keeps its memory and gives none."""
    after: dict[str, Any] = {}
    points: dict[str, Sequence[Point]] = {}
    for phenomenon in phenomena:
        name = phenomenon.name
        kept = memory.get(name, phenomenon.initial)
        try:
            after[name], points[name] = phenomenon.derive(seen, facts, kept)
        except Exception as error:  # noqa: BLE001 -- one failure stays one failure
            after[name] = kept
            failed(name, error)
    return after, points


def labelled(points: Iterable[Sequence[Point]], whose: tuple[str, ...]) -> list[Value]:
    """Points as values, with the labels that say whose they are: all of one scope, in its order."""
    make = tuple.__new__  # half the time of a named tuple's own, hundreds of times a cycle
    return [
        make(Value, (signal, whose + labels, value, is_peak))
        for group in points
        for signal, labels, value, is_peak in group
    ]
