"""Pieces of PromQL that alerts share where a tree of comparisons can't say it.

All of them keep the cluster's labels, hold through failed scrapes, and count what was there from the first scrape on.
"""

from __future__ import annotations

from alerts.conditions import Rendering
from exporter.signal import Signal

Where = tuple[tuple[str, str], ...]
REMEMBERED = "6h"
"""A counter that was away for less is no new one: what it had counted before doesn't come again."""


def by(rendering: Rendering, labels: tuple[str, ...]) -> str:
    """The labels of a grouping."""
    return ", ".join((*rendering.cluster_labels, *labels))


def gauge(rendering: Rendering, signal: Signal, where: Where = (), window: str = "") -> str:
    """A gauge through failed scrapes; ``window``: how far back, unless the usual."""
    return f"last_over_time({signal.full_name}{rendering.matchers(where)}[{window or rendering.lookback}])"


def rate(
    rendering: Rendering, signal: Signal, window: str, labels: tuple[str, ...], where: Where = ()
) -> str:
    """A counter's rise a second, summed; what several sidecars read, as one gateway, counts once."""
    each = by(rendering, signal.label_names)
    risen = f"rate({signal.full_name}{rendering.matchers(where)}[{window}])"
    return f"sum by ({by(rendering, labels)}) (max by ({each}) ({risen}))"


def risen(rendering: Rendering, signal: Signal, labels: tuple[str, ...], window: str) -> str:
    """Whether a counter counted within a window, its birth at 1 included, which ``increase`` misses.

    One that is lower than before began anew, and has counted since.
    """
    name, group = signal.full_name + rendering.matchers(), by(rendering, labels)
    now = f"max by ({group}) (last_over_time({name}[{rendering.lookback}]))"
    before = f"max by ({group}) (last_over_time({name}[{REMEMBERED}] offset {window}))"
    return f"({now} != {before})\nor on ({group})\n({now} > 0 unless on ({group}) {before})"
