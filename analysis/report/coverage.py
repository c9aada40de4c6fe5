"""What a history lacks, and what that costs the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from analysis.cascade.ranking import Ranking
from analysis.history.history import History
from analysis.incident.phase import Incidents
from exporter.derive.gateway import INFLIGHT
from exporter.derive.inventory import GPU_UP
from exporter.derive.traffic import SEQUENCES

COARSE_SECONDS = 5.0
"""From this step on things happen between two instants."""
_SHORT_SECONDS = 300.0


def caveats(history: History, found: Incidents, ranking: Ranking) -> tuple[str, ...]:
    """One line each, the costliest first."""
    told = [*_lacks(history), *found.notes, *ranking.caveats, *history.notes]
    # who says it first says what it costs; what others say of the same begins with the same words
    return tuple({each.partition(":")[0]: each for each in reversed(told)}[head] for head in _heads(told))


def _heads(told: Iterable[str]) -> Iterator[str]:
    yield from dict.fromkeys(each.partition(":")[0] for each in told)


def _lacks(history: History) -> Iterator[str]:
    frame = history.frame
    names = {key.name for key in frame.keys}
    if SEQUENCES.full_name not in names:
        yield (
            "No engine was watched: nothing is known of latency, of KV caches or of queues, and causes inside"
            " engines can't be told from each other."
        )
    if GPU_UP.full_name not in names:
        yield (
            "No GPU was watched: whether a link was full, a GPU was lost or collectives grew slow isn't known,"
            " and such causes are not ruled out."
        )
    if INFLIGHT.full_name not in names:
        yield (
            "No gateway was watched: retries, orphaned sequences and requests that were turned away can't be seen,"
            " and sessions are what engines hold."
        )
    if history.derived:
        yield (
            f"No sidecar was there: {len(history.derived)} signals are derived from the engines' own series, one value"
            f" in {frame.step_seconds:g} s. What rises and falls in between is lost, and what only a sidecar is told"
            " (settings, GPUs of an engine) is missing."
        )
    elif frame.step_seconds > COARSE_SECONDS:
        yield (
            f"One value in {frame.step_seconds:g} s: peaks in between are lost, and nothing is dated more finely."
        )
    if frame.end - frame.start < _SHORT_SECONDS:
        yield "Less than five minutes of history: what is usual is guessed from very little."
