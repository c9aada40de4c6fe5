"""The same cases by ``vmalert -replay``: another program's idea of ``for``, without ``keep_firing_for``."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import yaml

from analysis.firing import State, episodes, state
from tests.evaluation.firing_live import push
from tests.support.alert_cases import Case, rules
from tests.support.prometheus import Prometheus, serving

START = 1_790_000_025
"""A whole number of minutes before, so that steps of a replay fall on samples."""
LOOKBACK = 300.0


@dataclass(frozen=True, slots=True)
class Said:
    """How many cases and states other than inactive were compared, and at which instants it says something else."""

    cases: int
    states: int
    differ: tuple[str, ...]


def by_vmalert(every: Sequence[Case], step: int, folder: Path, program: str) -> Said:
    """Cases without ``keep_firing_for``, which it hasn't."""
    asked = [replace(case, keep_firing_seconds=0) for case in every]
    rule_file = folder / "rules.yml"
    rule_file.write_text(
        yaml.safe_dump({"groups": [{"name": "g", "interval": f"{step}s", "rules": rules(asked)}]})
    )
    length = len(asked[0].values)
    end = START + (length - 1) * step
    with serving(None, folder, "--web.enable-remote-write-receiver") as server:
        push(server, asked, START, step)
        subprocess.run(
            [
                program,
                f"-rule={rule_file}",
                f"-datasource.url={server.url}",
                f"-remoteWrite.url={server.url}",
                f"-datasource.queryStep={step}s",
                "-replay.rulesDelay=0s",
                f"-replay.timeFrom={_time(START)}",
                f"-replay.timeTo={_time(end)}",
                "-replay.maxDatapointsPerQuery=1000",
            ],
            check=True,
            capture_output=True,
            timeout=300,
        )
        return _compared(asked, step, server)


def _compared(every: Sequence[Case], step: int, server: Prometheus) -> Said:
    length = len(every[0].values)
    times = START + np.arange(length) * float(step)
    told: dict[tuple[str, float], State] = {}
    found = server.query_range("last_over_time(ALERTS[1s])", times[0], times[-1], step)
    for labels, row in found.items():
        names = dict(labels)
        for at in row:
            told[names["alertname"], at] = State(names["alertstate"])
    differ = []
    for number, case in enumerate(every):
        history = episodes(times, case.holds(step, LOOKBACK), for_seconds=case.for_seconds)
        for at in times:
            ours, theirs = state(history, float(at)), told.get((f"A{number}", float(at)), State.INACTIVE)
            if ours is not theirs:
                differ.append(f"A{number} at {at - START:.0f} s: {theirs} there, {ours} here; {case}")
    return Said(len(every), len(told), tuple(differ))


def _time(seconds: float) -> str:
    return re.sub(r"\+00:00$", "Z", datetime.fromtimestamp(seconds, UTC).isoformat())
