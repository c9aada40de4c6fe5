"""Numbers as a person reads them at night: three digits, units in words."""

from __future__ import annotations

from exporter.derive.amplification import AMPLIFICATION
from exporter.derive.headroom import DEMAND
from exporter.derive.ranks import IMBALANCE
from exporter.signal import PEAK_SUFFIX

_THOUSAND = 1000.0
_FACTORS = frozenset(signal.name for signal in (DEMAND, AMPLIFICATION, IMBALANCE))
"""Ratios that are no shares: how many times something is of something else."""


def percent(ratio: float) -> str:
    """A ratio from 0 to 1."""
    return f"{100 * ratio:.0f} %" if ratio == 0 or ratio >= 0.1 else f"{100 * ratio:.1f} %"  # noqa: PLR2004


def count(number: float) -> str:
    """Whole things."""
    return f"{number:,.0f}"


def short(number: float) -> str:
    """Of tokens, say: 950, 2.1k, 48k, 1.3M."""
    size = abs(number)
    for limit, unit in ((1e6, "M"), (1e3, "k")):
        if size >= limit:
            return f"{number / limit:.3g}{unit}" if size < 1000 * limit else f"{number / limit:,.0f}{unit}"
    return f"{number:.3g}"


def amount(size: float) -> str:
    """Bytes."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(size) < _THOUSAND:
            return f"{size:.3g} {unit}"
        size /= _THOUSAND
    return f"{size:.3g} TB"


def seconds(time: float) -> str:
    """A time."""
    return f"{1000 * time:.0f} ms" if 0 < time < 1 else f"{time:.3g} s" if time < 1000 else f"{time:,.0f} s"  # noqa: PLR2004


def of_signal(name: str, value: float) -> str:
    """The value of a signal, by the unit that its name carries."""
    bare = name.partition("{")[0].removesuffix(PEAK_SUFFIX)
    if bare.endswith("_bytes_per_second"):
        return f"{amount(value)}/s"
    if bare.endswith("_bytes"):
        return amount(value)
    if bare.endswith("_seconds"):
        return seconds(value)
    if bare.endswith("_ratio") and bare not in _FACTORS:
        return percent(value)
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"  # noqa: PLR2004
