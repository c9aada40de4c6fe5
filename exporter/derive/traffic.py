"""What the engine is asked and what it does: sequences, requests, tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from exporter.derive.phenomenon import EngineFacts, Phenomenon, stateless
from exporter.sample import EngineSample, RankSample
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import Total, Window

RATE_SECONDS = 10.0

SEQUENCES = Signal(
    "sequences",
    Kind.GAUGE,
    Scope.RANK,
    "Sequences by state; a preempted one counts as waiting, as swapped where the engine swaps, or as paused where it "
    "says so (TensorRT-LLM).",
    Confidence.MEASURED,
    "the engine's gauges",
    ("running", "waiting", "swapped", "paused"),
    labels=("state",),
)
WAITING_BY_REASON = Signal(
    "waiting_by_reason",
    Kind.GAUGE,
    Scope.RANK,
    "Waiting sequences by what they wait for: capacity (KV blocks) or deferred (adapters, KV transfers).",
    Confidence.MEASURED,
    "the engine's gauges (vLLM from 0.20)",
    ("waiting_by_reason",),
    labels=("reason",),
)
REQUESTS = Signal(
    "requests_total",
    Kind.COUNTER,
    Scope.RANK,
    "Requests the engine counts as finished, by its reason. A client that leaves is not among them.",
    Confidence.MEASURED,
    "rises of the engine's counter, summed from 0",
    ("finished_total",),
    labels=("outcome",),
    source="vLLM issue 31503: client aborts are not counted",
    by_request=True,
)
PROMPT_TOKENS = Signal(
    "prompt_tokens_total",
    Kind.COUNTER,
    Scope.RANK,
    "Prompt tokens the engine took in, prefix hits included.",
    Confidence.MEASURED,
    "rises of the engine's counter, summed from 0",
    ("prompt_tokens_total",),
    by_request=True,
)
GENERATION_TOKENS = Signal(
    "generation_tokens_total",
    Kind.COUNTER,
    Scope.RANK,
    "Tokens generated, those of requests that were aborted later included. Some engines count a request's tokens only "
    "when it ends.",
    Confidence.MEASURED,
    "rises of the engine's counter, summed from 0",
    ("generation_tokens_total",),
)
PROMPT_RATE = Signal(
    "prompt_tokens_per_second",
    Kind.GAUGE,
    Scope.RANK,
    "Prompt tokens a second over the trailing 10 s; absent where the engine counts them only when a request ends.",
    Confidence.MEASURED,
    "rise over time",
    ("prompt_tokens_total",),
    window_seconds=RATE_SECONDS,
    by_request=True,
)
GENERATION_RATE = Signal(
    "generation_tokens_per_second",
    Kind.GAUGE,
    Scope.RANK,
    "Generated tokens a second over the trailing 10 s; absent where the engine counts them only when a request ends.",
    Confidence.MEASURED,
    "rise over time",
    ("generation_tokens_total",),
    window_seconds=RATE_SECONDS,
)
REJECTIONS = Signal(
    "admission_rejections_total",
    Kind.COUNTER,
    Scope.ENGINE,
    "Requests the engine refused because its queue was full, by the limit they met.",
    Confidence.MEASURED,
    "rises of the engine's counter (vLLM from 0.32), summed from 0",
    ("admission_rejections_total",),
    labels=("reason",),
)


def _gauges(window: Window[RankSample], _facts: EngineFacts) -> Iterator[Point]:
    now = window.newest
    for state in ("running", "waiting", "swapped", "paused"):
        count: float | None = getattr(now, state)
        if count is not None:
            yield Point(SEQUENCES, (state,), count)
    for reason, count in now.waiting_by_reason:
        yield Point(WAITING_BY_REASON, (reason,), count)
    prompt = window.delta(lambda sample: sample.prompt_tokens_so_far, RATE_SECONDS)
    if prompt is not None:
        yield Point(PROMPT_RATE, (), prompt.per_second)
    generated = window.delta(lambda sample: sample.tokens_so_far, RATE_SECONDS)
    if generated is not None:
        yield Point(GENERATION_RATE, (), generated.per_second)


@dataclass(frozen=True, slots=True)
class Totals:
    """Running totals by label value, and whether a sample came before."""

    by_label: Mapping[str, Total] = field(default_factory=dict)
    started: bool = False

    def fed(self, counts: tuple[tuple[str, float], ...], *, restarted: bool) -> Totals:
        """The totals after a new reading.

        A label that shows up while the engine runs counts from 0: engines create a label's series
        with its first observation.
        """
        totals = dict(self.by_label)
        for label, count in counts:
            total = totals.get(label) or Total(missed=self.started)
            totals[label] = total.fed(count, restarted=restarted)
        return Totals(totals, started=True)


@dataclass(frozen=True, slots=True)
class TrafficState:
    """The totals of one rank."""

    requests: Totals = Totals()
    prompt: Total = Total()
    generated: Total = Total()


def _totals(
    window: Window[RankSample], _facts: EngineFacts, state: TrafficState
) -> tuple[TrafficState, list[Point]]:
    now, restarted = window.newest, window.restarted()
    state = TrafficState(
        state.requests.fed(now.finished_total, restarted=restarted),
        state.prompt.fed(now.prompt_tokens_total, restarted=restarted),
        state.generated.fed(now.generation_tokens_total, restarted=restarted),
    )
    points = [Point(REQUESTS, (label,), total.value) for label, total in state.requests.by_label.items()]
    if state.prompt.known:
        points.append(Point(PROMPT_TOKENS, (), state.prompt.value))
    if state.generated.known:
        points.append(Point(GENERATION_TOKENS, (), state.generated.value))
    return state, points


def _rejections(
    window: Window[EngineSample], _facts: EngineFacts, state: Totals
) -> tuple[Totals, list[Point]]:
    state = state.fed(window.newest.admission_rejections_total, restarted=window.restarted())
    return state, [Point(REJECTIONS, (label,), total.value) for label, total in state.by_label.items()]


GAUGES = stateless("traffic", (SEQUENCES, WAITING_BY_REASON, PROMPT_RATE, GENERATION_RATE), _gauges)
TOTALS = Phenomenon("traffic_totals", (REQUESTS, PROMPT_TOKENS, GENERATION_TOKENS), _totals, TrafficState())
ADMISSION = Phenomenon("admission", (REJECTIONS,), _rejections, Totals())
