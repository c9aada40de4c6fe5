"""How numbers of a unit are written on an axis, as bokeh's numeral formats have it."""

from __future__ import annotations

import math

_THOUSANDS = 10_000.0
"""From here on a letter says how large it is."""
_SHOWN_DIGITS = 3
_MOST_DECIMALS = 9


def number_format(unit: str, most: float) -> str:
    """For values of up to ``most`` in size: as many decimals as tell them apart."""
    digits = _SHOWN_DIGITS - math.ceil(math.log10(most)) if 0 < most < math.inf else 0
    if unit.startswith("bytes"):
        return "0.[00] d"
    if unit == "ratio":
        return f"0{_decimals(digits - 2)}%"
    if most >= _THOUSANDS:
        return "0.[00]a"
    return f"0{_decimals(digits)}"


def _decimals(count: int) -> str:
    """Up to so many, without zeros at the end."""
    return f".[{'0' * min(count, _MOST_DECIMALS)}]" if count > 0 else ""
