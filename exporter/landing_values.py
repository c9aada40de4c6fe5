"""How the landing page writes a value: in its signal's unit, and in a word where a number alone misleads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from exporter.derive.attribution import IMPOSSIBLE
from exporter.derive.blocks import KV_LEAK
from exporter.derive.inventory import GPU_UP
from exporter.derive.latency import SATURATED
from exporter.derive.pcie import PCIE_DOWNGRADED
from exporter.derive.pingpong import PINGPONG
from exporter.derive.preemption import THRASHING
from exporter.derive.stalls import DEADLOCKED, FROZEN
from exporter.signal import Kind, Signal
from exporter.source_signals import SOURCE_UP


class State(NamedTuple):
    """A signal that is 0 or 1 and a verdict by itself: at ``alarm`` it is marked, with ``word``."""

    alarm: float
    word: str
    calm: str = ""


STATES: Mapping[Signal, State] = {
    THRASHING: State(1.0, "thrashing", "not thrashing"),
    FROZEN: State(1.0, "frozen", "not frozen"),
    DEADLOCKED: State(1.0, "deadlocked", "not deadlocked"),
    KV_LEAK: State(1.0, "leaking"),
    SATURATED: State(1.0, "a floor, the truth is above"),
    GPU_UP: State(0.0, "down", "up"),
    PCIE_DOWNGRADED: State(1.0, "PCIe link downgraded"),
    IMPOSSIBLE: State(1.0, "swap doesn't fit its GPUs' PCIe"),
    SOURCE_UP: State(0.0, "down", "up"),
}
"""All that is ever marked, with GPUs that wait for PCIe (landing_gpus) and sequences that are swapped out
(landing_strip): from what value on any other signal means trouble is for alerts to say."""


def raised(signal: Signal, value: float) -> bool:
    """Whether ``value`` is the one that ``signal`` is marked at."""
    state = STATES.get(signal)
    return state is not None and value == state.alarm


def said(signal: Signal, labels: tuple[str, ...], value: float) -> str:
    """``value`` in its unit, with a word where it is a state or proves less than it seems to."""
    text = shown(signal, value)
    if signal is PINGPONG and labels[-1] == "bound" and value == 0:
        return f"{value:g}: not proven"
    state = STATES.get(signal)
    word = "" if state is None else state.word if value == state.alarm else state.calm
    return f"{text}: {word}" if word else text


def shown(signal: Signal, value: float) -> str:
    """Write ``value`` in the unit that the signal's name tells, short enough to read at a glance."""
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "-∞"}.get(value, "NaN")
    name = signal.name.removesuffix("_total") if signal.kind is Kind.COUNTER else signal.name
    if name.endswith("_ratio"):
        return f"{value * 100:.1f} %"
    if name.endswith("_per_second"):
        return _bytes(value) + "/s" if "bytes" in name else _plain(value) + "/s"
    if "bytes" in name:
        return _bytes(value)
    return seconds(value) if name.endswith("_seconds") else _plain(value)


def seconds(value: float) -> str:
    """A duration to three digits."""
    # Three digits make 1000 ms of what is nearer to a second.
    return f"{value * 1000:.3g} ms" if 0 < abs(value) < 0.9995 else age(value)  # noqa: PLR2004


def age(value: float) -> str:
    """A duration of which parts of a second matter less."""
    if abs(value) < 120:  # noqa: PLR2004 - two minutes and less read best in seconds
        return f"{value:.1f} s"
    minutes, left = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {left:02d} s"


def _bytes(value: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":  # noqa: PLR2004 - a binary step
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError("the loop ends at TiB")


def _plain(value: float) -> str:
    whole = value == int(value) or abs(value) >= 10_000  # noqa: PLR2004 - four digits tell enough
    text = f"{value:,.0f}" if whole else f"{value:,.4g}"
    return text.replace(",", "\N{THIN SPACE}")
