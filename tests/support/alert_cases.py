"""Histories of an alert as they can be: flaps, gaps, stale series, values that are no number; and who says what.

A case is a series of values, one a step, and a rule ``value > 0`` on it.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from analysis.firing import Episode, State, episodes, state
from tests.support.prometheus import tool

YES, NO, STALE, GAP, NOT_A_NUMBER = "1", "0", "stale", "_", "NaN"
"""Values as promtool writes them; ``GAP``: no sample."""


@dataclass(frozen=True, slots=True)
class Case:
    """``for_seconds`` and ``keep_firing_seconds`` may lie between two evaluations."""

    values: tuple[str, ...]
    for_seconds: float
    keep_firing_seconds: float

    def holds(self, step_seconds: float, lookback_seconds: float) -> list[bool]:
        """Whether ``value > 0`` has a result at the instant of each value, as an instant selector reads it."""
        found = []
        last, since = STALE, 0.0
        for value in self.values:
            if value == GAP:
                since += step_seconds
            else:
                last, since = value, 0.0
            # Prometheus 2.42 still reads a sample that is just as old as the lookback
            found.append(last == YES and since <= lookback_seconds)
        return found


def cases(count: int, length: int, chance: random.Random, durations: Sequence[float]) -> list[Case]:
    """So many, each calmer or wilder than the next; gaps may be longer than a lookback of a third of the length."""
    return [_case(length, chance, durations) for _ in range(count)]


def _case(length: int, chance: random.Random, durations: Sequence[float]) -> Case:
    stays = chance.choice([0.5, 0.8, 0.95])
    others = [NO, YES, YES, STALE, NOT_A_NUMBER]
    values = [chance.choice([NO, YES])]
    while len(values) < length:
        if chance.random() < 0.04:
            values += [GAP] * chance.choice([1, 2, length // 2])
        elif chance.random() < stays:
            last = next(value for value in reversed(values) if value != GAP)
            values.append(last)
        else:
            values.append(chance.choice(others))
    return Case(tuple(values[:length]), chance.choice(durations), chance.choice(durations))


def rules(every: Sequence[Case]) -> list[dict[str, Any]]:
    """One alert a case: ``A0`` on ``v0`` and so on."""
    made = []
    for number, case in enumerate(every):
        rule: dict[str, Any] = {"alert": f"A{number}", "expr": f"v{number} > 0"}
        rule |= {"for": _duration(case.for_seconds)} if case.for_seconds else {}
        rule |= {"keep_firing_for": _duration(case.keep_firing_seconds)} if case.keep_firing_seconds else {}
        made.append(rule)
    return made


def by_promtool(every: Sequence[Case], step: int, folder: Path) -> tuple[str, int]:
    """What ``promtool test rules`` complains of, empty where it says the same; and how many states it was told.

    Of all cases at once, pending and firing, after every evaluation.
    """
    (folder / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "g", "rules": rules(every)}]}))
    length = len(every[0].values)
    times = np.arange(length) * float(step)
    histories = [
        episodes(
            times,
            case.holds(step, 300.0),
            for_seconds=case.for_seconds,
            keep_firing_seconds=case.keep_firing_seconds,
        )
        for case in every
    ]
    checks = [
        {"expr": "ALERTS", "eval_time": f"{at:.0f}s", "exp_samples": list(_samples(histories, at))}
        for at in times
    ]
    test = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": f"{step}s",
        "tests": [
            {
                "interval": f"{step}s",
                "input_series": [
                    {"series": f"v{number}", "values": " ".join(case.values)}
                    for number, case in enumerate(every)
                ],
                "promql_expr_test": checks,
            }
        ],
    }
    (folder / "test.yml").write_text(yaml.safe_dump(test))
    tested = subprocess.run(
        [tool("promtool"), "test", "rules", folder / "test.yml"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    told = sum(len(check["exp_samples"]) for check in checks)
    return ("" if tested.returncode == 0 else tested.stderr[-3000:] + tested.stdout[-3000:]), told


def _samples(histories: Sequence[tuple[Episode, ...]], at: float) -> Iterator[dict[str, Any]]:
    for number, history in enumerate(histories):
        found = state(history, float(at))
        if found is not State.INACTIVE:
            yield {"labels": f'ALERTS{{alertname="A{number}", alertstate="{found.value}"}}', "value": 1}


def _duration(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"
