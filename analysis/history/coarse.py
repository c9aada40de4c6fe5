"""What signals are worth where pages come seldom: a sidecar reads each second, most Prometheus every 15 s or more.

Three things happen. What follows an engine from read to read can't, once every interval is longer than numbers hold: it
would say "nothing" of all that it missed, so it is left out. What counts what happens between reads counts too little.
And a mean over a time that is shorter than the interval is one over the interval.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from analysis.frame import Values
from exporter.catalogue import DERIVED_SIGNALS
from exporter.signal import Scope, Signal
from exporter.window import LONGEST_GAP_SECONDS

EACH_SECOND = 2.0
"""Up to this step pages come as a sidecar reads them."""
_JITTER_SECONDS = 0.05
_MOST_NAMED = 8


def left_out(step_seconds: float) -> frozenset[Signal]:
    """Signals that pages this far apart can't tell."""
    if step_seconds <= LONGEST_GAP_SECONDS:
        return frozenset()
    return frozenset(signal for signal in DERIVED_SIGNALS if signal.follows_reads)


def evened(times: Values, step_seconds: float) -> Values:
    """Times of a schedule without its jitter, which would make some intervals longer than numbers hold and others not.

    Where pages come each second nothing is changed; a time that is further off than a scraper's jitter stays as it is.
    """
    if step_seconds <= EACH_SECOND or not len(times):
        return times
    found = times.tolist()
    for place in range(1, len(found)):
        due = found[place - 1] + step_seconds
        if abs(found[place] - due) <= _JITTER_SECONDS:
            found[place] = due
    return np.array(found)


def caveats(told: Collection[Signal], step_seconds: float) -> Iterator[str]:
    """One line each of what the signals that were ``told`` are worth, and which can't be."""
    if step_seconds <= EACH_SECOND:
        return
    means = [signal for signal in told if 0 < signal.window_seconds < step_seconds]
    if means:
        yield f"means over the {step_seconds:g} s between scrapes, not over less: {_listed(means)}"
    bounds = [signal for signal in told if signal.misses_between_reads]
    if bounds:
        yield f"lower bounds, as what happens between scrapes isn't seen: {_listed(bounds)}"
    scopes = {signal.scope for signal in told} - {Scope.SOURCE, Scope.SIDECAR}
    gone = [
        signal
        for signal in DERIVED_SIGNALS
        if signal.scope in scopes
        and signal not in told
        and (
            signal in left_out(step_seconds) or 0 < signal.window_seconds < step_seconds - LONGEST_GAP_SECONDS
        )
    ]
    if gone:
        yield f"absent, as scrapes every {step_seconds:g} s can't tell: {_listed(gone)}"


def _listed(signals: Collection[Signal]) -> str:
    names = sorted(signal.name for signal in signals)
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
