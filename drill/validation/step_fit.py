"""How long a real engine's iterations took: a line fitted to its steps, and how the machine's speed changed."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from drill.serving.step_time import MeasuredTimes

WINDOW_SECONDS = 5.0
"""Over which the machine's speed is taken: some hundred steps, or a few dozen on a busy machine."""

STALL_SECONDS = 0.3
"""A step of the engine that runs here takes no longer, unless something else on the machine holds it up."""


@dataclass(frozen=True, slots=True)
class TimedStep:
    """One iteration: when it began (seconds since the first arrival), how long it took, and what it computed."""

    at: float
    seconds: float
    prefill_tokens: int
    decodes: int


@dataclass(frozen=True, slots=True)
class PacedTimes:
    """Times on a machine whose speed changes; ``paces``: of each window, how long for a second as fitted."""

    whole: MeasuredTimes
    paces: Mapping[int, float]

    def at(self, seconds: float) -> MeasuredTimes:
        """Those of the window that this instant is in; where nothing ran in it, those of the whole run."""
        pace = self.paces.get(math.floor(seconds / WINDOW_SECONDS), 1.0)
        whole = self.whole
        return MeasuredTimes(
            pace * whole.fixed_seconds, pace * whole.prefill_token_seconds, pace * whole.decode_seconds
        )


def fit(steps: Sequence[TimedStep]) -> MeasuredTimes:
    """Seconds of a step by least squares, linear in prefill tokens and decodes. Raises ValueError without steps."""
    if not steps:
        raise ValueError("no step whose time tells anything")
    rows = np.array([(1.0, float(step.prefill_tokens), float(step.decodes)) for step in steps])
    seconds = np.array([step.seconds for step in steps])
    fixed, prefill, decode = np.linalg.lstsq(rows, seconds, rcond=None)[0].tolist()
    return MeasuredTimes(max(0.0, fixed), max(0.0, prefill), max(0.0, decode))


def paced(steps: Sequence[TimedStep], whole: MeasuredTimes) -> PacedTimes:
    """How much longer than fitted the steps of each window took, all that held them up included."""
    took: dict[int, float] = defaultdict(float)
    fitted: dict[int, float] = defaultdict(float)
    for step in steps:
        window = math.floor(step.at / WINDOW_SECONDS)
        took[window] += step.seconds
        fitted[window] += _seconds(step, whole)
    return PacedTimes(whole, {window: took[window] / fitted[window] for window in took if fitted[window]})


def unstalled(steps: Iterable[TimedStep]) -> list[TimedStep]:
    """Those that nothing else on the machine held up for long."""
    return [step for step in steps if step.seconds <= STALL_SECONDS]


def _seconds(step: TimedStep, times: MeasuredTimes) -> float:
    return (
        times.fixed_seconds
        + times.prefill_token_seconds * step.prefill_tokens
        + times.decode_seconds * step.decodes
    )
