"""Cases that a live Prometheus evaluates, once a second, and that is started anew meanwhile."""

from __future__ import annotations

import math
import random
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from analysis.firing import Episode, Restoring, State, episodes, state
from tests.support.alert_cases import GAP, NO, NOT_A_NUMBER, STALE, YES, Case, cases, rules
from tests.support.prometheus import Prometheus, started
from tests.support.remote_write import body, samples

GRACE, OUTAGE, LOOKBACK = 4.0, 8.0, 5.0
_DURATIONS = (0, 1, 2, 3, 4, 5, 8, 12)
_LEAD = 3
"""Seconds from the pushing to the first sample."""
_FIRST_WRITTEN = 2
"""Evaluations after a start of which no state is written."""
_STALE = struct.unpack("<d", struct.pack("<Q", 0x7FF0000000000002))[0]
_NUMBERS = {YES: 1.0, NO: 0.0, STALE: _STALE, NOT_A_NUMBER: math.nan}


@dataclass(frozen=True, slots=True)
class Found:
    """What was compared: evaluations whose states are known, states other than inactive, and where both differ."""

    evaluations: int
    starts: int
    states: int
    restored: int
    differ: tuple[str, ...]


def live(count: int, seconds: int, seed: int, folder: Path, starts: int = 3) -> Found:
    """So many cases for so long, over so many starts of one Prometheus."""
    every = cases(count, seconds, random.Random(seed), _DURATIONS)  # noqa: S311 -- histories, no secrets
    settings, rule_file = folder / "prometheus.yml", folder / "rules.yml"
    group = {"name": "g", "rules": [{"record": "tick", "expr": "vector(1)"}, *rules(every)]}
    rule_file.write_text(yaml.safe_dump({"groups": [group]}))
    settings.write_text(f"global: {{evaluation_interval: 1s}}\nrule_files: [{rule_file.name}]\n")
    flags = (
        "--web.enable-remote-write-receiver",
        f"--rules.alert.for-grace-period={GRACE:.0f}s",
        f"--rules.alert.for-outage-tolerance={OUTAGE:.0f}s",
        f"--query.lookback-delta={LOOKBACK:.0f}s",
    )
    restarts: list[float] = []
    begin = 0
    for start in range(starts):
        if start:
            restarts.append(time.time())
        with started(settings, folder / "data", *flags) as server:
            if not start:
                begin = math.ceil(time.time()) + _LEAD
                push(server, every, begin)
            until = begin + seconds * (start + 1) / starts
            time.sleep(max(0.0, until - time.time()))
            if start == starts - 1:
                ticks = _ticks(server, seconds)
                written = _written(server, seconds)
    return _compared(every, begin, (ticks, restarts), written)


def push(server: Prometheus, every: Sequence[Case], begin: int, step: int = 1) -> None:
    """Write the values of all cases from an instant on, stale ones as Prometheus marks them."""
    series = []
    for number, case in enumerate(every):
        there = [place for place, value in enumerate(case.values) if value != GAP]
        times = np.array([(begin + place * step) * 1000 for place in there], dtype=np.int64)
        values = np.array([_NUMBERS[case.values[place]] for place in there])
        series.append(({"__name__": f"v{number}"}, samples(times, values)))
    server.write(body(series))


def _ticks(server: Prometheus, seconds: int) -> list[float]:
    (row,) = server.raw("tick", seconds + 60).values()
    return row


def _written(server: Prometheus, seconds: int) -> dict[tuple[str, float], State]:
    """States by alert and by the time of the evaluation."""
    found = {}
    for labels, row in server.raw("ALERTS", seconds + 60).items():
        told = dict(labels)
        for at in row:
            found[told["alertname"], at] = State(told["alertstate"])
    return found


def _compared(
    every: Sequence[Case],
    begin: int,
    up: tuple[Sequence[float], Sequence[float]],
    written: Mapping[tuple[str, float], State],
) -> Found:
    ticks, restarts = up
    firsts = [0, *np.searchsorted(ticks, restarts)]
    unwritten = {int(first) + place for first in firsts for place in range(_FIRST_WRITTEN)}
    known = [place for place in range(len(ticks)) if place not in unwritten]
    differ, states, restored = [], 0, 0
    for number, case in enumerate(every):
        history = episodes(
            ticks,
            _holds(case, begin, ticks),
            for_seconds=case.for_seconds,
            keep_firing_seconds=case.keep_firing_seconds,
            restarts=restarts,
            restoring=Restoring(GRACE, OUTAGE),
        )
        plain = _without_restoring(case, begin, ticks, restarts)
        for place in known:
            at = ticks[place]
            ours = state(history, at)
            theirs = written.get((f"A{number}", at), State.INACTIVE)
            states += theirs is not State.INACTIVE
            restored += ours is not state(plain, at)
            if ours is not theirs:
                differ.append(f"A{number} at {at - begin:.3f} s: {theirs} there, {ours} here; {case}")
    return Found(len(known), len(firsts), states, restored, tuple(differ))


def _holds(case: Case, begin: int, ticks: Sequence[float]) -> list[bool]:
    """Of the newest sample at each evaluation: those of ``Case.holds`` lie on the samples themselves."""
    found = []
    for at in ticks:
        last = math.floor(at - begin)
        there = [place for place in range(min(last, len(case.values) - 1) + 1) if case.values[place] != GAP]
        newest = there[-1] if there else None
        fresh = newest is not None and at - (begin + newest) <= LOOKBACK
        found.append(newest is not None and fresh and case.values[newest] == YES)
    return found


def _without_restoring(
    case: Case, begin: int, ticks: Sequence[float], restarts: Sequence[float]
) -> tuple[Episode, ...]:
    return episodes(
        ticks,
        _holds(case, begin, ticks),
        for_seconds=case.for_seconds,
        keep_firing_seconds=case.keep_firing_seconds,
        restarts=restarts,
        restoring=Restoring(GRACE, outage_seconds=0.0),
    )
