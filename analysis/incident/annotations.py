"""What people noted of an incident, from a file of JSON or YAML, to stand in its timeline.

- at: 2026-09-29T14:35:00Z          # or seconds since the epoch
text: gateway clamped to 400 requests a second
action: true                       # it was done against the incident; left out: false
where: gateway                     # left out: the fleet
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

_KEYS = frozenset({"at", "text", "action", "where"})


class AnnotationError(Exception):
    """A file of annotations that can't be used: one line of what is wrong, where, and what to write instead."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """``at``: seconds since the epoch. ``is_action``: something that was done against the incident."""

    at: float
    text: str
    is_action: bool = False
    where: str = ""


def read_annotations(path: Path) -> tuple[Annotation, ...]:
    """All of a file, in the order of time. Raises AnnotationError."""
    try:
        told = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise AnnotationError(f"{path}: can't be read: {error}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        raise AnnotationError(
            f"{path}{line}: neither JSON nor YAML: {getattr(error, 'problem', error)}"
        ) from error
    if not isinstance(told, list):
        raise AnnotationError(f"{path}: a list of notes is wanted, each with at and text")
    return tuple(
        sorted((_one(path, number, each) for number, each in enumerate(told, 1)), key=lambda each: each.at)
    )


def _one(path: Path, number: int, told: Any) -> Annotation:  # noqa: ANN401 -- whatever a file holds
    where = f"{path}: note {number}"
    if not isinstance(told, dict):
        raise AnnotationError(f"{where}: a mapping with at and text is wanted")
    unknown = sorted(str(key) for key in told.keys() - _KEYS)
    if unknown:
        raise AnnotationError(f"{where}: no key {unknown[0]!r}: there are {', '.join(sorted(_KEYS))}")
    text, action, place = told.get("text"), told.get("action", False), told.get("where", "")
    if not isinstance(text, str) or not text.strip():
        raise AnnotationError(f"{where}: it has no text")
    if not isinstance(action, bool):
        raise AnnotationError(f"{where}: action is true or false")
    return Annotation(_instant(where, told.get("at")), text.strip(), action, str(place))


def _instant(where: str, told: Any) -> float:  # noqa: ANN401 -- as above
    if isinstance(told, int | float) and not isinstance(told, bool):
        return float(told)
    if isinstance(told, str):
        try:
            told = datetime.fromisoformat(told)
        except ValueError:
            told = None
    if not isinstance(told, datetime):
        raise AnnotationError(
            f"{where}: at is no time: write 2026-09-29T14:35:00Z, or seconds since the epoch"
        )
    return told.replace(tzinfo=told.tzinfo or UTC).timestamp()
