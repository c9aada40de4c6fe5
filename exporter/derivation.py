"""Runs phenomena over what was seen: one that breaks off costs its own signals only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
) -> tuple[dict[str, Any], list[Point]]:
    """Every phenomenon once; one that raises keeps its memory and gives no points."""
    after: dict[str, Any] = {}
    points: list[Point] = []
    for phenomenon in phenomena:
        kept = memory.get(phenomenon.name, phenomenon.initial)
        try:
            after[phenomenon.name], found = phenomenon.derive(seen, facts, kept)
        except Exception as error:  # noqa: BLE001 -- one failure stays one failure
            after[phenomenon.name] = kept
            failed(phenomenon.name, error)
            continue
        points.extend(found)
    return after, points


def labelled(points: Sequence[Point], whose: tuple[str, ...]) -> list[Value]:
    """Points as values, with the labels that say whose they are: all of one scope, in its order."""
    return [Value(signal, whose + labels, value, is_peak) for signal, labels, value, is_peak in points]
