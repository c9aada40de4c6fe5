"""Instants as people and Prometheus write them."""

from __future__ import annotations

import math
from datetime import UTC, datetime

MOST_SECONDS = 1e11
"""Beyond the year 5000: whoever writes more means milliseconds."""


def instant(text: str) -> float:
    """Read seconds since the epoch, or RFC 3339, in UTC where no zone is named.

    Raises ValueError with one line.
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    else:
        if abs(seconds) >= MOST_SECONDS:
            raise ValueError(f"{text!r} is too far away: seconds since the epoch are meant, not milliseconds")
    if math.isfinite(seconds):
        return seconds
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is neither seconds since the epoch nor a time such as 2026-01-31T13:00:00Z"
        ) from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def shown(seconds: float) -> str:
    """Write an instant in RFC 3339, to the second; one that no calendar has, as its seconds."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g} s since the epoch"
