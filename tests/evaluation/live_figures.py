"""How soon and how often people were told, beside what was true. Times are seconds of the clock, since the epoch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alerts.alertmanager import PAGE, PEOPLE
from exporter.derive.latency import TPOT_P99
from exporter.recorder_reader import Recording
from tests.bench.report import Figure
from tests.evaluation.live_webhook import Notification

SLOW_SECONDS = 2.0
"""TPOT p99 from which clients time out, says the incident's postmortem."""
PAGE_WITHIN_SECONDS, LEAD_ON_A_RAMP_SECONDS, MOST_NOTIFICATIONS = 90.0, 60.0, 5


@dataclass(frozen=True, slots=True)
class Measured:
    """None: it didn't happen. ``trouble``: the first swap-in or repeat preemption since the onset.

    ``page``: the first with an alert of the true cause; ``any_page``: the first of whatever cause. ``slow``: TPOT p99
    of an engine passes 2 s, ``slow_seconds``: recorded seconds since the onset in which it is above on the engine that
    has most of them. ``told``: notifications since the onset, ``pages`` of them, ``before`` it, and ``flaps``:
    those that tell anew of an alert that had been told to be over.
    """

    onset: float | None
    trouble: float | None
    page: float | None
    any_page: float | None
    slow: float | None
    slow_seconds: int
    told: int
    pages: int
    before: int
    flaps: int


def measure(
    truth: Mapping[str, Any],
    heard: Sequence[Notification],
    tpot_p99: Mapping[str, Mapping[float, float]],
) -> Measured:
    """``truth``: as TruthLog tells it. ``tpot_p99``: by engine, each second."""
    onset = truth["onset"]
    people = [each for each in heard if each.receiver in PEOPLE]
    since = [each for each in people if onset is None or each.at >= onset]
    pages = [each for each in since if each.receiver == PAGE and each.firing]
    slow = [
        [at for at, value in row.items() if value > SLOW_SECONDS and onset is not None and at >= onset]
        for row in tpot_p99.values()
    ]
    right = [each for each in pages if any(told.cause == truth["cause"] for told in each.firing)]
    return Measured(
        onset,
        _first(at for at in _troubles(truth) if onset is not None and at >= onset),
        _first(each.at for each in right),
        _first(each.at for each in pages),
        _first(at for row in slow for at in row),
        max((len(row) for row in slow), default=0),
        len(since),
        len(pages),
        len(people) - len(since),
        _flaps(people),
    )


def figures(measured: Measured, *, ramp: bool) -> list[Figure]:
    """What has a bar, as far as there is something to judge."""
    found = []
    if measured.trouble is not None:
        late = float("nan") if measured.page is None else measured.page - measured.trouble
        found.append(
            Figure("first swap-in or repeat preemption to page", late, "s", PAGE_WITHIN_SECONDS, "lower")
        )
    if measured.slow is not None:
        lead = float("nan") if measured.page is None else measured.slow - measured.page
        found.append(
            Figure("page to TPOT p99 above 2 s", lead, "s", LEAD_ON_A_RAMP_SECONDS if ramp else 0.0, "higher")
        )
    found.append(
        Figure("notifications", float(measured.told), "", 0 if measured.onset is None else MOST_NOTIFICATIONS)
    )
    found.append(Figure("notifications before the onset", float(measured.before), "", 0))
    found.append(Figure("notifications of a flap", float(measured.flaps), "", 0))
    return found


def tpot_p99_of(recordings: Mapping[str, Path]) -> dict[str, dict[float, float]]:
    """What sidecars recorded of it, by engine."""
    found = {}
    for engine, path in recordings.items():
        with Recording(path) as recording:
            series = list(recording.read(names={TPOT_P99.full_name}))
        found[engine] = {
            at: value for each in series for at, value in zip(each.times, each.values, strict=True)
        }
    return found


def _troubles(truth: Mapping[str, Any]) -> Iterable[float]:
    for engine in truth["engines"].values():
        rows = zip(truth["seconds"], engine["swap_in_bytes"], engine["repeat_preemptions_30s"], strict=True)
        yield from (at for at, swapped, repeated in rows if swapped or repeated)


def _flaps(told: Iterable[Notification]) -> int:
    over: set[str] = set()
    flaps = 0
    for each in told:
        flaps += any(alert.identity in over for alert in each.firing)
        over -= {alert.identity for alert in each.firing}
        over |= {alert.identity for alert in each.alerts if not alert.firing}
    return flaps


def _first(times: Iterable[float]) -> float | None:
    return min(times, default=None)
