"""What happened, in numbers, and whether the sidecar saw what the recording holds."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from drill.recording import KV_BYTES_PER_TOKEN, Scrape, number
from drill.sidecar import Cost, Reading
from drill.story import Event
from drill.words import minute, percent, seconds, size

INCIDENT_KV_BYTES_PER_TOKEN = 2 * 80 * 8 * 128 * 2
"""K and V x 80 layers x 8 KV heads x 128 values x 2 bytes: the model of the incident."""

INCIDENT = "the incident (a fleet down for 47 minutes, its KV caches thrashing)"
"""What is meant by it, where it is spoken of first."""

_ON_ITS_WAY_SECONDS = 3.0
"""What the engine said last is not expected of the sidecar: read, cycle and scrape take up to a second each."""

SWAPPED_BYTES = "swap_bytes_estimate_total"
"""Exists once sequences were seen swapped: an engine that swaps computes nothing again."""

Value = Callable[[Reading], float | None]


def usage(reading: Reading) -> float | None:
    """KV usage, 0 to 1."""
    return reading.get("kv_usage_ratio")


def waiting(reading: Reading) -> float | None:
    """Sequences that wait."""
    return reading.get("sequences", state="waiting")


def swapped(reading: Reading) -> float | None:
    """Sequences swapped out."""
    return reading.get("swapped_sequences")


def preemptions(reading: Reading) -> float | None:
    """Preemptions so far."""
    return reading.get("preemptions_total")


def wasted(reading: Reading) -> float | None:
    """Share of the tokens that preemption had moved, where the engine swaps, or computed again."""
    return reading.get("wasted_work_ratio")


EXPECTED: tuple[tuple[str, str, Value], ...] = (
    ("KV usage", "vllm:gpu_cache_usage_perc", usage),
    ("waiting sequences", "vllm:num_requests_waiting", waiting),
    ("swapped sequences", "vllm:num_requests_swapped", swapped),
    ("preemptions", "vllm:num_preemptions_total", preemptions),
)
"""What must move in the sidecar where it moves on the engine's own page: words, page, sidecar."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run that came to its end.

    ``played`` is the part of the recording that was served, ``history`` (elapsed, reading) once a
    second; ``departures`` counts the clients whose own log says that they left in that time;
    ``reads`` how often the sidecar read the engine; ``cost`` what it took, start-up left out.
    """

    seconds: float
    played: Sequence[Scrape]
    history: Sequence[tuple[float, Reading]]
    events: Sequence[Event]
    departures: int
    reads: int
    cost: Cost | None

    def peak(self, value: Value) -> float:
        """The largest value seen, 0 where there was none."""
        return max((seen for _, reading in self.history if (seen := value(reading)) is not None), default=0.0)

    def last(self, name: str, **labels: str) -> float | None:
        """The value a signal had last, even where it has vanished since."""
        known = (reading.get(name, **labels) for _, reading in reversed(self.history))
        return next((value for value in known if value is not None), None)

    def when(self, key: str) -> float | None:
        """When the line called ``key`` was crossed."""
        return next((event.at for event in self.events if event.key == key), None)


def failures(run: Run) -> list[str]:
    """What the sidecar should have seen and did not, a sentence each; empty when all is well."""
    found = []
    if not run.history:
        return ["the sidecar was never read"]
    up = run.history[-1][1].get("source_up")
    if up != 1:
        found.append(f"the sidecar no longer reads the engine (source_up is {up})")
    if run.reads < run.seconds / 2:
        found.append(f"the sidecar read the engine only {run.reads} times in {run.seconds:.0f} s")
    until = run.played[-1].at - _ON_ITS_WAY_SECONDS
    pages = [scrape.body for scrape in run.played if scrape.at <= until]
    for words, name, value in EXPECTED:
        told = [told for page in pages if (told := number(page, name)) is not None]
        moves = bool(told) and max(told) > min(told)
        if moves and run.peak(value) <= 0:
            found.append(f"{words} moved on the engine's page ({name}), but not in the sidecar")
    return found


def report(run: Run, width: int) -> str:
    """What happened, as a short list of lines of at most ``width`` characters."""
    parts = (_pool, _lead, _preempted, _swap, _moved, _clients, _sidecar)
    sentences = "\n".join(text for part in parts if (text := part(run)))
    points = (
        textwrap.fill(text, min(width, 100), initial_indent="  * ", subsequent_indent="    ")
        # whoever reads of the incident for the first time wants to know which
        for text in sentences.replace("the incident", INCIDENT, 1).split("\n")
    )
    return "\n".join(["WHAT HAPPENED", *points])


def _pool(run: Run) -> str:
    now = "is back" if run.when("relieved") is not None else "stands"
    return (
        f"KV usage peaked at {percent(run.peak(usage))} with up to {run.peak(waiting):.0f} sequences waiting,"
        f" and {now} at {percent(run.last('kv_usage_ratio') or 0.0)}."
    )


def _lead(run: Run) -> str:
    asked = next((event for event in run.events if event.key == "demand"), None)
    full = run.when("memory")
    if asked is None or full is None:
        return ""
    lead = f"; {full - asked.at:.0f} s later usage showed it" if full - asked.at >= 1 else ""
    return f"At {minute(asked.at)} the engine was {asked.text} (kv_demand_ratio){lead}."


def _preempted(run: Run) -> str:
    total = run.peak(preemptions)
    if not total:
        return ""
    text = f"{total:.0f} preemption{'' if total == 1 else 's'}"
    each = run.last("tokens_per_preemption")
    if each is not None:
        text += f", {each:.0f} tokens for each{_thrash(run)}. In the incident about 2"
    text += "."
    again = run.peak(wasted)
    if again and run.last(SWAPPED_BYTES) is None:
        text += f" Up to {percent(again)} of the tokens worked on had been computed before (estimate)."
    return text


def _thrash(run: Run) -> str:
    """What the sidecar itself says of it, where it says anything."""
    if run.last("thrashing") is None:
        return ""
    thrashed = run.peak(lambda reading: reading.get("thrashing"))
    return ": it thrashed" if thrashed else ": full, but not thrashing"


def _swap(run: Run) -> str:
    times = sum(1 for _, reading in run.history if swapped(reading))
    if not times:
        return ""
    return (
        f"Zero-swap invariant broken: sequences were swapped out in {times} of {len(run.history)} readings."
        " Find out why swap is on; turning it off takes a drain and a restart."
    )


def _moved(run: Run) -> str:
    moved = run.last(SWAPPED_BYTES)
    if moved is None:
        return ""
    text = f"About {size(moved)} were swapped out and as much back in (estimate)"
    share = run.peak(wasted)
    if share:
        text += f": up to {percent(share)} of the tokens moved or generated, not of time"
    scaled = moved * INCIDENT_KV_BYTES_PER_TOKEN / KV_BYTES_PER_TOKEN
    return (
        f"{text}. This model is tiny; with the model of the incident, at"
        f" {INCIDENT_KV_BYTES_PER_TOKEN // 1024} KiB a token, it would be {size(scaled)} each way."
    )


def _clients(run: Run) -> str:
    left = run.last("client_aborts_total")
    if not left:
        return ""
    page = run.played[-1].body
    counted = number(page, "vllm:request_success_total", 'finished_reason="abort"') or 0.0
    text = (
        f"{left:.0f} client{'' if left == 1 else 's'} left early; vLLM itself counts {counted:.0f},"
        f" the clients' own log {run.departures}."
    )
    if run.history[-1][1].get("sequences", state="waiting"):
        text += " While requests wait, V0 shows only some of those that left."
    first = run.last("ttft_p99_seconds")
    return text + (f" First tokens took up to {seconds(first)} (p99 of the last minute)." if first else "")


def _sidecar(run: Run) -> str:
    text = f"The sidecar read the engine {run.reads} times in {run.seconds:.0f} s"
    if run.cost is None:
        return text + "."
    share = run.cost.cpu_seconds / run.seconds
    return f"{text}, with {share:.1%} of one core and at most {size(run.cost.peak_bytes)} of memory."


NEXT = """WHERE TO LOOK NEXT
  the same, with its landing page   .venv/bin/python -m drill.demo --keep
  your own engine                   .venv/bin/thrashold exporter \\
                                      --engine http://localhost:8000/metrics
                                    then open http://127.0.0.1:9807/
  what each signal means            docs/signals.md
  how to run it in earnest          README.md"""
