"""What the demo tells: the lines that it speaks of once they are crossed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from drill.sidecar import Reading
from drill.words import number, percent, seconds

# The lines, as the runbook of the incident draws them, in which a fleet was down for 47 minutes after its
# KV caches thrashed: under 80 % usage look at compute or network, over 90 % it is memory; anything swapped
# breaks the invariant; at 2 s a token clients time out and come again. Whether an engine thrashes is for
# the sidecar to say: its bounds stand there alone.
USAGE_IS_MEMORY = 0.90
USAGE_IS_NOT_MEMORY = 0.80
SWAPPED_ALLOWED = 0
TOKEN_INTERVAL_SECONDS = 2.0
DEMAND_FITS = 1.0


@dataclass(frozen=True, slots=True)
class Event:
    """A line that was crossed, ``at`` seconds into the demo, in plain words."""

    at: float
    key: str
    text: str
    is_good: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """Something worth a word the first time it is so: ``say`` gives the word, or None while it isn't."""

    key: str
    say: Callable[[Reading], str | None]
    after: str = ""
    """The key of the line that must have been crossed before."""
    is_good: bool = False


def _demand(reading: Reading) -> str | None:
    demand = reading.get("kv_demand_ratio")
    if demand is None or demand <= DEMAND_FITS:
        return None
    usage = reading.get("kv_usage_ratio") or 0.0
    still = "still " if usage <= USAGE_IS_MEMORY else ""
    return f"asked for {demand:.1f} x the KV pool, with usage {still}at {percent(usage)}"


def _memory(reading: Reading) -> str | None:
    usage, waiting = reading.get("kv_usage_ratio"), reading.get("sequences", state="waiting")
    if usage is None or not waiting or usage <= USAGE_IS_MEMORY:
        return None
    return (
        f"KV usage {percent(usage)}, {number(waiting)} waiting: memory, not compute. Shed load at the gateway"
    )


def _invariant(reading: Reading) -> str | None:
    swapped = reading.get("swapped_sequences")
    if swapped is None or swapped <= SWAPPED_ALLOWED:
        return None
    return f"{number(swapped)} swapped out: zero-swap invariant broken. Find out why swap is on"


def _preempted(reading: Reading) -> str | None:
    total = reading.get("preemptions_total")
    return f"preemptions begin: {number(total)} so far" if total else None


def _thrashing(reading: Reading) -> str | None:
    if not reading.get("thrashing"):
        return None
    each = reading.get("tokens_per_preemption")
    return "thrashing" + (f": {number(each)} tokens for each preemption" if each is not None else "")


def _full(reading: Reading) -> str | None:
    each = reading.get("tokens_per_preemption")
    if each is None or reading.get("thrashing") != 0:  # absent is not known yet
        return None
    return f"{number(each)} tokens per preemption: full, but not thrashing"


def _slow(reading: Reading) -> str | None:
    gap = reading.get("token_interval_seconds")
    if gap is None or gap <= TOKEN_INTERVAL_SECONDS:
        return None
    return f"{seconds(gap)} between tokens: clients time out and come again"


def _first_token(reading: Reading) -> str | None:
    first = reading.get("ttft_p99_seconds")
    return f"1 request in 100 waits over {seconds(first)} for its first token" if first is not None else None


def _relieved(reading: Reading) -> str | None:
    usage, waiting = reading.get("kv_usage_ratio"), reading.get("sequences", state="waiting")
    if usage is None or waiting is None or waiting > 0 or usage >= USAGE_IS_NOT_MEMORY:
        return None
    return f"KV usage {percent(usage)} and nothing waits: the pressure is off"


def _left(reading: Reading) -> str | None:
    left = reading.get("client_aborts_total")
    return f"{number(left)} clients had left before their answer was done; vLLM counts none" if left else None


LINES: tuple[Line, ...] = (
    Line("demand", _demand),
    Line("memory", _memory),
    Line("swap", _invariant),
    Line("preemptions", _preempted),
    Line("thrashing", _thrashing),
    Line("full", _full),
    Line("token interval", _slow),
    Line("first token", _first_token, after="memory"),
    Line("relieved", _relieved, after="memory", is_good=True),
    # V0 leaves a preempted request and an abandoned one indistinguishable until the queue is empty
    Line("clients", _left, after="relieved"),
)


def new_events(before: tuple[Event, ...], elapsed: float, reading: Reading) -> tuple[Event, ...]:
    """The lines that ``reading`` crosses for the first time, given the events ``before``."""
    said = {event.key for event in before}
    found = []
    for line in LINES:
        if line.key in said or (line.after and line.after not in said):
            continue
        text = line.say(reading)
        if text is not None:
            found.append(Event(elapsed, line.key, text, line.is_good))
    return tuple(found)
