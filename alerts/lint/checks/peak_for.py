"""The maximum of a minute, waited for less than two: one instant is enough to fire."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found, at, readings
from alerts.lint.problem import Severity
from alerts.lint.reading.query import Query
from exporter.signal import PEAK_SECONDS, PEAK_SUFFIX, PREFIX

_AT_LEAST_SECONDS = 2 * PEAK_SECONDS


def _find(query: Query, _context: Context) -> Iterator[Found]:
    alert = query.alert
    if alert is None or alert.for_seconds >= _AT_LEAST_SECONDS:
        return
    for selector, _ in readings(query):
        if selector.name.startswith(PREFIX) and selector.name.endswith(PEAK_SUFFIX):
            yield Found(
                at(query, selector),
                f"{selector.name} holds the maximum of {PEAK_SECONDS:g} s, so that one instant outlasts"
                f" for: {alert.for_seconds:g}s",
                f"wait {_AT_LEAST_SECONDS:g}s, or compare {selector.name.removesuffix(PEAK_SUFFIX)}",
            )


CHECK = Check("peak-for", Severity.ERROR, "A _peak signal with a for under two minutes.", _find)
