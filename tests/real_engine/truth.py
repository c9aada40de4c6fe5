"""What really happened, from the oracle's lines and the clients' lines. Pure functions, no engine needed."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Step(NamedTuple):
    """The scheduler after one step."""

    at: float
    running: int
    tail_tokens: int


class Preemption(NamedTuple):
    """A sequence that lost its blocks."""

    at: float
    request: str


class End(NamedTuple):
    """A request that is over; ``untold`` of its preemptions never reach the engine's counter."""

    at: float
    request: str
    aborted: bool
    preemptions: int
    untold: int


class Oracle(NamedTuple):
    """All that the oracle saw, each in the order of time."""

    steps: list[Step]
    preemptions: list[Preemption]
    ends: list[End]


class Request(NamedTuple):
    """What one client saw of one request; ``first`` and ``last`` token are None without any."""

    phase: str
    begin: float
    over: float
    end: str
    tokens: int
    first: float | None
    last: float | None
    max_gap: float


class Toggled(NamedTuple):
    """A step while the probe was switched off and on: whether it was on, when schedule() was called, for how long."""

    on: bool
    began: float
    seconds: float


def read_toggled(lines: Iterable[str]) -> list[Toggled]:
    """The file of what switches the probe."""
    return [Toggled(*json.loads(line)) for line in lines if line.endswith("\n")]


def repeats(preemptions: Iterable[Preemption], seconds: float) -> list[Preemption]:
    """Those that came within so many seconds of the same sequence's last."""
    last: dict[str, float] = {}
    found = []
    for hit in preemptions:
        if hit.at - last.get(hit.request, -seconds - 1) <= seconds:
            found.append(hit)
        last[hit.request] = hit.at
    return found


def read_oracle(lines: Iterable[str]) -> Oracle:
    """The oracle's file. A last line cut off by a kill is left out."""
    seen = Oracle([], [], [])
    for line in lines:
        if not line.endswith("\n"):
            continue
        event = json.loads(line)
        match event["kind"]:
            case "step":
                seen.steps.append(Step(event["t"], event["running"], event["tail_tokens"]))
            case "preempt":
                seen.preemptions.append(Preemption(event["t"], event["id"]))
            case "end":
                seen.ends.append(
                    End(event["t"], event["id"], event["aborted"], event["preemptions"], event["untold"])
                )
    return seen


def read_requests(lines: Iterable[str]) -> list[Request]:
    """The clients' file."""
    return [Request(*(saw[field] for field in Request._fields)) for saw in map(json.loads, lines)]


def steps_between(steps: Sequence[Step], begin: float, end: float) -> Sequence[Step]:
    """The steps in ``begin <= t <= end``; where there is none, the last one before: nothing has moved since."""
    first = bisect_left(steps, begin, key=_at)
    past = bisect_right(steps, end, key=_at)
    return steps[first:past] or steps[max(0, first - 1) : first]


def mean_tail(steps: Sequence[Step], begin: float, end: float) -> float | None:
    """Tail tokens, the mean over the steps of that time."""
    inside = steps_between(steps, begin, end)
    return sum(step.tail_tokens for step in inside) / len(inside) if inside else None


def tail_range(steps: Sequence[Step], begin: float, end: float) -> tuple[int, int] | None:
    """Least and most tail tokens of that time."""
    tails = [step.tail_tokens for step in steps_between(steps, begin, end)]
    return (min(tails), max(tails)) if tails else None


def running_range(steps: Sequence[Step], begin: float, end: float) -> tuple[int, int] | None:
    """Fewest and most running sequences of that time."""
    running = [step.running for step in steps_between(steps, begin, end)]
    return (min(running), max(running)) if running else None


def finished_repeat_share(ends: Iterable[End], begin: float, end: float) -> tuple[float, int] | None:
    """Among requests that finished by themselves in that time: the share of their preemptions that hit
    one already preempted, and how many preemptions that speaks of. None without any.
    """  # fmt: skip
    counts = [e.preemptions for e in ends if not e.aborted and begin < e.at <= end and e.preemptions]
    return (1 - len(counts) / sum(counts), sum(counts)) if counts else None


def repeat_share(preemptions: Iterable[Preemption], begin: float, end: float) -> float | None:
    """Of the preemptions in that time, the share that hit a sequence already hit in it."""
    hit = [p.request for p in preemptions if begin < p.at <= end]
    return 1 - len(set(hit)) / len(hit) if hit else None


def aborts(ends: Iterable[End]) -> int:
    """Requests ended from outside."""
    return sum(end.aborted for end in ends)


def untold_preemptions(ends: Iterable[End]) -> int:
    """Preemptions that happened but that the engine's counter can't know."""
    return sum(end.untold for end in ends)


def mean_gap(requests: Iterable[Request], begin: float, end: float) -> float | None:
    """Seconds from one token to the next in that time, the mean over all gaps of all clients.

    A request that reaches beyond the time counts by its share, its tokens taken as evenly spread.
    """
    seconds = gaps = 0.0
    for request in requests:
        if request.first is None or request.last is None or request.last <= request.first:
            continue
        inside = min(request.last, end) - max(request.first, begin)
        if inside > 0:
            seconds += inside
            gaps += (request.tokens - 1) * inside / (request.last - request.first)
    return seconds / gaps if gaps else None


def _at(step: Step) -> float:
    return step.at
