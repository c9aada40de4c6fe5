"""What clients ask of an engine, and what became of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from drill.serving.content import Segment


class Outcome(StrEnum):
    """How a request ended."""

    LENGTH = "length"
    """All tokens it asked for."""
    ABORT = "abort"
    """Its client left."""
    IGNORED = "ignored"
    """V0 gives up what can never fit, mostly before its first token; it counts it as ``length``."""
    LOST = "lost"
    """The engine died under it."""


class PreemptionMode(StrEnum):
    """What becomes of the blocks of a preempted sequence."""

    RECOMPUTE = "recompute"
    SWAP = "swap"


@dataclass(frozen=True, slots=True)
class Request:
    """One request. Times are seconds on the drill's clock.

    ``content`` tells what the prompt consists of (its tokens add up to ``prompt_tokens``); empty: like no
    other. ``answer`` is the content id of what is generated, for prompts to come that quote it; None:
    nobody will. ``sequences`` is n of the API where the engine keeps the n in one group (V0);
    ``output_tokens`` is asked of each. ``priority``: lower goes first where the engine's policy is priority.
    """

    request_id: int
    arrival_seconds: float
    prompt_tokens: int
    output_tokens: int
    content: tuple[Segment, ...] = ()
    answer: int | None = None
    abort_seconds: float | None = None
    client: str = ""
    tenant: str = ""
    sequences: int = 1
    priority: int = 0

    def __post_init__(self) -> None:
        if self.prompt_tokens < 1 or self.output_tokens < 1 or self.sequences < 1:
            raise ValueError(
                f"request {self.request_id}: prompt, output and sequences must be at least 1, not "
                f"{self.prompt_tokens}, {self.output_tokens} and {self.sequences}"
            )
        if not 0 <= self.arrival_seconds < math.inf:
            raise ValueError(
                f"request {self.request_id}: arrives at {self.arrival_seconds} s, which is no time of the drill"
            )
        if self.abort_seconds is not None and math.isnan(self.abort_seconds):
            raise ValueError(
                f"request {self.request_id}: its client leaves at {self.abort_seconds} s, which is no time"
            )
        told = sum(segment.tokens for segment in self.content)
        if self.content and (told != self.prompt_tokens or any(part.tokens < 1 for part in self.content)):
            raise ValueError(
                f"request {self.request_id}: its content has {told} tokens, its prompt {self.prompt_tokens}"
            )


@dataclass(slots=True)
class Record:
    """What happened to one request so far; None: not yet. Times are ends or starts of iterations."""

    request: Request
    queued_seconds: float
    scheduled_seconds: float | None = None
    first_token_seconds: float | None = None
    last_token_seconds: float | None = None
    finished_seconds: float | None = None
    outcome: Outcome | None = None
    generated_tokens: int = 0
    """Of each of its sequences; told when it ends, as is ``last_token_seconds``."""
    cached_tokens: int = 0
    """Prompt tokens that the prefix cache or the tier below had when it was first scheduled."""
    cached_below_tokens: int = 0
    """Those of them that came from the tier below."""
    computed_tokens: int = 0
    """Prompt and recomputed tokens that were computed for it."""
    recomputed_tokens: int = 0
    """Those of them that had been computed before."""
    preemptions: list[tuple[float, PreemptionMode]] = field(default_factory=list)

    @property
    def time_per_output_token_seconds(self) -> float | None:
        """Mean gap between its tokens; None with fewer than two."""
        first, last, gaps = self.first_token_seconds, self.last_token_seconds, self.generated_tokens - 1
        if first is None or last is None or gaps < 1:
            return None
        return (last - first) / gaps
