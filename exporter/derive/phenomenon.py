"""What a file of ``derive/`` hands to the cycle: its signals, its function and its first state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from exporter.signal import Point, Signal

Seen = TypeVar("Seen")
"""What is derived from: a window of samples, or several joined."""
State = TypeVar("State")

TIME_TO_FIRST_TOKEN_SLO_SECONDS = 2.0
"""What interactive users wait for a first token; the strictest of the field's usual 2 to 10 s."""
TIME_PER_OUTPUT_TOKEN_SLO_SECONDS = 0.2
"""Five tokens a second, about reading speed; the incident's healthy p99 was 0.18 s."""
LONG_PROMPT_TOKENS = 65_536
"""The quota of the incident's runbook: 64k tokens."""


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What settings know of an engine and no metric tells. ``None``: not told.

    ``kv_bytes_per_token`` is the whole model's, what GPUs keep copies of counted once;
    ``kv_bytes_per_token_gpu`` what one GPU keeps; ``gpus_per_replica`` is tensor parallel x pipeline
    parallel; ``block_group_tokens`` the block size of each KV group; ``gpus`` names the engine's GPUs by
    UUID, index or PCI bus id, None: all that this machine has.
    """

    kv_bytes_per_token: float | None = None
    kv_bytes_per_token_gpu: float | None = None
    gpus_per_replica: int | None = None
    block_group_tokens: tuple[float, ...] = ()
    time_to_first_token_slo_seconds: float = TIME_TO_FIRST_TOKEN_SLO_SECONDS
    time_per_output_token_slo_seconds: float = TIME_PER_OUTPUT_TOKEN_SLO_SECONDS
    long_prompt_tokens: float = LONG_PROMPT_TOKENS
    gpus: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Phenomenon(Generic[Seen, State]):
    """One phenomenon of a rank, an engine, a GPU, or of an engine on its GPUs.

    ``derive`` is pure; it is called once for each new sample, with the state of the call before
    (the first time with ``initial``). It raises nothing a caller should expect: an exception is a
    bug that costs this phenomenon's signals alone. Where nothing changed it may return the very
    points of the call before: then the cycle uses its values again.
    """

    name: str
    signals: tuple[Signal, ...]
    derive: Callable[[Seen, EngineFacts, State], tuple[State, Sequence[Point]]]
    initial: State


def stateless(
    name: str,
    signals: tuple[Signal, ...],
    derive: Callable[[Seen, EngineFacts], Iterable[Point]],
) -> Phenomenon[Seen, None]:
    """A phenomenon that needs nothing but the window."""

    def run(seen: Seen, facts: EngineFacts, state: None) -> tuple[None, list[Point]]:
        return state, list(derive(seen, facts))

    return Phenomenon(name, signals, run, None)


class Kept(NamedTuple, Generic[State]):
    """What was last derived from, the state after it, and what was told of it."""

    state: State
    looked_at: tuple[object, ...] | None = None
    told: Sequence[Point] = ()


def where_new(
    phenomenon: Phenomenon[Seen, State], looks_at: Callable[[Seen], tuple[object, ...] | None]
) -> Phenomenon[Seen, Kept[State]]:
    """The same phenomenon, derived only where what it ``looks_at`` has changed; always where that is None.

    Derived twice from the same it must tell the same, and its state must stand still; facts have to be fixed.
    """

    def derive(seen: Seen, facts: EngineFacts, kept: Kept[State]) -> tuple[Kept[State], Sequence[Point]]:
        now = looks_at(seen)
        if now is not None and now == kept.looked_at:
            return kept, kept.told
        state, told = phenomenon.derive(seen, facts, kept.state)
        return Kept(state, now, told), told

    return Phenomenon(phenomenon.name, phenomenon.signals, derive, Kept(phenomenon.initial))
