"""Reads the traces that ``make real`` leaves (``.real_engine/last_run/``): its overload, and the load before it.

``oracle.jsonl`` tells when the scheduler took each request in, what each step computed and held, and who was
preempted; ``clients.jsonl`` what was asked, and when its tokens came. The load before the overload is given to
the model too, for what it leaves in the prefix cache and still runs, but isn't compared. Requests arrive and leave
when the scheduler hears of it: the model has no front end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drill.serving.content import Segment
from drill.serving.request import Request
from drill.validation.comparison import Observed, Reading, Run
from drill.validation.public_runs import RunError
from drill.validation.small_engine import readings
from drill.validation.step_fit import PacedTimes, TimedStep, fit, paced, unstalled

_PHASES = ("load", "overload")


@dataclass(frozen=True, slots=True)
class FreshRun:
    """A run, and how long its engine's iterations took while it lasted."""

    run: Run
    times: PacedTimes


@dataclass(frozen=True, slots=True)
class _Trace:
    """What the files hold of the two phases; ``start``: the epoch of the first arrival."""

    marks: Mapping[str, float]
    events: Sequence[Mapping[str, Any]]
    clients: Sequence[Mapping[str, Any]]
    start: float


def read_fresh(folder: Path) -> FreshRun:
    """The run whose traces lie there. Raises RunError where they aren't whole, OSError."""
    try:
        trace = _trace(folder)
        steps = list(_timed(trace))
        return FreshRun(_run(folder.name, trace), paced(steps, fit(unstalled(steps))))
    except (KeyError, ValueError) as error:
        raise RunError(
            f"{folder}: not the traces of a run of make real: {type(error).__name__}: {error}"
        ) from error


def _run(name: str, trace: _Trace) -> Run:
    observed = tuple(_observed(trace))
    if all(each.last_token_seconds is None for each in observed):
        raise ValueError("no request of the overload was served")
    hits = sum(event["kind"] == "preempt" for event in trace.events)
    return Run(name, observed, _readings(trace), hits)


def _trace(folder: Path) -> _Trace:
    marks = {row["what"]: float(row["t"]) for row in _lines(folder / "marks.jsonl")}
    events = [
        event
        for event in _lines(folder / "oracle.jsonl")
        if marks["load"] <= event["t"] <= marks["overload_over"]
    ]
    clients = [row for row in _lines(folder / "clients.jsonl") if row["phase"] in _PHASES]
    start = next((float(event["t"]) for event in events if event["kind"] == "arrive"), None)
    if start is None:
        raise ValueError("oracle.jsonl tells of no arrival")
    return _Trace(marks, events, clients, start)


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    """A last line that a kill cut off is left out."""
    for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.endswith("\n"):
            yield json.loads(line)


def _observed(trace: _Trace) -> Iterator[Observed]:
    """By arrival at the scheduler; a request that never came so far is none. Who is in it at the end leaves then."""
    asked = {str(row["id"]): row for row in trace.clients}
    left = {
        event["id"]: float(event["t"]) - trace.start if event["aborted"] else None
        for event in trace.events
        if event["kind"] == "end"
    }
    over = trace.marks["overload_over"] - trace.start
    contents: dict[str, int] = {}
    arrivals = (event for event in trace.events if event["kind"] == "arrive")
    for number, event in enumerate(arrivals):
        row = asked[event["id"].removeprefix("cmpl-").split("-")[0]]
        own = contents.setdefault(str(row["question"]), len(contents))
        request = Request(
            number,
            float(event["t"]) - trace.start,
            int(row["prompt_tokens"]),
            int(row["max_tokens"]),
            _content(row, own),
            abort_seconds=left.get(event["id"], over),
        )
        compared = row["phase"] == "overload" and row["end"] == "done"
        yield Observed(
            request,
            float(row["first"]) - trace.start if compared else None,
            float(row["last"]) - trace.start if compared else None,
        )


def _content(row: Mapping[str, Any], own: int) -> tuple[Segment, ...]:
    """What its prompt begins with, and what only the same question has."""
    shared, rest = int(row["shared_tokens"]), int(row["prompt_tokens"]) - int(row["shared_tokens"])
    beginning = (Segment(2 * int(row["prefix"]), shared),) if shared else ()
    return (*beginning, Segment(2 * own + 1, rest)) if rest else beginning


def _readings(trace: _Trace) -> tuple[Reading, ...]:
    steps = [event for event in trace.events if event["kind"] == "step"]
    begin, end = (trace.marks[mark] - trace.start for mark in ("overload", "overload_over"))
    return readings(steps, trace.start, begin, end)


def _timed(trace: _Trace) -> Iterator[TimedStep]:
    """Each step and how long after it the next one was: none where there was nothing to do between."""
    inside, before = 0, None
    for event in trace.events:
        kind = event["kind"]
        if kind == "arrive":
            inside += 1
        elif kind == "end":
            inside -= 1
            before = before if inside else None
        elif kind == "step":
            if before is not None:
                yield _step(before, float(event["t"]), trace.start)
            before = event


def _step(event: Mapping[str, Any], until: float, start: float) -> TimedStep:
    return TimedStep(
        float(event["t"]) - start,
        until - float(event["t"]),
        int(event["prefill_tokens"]),
        int(event["decodes"]),
    )
