"""Reads a recording of the real engine that runs here (vLLM on a CPU, a tiny model), with the truth from inside.

An archive with ``oracle.jsonl`` (the scheduler after each step: time, sequences, blocks, who was preempted) and
``clients.jsonl`` (when each client asked for what, and when it got or left it). Times of iterations are fitted to the
steps; what the prompts began with was not written down, only how they were drawn, and is drawn again.
"""

from __future__ import annotations

import itertools
import json
import random
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from drill.serving.content import Segment
from drill.serving.request import Request
from drill.serving.step_time import MeasuredTimes
from drill.validation.comparison import Observed, Run
from drill.validation.public_runs import RunError
from drill.validation.small_engine import CONFIG, readings
from drill.validation.step_fit import TimedStep, fit, unstalled

_SHARING, _PREFIXES, _PREFIX_TOKENS = 0.6, 4, 256
"""Share of prompts that begin with one of so many prefixes of so many tokens: how the recording's client drew them."""


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run, and how long its engine's iterations took."""

    run: Run
    times: MeasuredTimes


def read_recorded(archive: Path, seed: int) -> RecordedRun:
    """The run of an archive (.tar.xz); ``seed``: of what the prompts began with. Raises RunError, OSError."""
    lines: dict[str, list[Mapping[str, Any]]] = {}
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                name = PurePosixPath(member.name).name
                opened = tar.extractfile(member) if name in {"oracle.jsonl", "clients.jsonl"} else None
                if opened is not None:
                    lines[name] = [json.loads(line) for line in opened.read().splitlines()]
        return _recorded(lines["oracle.jsonl"], lines["clients.jsonl"], archive.name.split(".tar")[0], seed)
    except (tarfile.TarError, EOFError, KeyError, ValueError) as error:
        raise RunError(
            f"{archive}: not a recording with an oracle: {type(error).__name__}: {error}"
        ) from error


def _recorded(
    steps: list[Mapping[str, Any]], clients: list[Mapping[str, Any]], name: str, seed: int
) -> RecordedRun:
    clients = sorted(clients, key=lambda row: float(row["t"]))
    start = float(clients[0]["t"])
    chance = random.Random(seed)  # noqa: S311 -- repeatable, guards nothing
    observed = tuple(_observed(number, row, start, chance) for number, row in enumerate(clients))
    last = float(steps[-1]["t"]) - start
    preemptions = sum(len(step["preempted"]) for step in steps)
    return RecordedRun(Run(name, observed, readings(steps, start, 0.0, last), preemptions), fit_times(steps))


def _observed(number: int, row: Mapping[str, Any], start: float, chance: random.Random) -> Observed:
    prompt, arrival = int(row["prompt"]), float(row["t"]) - start
    content: tuple[Segment, ...] = (Segment(_PREFIXES + number, prompt),)
    if chance.random() < _SHARING:
        shared = min(prompt, _PREFIX_TOKENS)
        content = (Segment(chance.randrange(_PREFIXES), shared),)
        if prompt > shared:
            content += (Segment(_PREFIXES + number, prompt - shared),)
    over = arrival + float(row["dur"])
    done = row["end"] == "done"
    request = Request(
        number, arrival, prompt, int(row["max_tokens"]), content, abort_seconds=None if done else over
    )
    return Observed(request, arrival + float(row["ttft"]) if done else None, over if done else None)


def fit_times(steps: list[Mapping[str, Any]]) -> MeasuredTimes:
    """Seconds of a step by least squares, linear in prefill tokens and decodes.

    Tokens that a step computed are those by which all that is held grew; steps in which sequences ended or were sent
    away, or that were held up, say nothing.
    """
    size = CONFIG.block_tokens
    found = []
    for before, after in itertools.pairwise(steps):
        held = [size * int(each["blocks_held"]) - int(each["tail_tokens"]) for each in (before, after)]
        computed, running = held[1] - held[0], int(after["running"])
        took = float(after["t"]) - float(before["t"])
        if not after["preempted"] and computed >= running:
            found.append(TimedStep(float(before["t"]), took, computed - running, running))
    return fit(unstalled(found))
