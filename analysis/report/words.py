"""Instants and lists as reports say them; all times are UTC."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

_MOST_NAMES = 4


def clock(at: float) -> str:
    """A time of day, to the second."""
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")


def day(at: float) -> str:
    """A date."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


def listed(names: Sequence[str], most: int = _MOST_NAMES) -> str:
    """``a, b and c``; of many some, and how many others."""
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} others"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def lowered(words: str) -> str:
    """A sentence as a clause: without its capital and its full stop."""
    first, _, rest = words.partition(" ")
    begin = first if first.isupper() and len(first) > 1 else first[:1].lower() + first[1:]
    return f"{begin} {rest}".strip().rstrip(".")
