"""What happened, in numbers, and whether the sidecar saw what the recording holds."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from drill.recording import KV_BYTES_PER_TOKEN, Scrape, number
from drill.sidecar import Cost, Reading
from drill.story import PLAIN_TOKENS_PER_PREEMPTION, THRASH_TOKENS_PER_PREEMPTION, Event
from drill.words import minute, percent, seconds, size

INCIDENT_KV_BYTES_PER_TOKEN = 2 * 80 * 8 * 128 * 2
"""K and V x 80 layers x 8 KV heads x 128 values x 2 bytes: the model of the incident."""

_ON_ITS_WAY_SECONDS = 3.0
"""What the engine said last is not expected of the sidecar: read, cycle and scrape take up to a second each."""

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
    sentences = [_pool(run), _lead(run), _preempted(run), _swap(run), _clients(run), _sidecar(run)]
    points = (
        textwrap.fill(text, min(width, 100), initial_indent="  * ", subsequent_indent="    ")
        for text in sentences
        if text
    )
    return "\n".join(["WHAT HAPPENED", *points])


def _pool(run: Run) -> str:
    now = "is back" if run.when("relieved") is not None else "stands"
    return (
        f"KV usage peaked at {percent(run.peak(usage))} with up to {run.peak(waiting):.0f} sequences waiting,"
        f" and {now} at {percent(run.last('kv_usage_ratio') or 0.0)}."
    )


def _lead(run: Run) -> str:
    asked, full = run.when("demand"), run.when("memory")
    if asked is None or full is None:
        return ""
    lead = f", {full - asked:.0f} s before usage showed it" if full - asked >= 1 else ""
    return f"More KV was asked for than there is from {minute(asked)} on{lead} (kv_demand_ratio)."


def _preempted(run: Run) -> str:
    total = run.peak(preemptions)
    if not total:
        return ""
    text = f"{total:.0f} preemption{'' if total == 1 else 's'}."
    each = run.last("tokens_per_preemption")
    if each is not None:
        thrash = each < PLAIN_TOKENS_PER_PREEMPTION
        word = "near or in thrash" if thrash else "a full pool, not yet thrash"
        text += (
            f" {each:.0f} tokens were generated for each: {word}"
            f" (below {THRASH_TOKENS_PER_PREEMPTION}; in the incident it was about 2)."
        )
    wasted = run.peak(lambda reading: reading.get("wasted_work_ratio"))
    return text + (f" Up to {percent(wasted)} of the work was done again (estimate)." if wasted else "")


def _swap(run: Run) -> str:
    times = sum(1 for _, reading in run.history if swapped(reading))
    moved = run.last("swap_bytes_estimate_total")
    if not times or moved is None:
        return ""
    scaled = moved * INCIDENT_KV_BYTES_PER_TOKEN / KV_BYTES_PER_TOKEN
    return (
        f"Zero-swap invariant broken: sequences were swapped out in {times} of {len(run.history)} readings,"
        f" about {size(moved)} in all and the same back (estimate). This model is tiny; on the incident's"
        f" model, at {INCIDENT_KV_BYTES_PER_TOKEN // 1024} KiB a token, it is {size(scaled)} each way."
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
