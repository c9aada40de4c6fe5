"""How numbers are worded."""

from __future__ import annotations


def number(value: float) -> str:
    """Write a plain number short."""
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"  # noqa: PLR2004 - digits


def percent(ratio: float) -> str:
    """Write a ratio as a whole percentage."""
    return f"{ratio:.0%}"


def seconds(value: float) -> str:
    """Write a duration with its unit."""
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.1f} s"


def size(value: float) -> str:
    """Write bytes with a decimal unit."""
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:  # noqa: PLR2004 - the step of decimal units
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def minute(elapsed: float) -> str:
    """Write seconds as m:ss."""
    return f"{int(elapsed) // 60}:{int(elapsed) % 60:02d}"
