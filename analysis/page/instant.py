"""How an instant is said to people."""

from __future__ import annotations

from datetime import UTC, datetime


def instant(at: float) -> str:
    """Seconds since the epoch as a day and a time, to the second; whoever shows it says that it is UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")
