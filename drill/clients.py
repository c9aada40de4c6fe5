"""Clients: they wait so long, come again so often with the whole prompt, and hold sessions. They know what they got.

State and rules only: when an attempt is sent and when it ends is told from outside, as is the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from drill.serving.content import Segment
from drill.workload.arrivals import Arrival, Turn
from drill.workload.contents import content_id


class Patience(StrEnum):
    """What a client's timeout waits for."""

    ANSWER = "answer"
    """All of it."""
    FIRST_TOKEN = "first token"  # noqa: S105 -- of an answer
    SILENCE = "silence"
    """Any further token, as a read timeout of a stream does."""


class AttemptOutcome(StrEnum):
    """How one attempt ended, for its client."""

    ANSWERED = "answered"
    TIMED_OUT = "timed out"
    """The client left."""
    REJECTED = "rejected"
    """By the gateway: too many, no room."""
    FAILED = "failed"
    """An engine died or couldn't be reached, or the gateway's patience ended."""
    REFUSED = "refused"
    """The engine never takes such a prompt; nobody tries again."""


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """How clients behave. ``timeout_seconds``: None waits for ever. ``retries``: attempts after the first one.

    The n-th retry comes ``backoff_seconds`` x ``backoff_factor`` ** (n - 1) after the attempt before it ended, at most
    ``backoff_limit_seconds``, longer or shorter by up to ``jitter_ratio`` of it. ``persistent``: a session goes on with
    its next turn when it gave one up; else it ends.
    """

    timeout_seconds: float | None = 30.0
    patience: Patience = Patience.ANSWER
    retries: int = 3
    backoff_seconds: float = 1.0
    backoff_factor: float = 2.0
    backoff_limit_seconds: float = 30.0
    jitter_ratio: float = 0.5
    persistent: bool = True

    def __post_init__(self) -> None:
        if self.timeout_seconds is not None and not self.timeout_seconds > 0:
            raise ValueError(
                f"timeout_seconds is {self.timeout_seconds}: it must be above 0, or None for no timeout"
            )
        if self.retries < 0 or self.backoff_seconds < 0 or self.backoff_factor < 1:
            raise ValueError(
                f"retries {self.retries}, backoff_seconds {self.backoff_seconds} and backoff_factor "
                f"{self.backoff_factor}: they must be at least 0, 0 and 1"
            )
        if not 0 <= self.jitter_ratio <= 1:
            raise ValueError(f"jitter_ratio is {self.jitter_ratio}: it must be between 0 and 1")


@dataclass(slots=True)
class Wish:
    """What a user wants answered: a request of a stream, or a turn of its session; ``tries`` so far."""

    number: int
    content: tuple[Segment, ...]
    output_tokens: int
    tenant: str
    client: str
    answer: int | None
    turns: Sequence[Turn]
    leaves_seconds: float
    turn: int = 0
    tries: int = 0


@dataclass(slots=True)
class Attempt:
    """A wish, sent. ``attempt_id`` is the engine's request id; ``engine``: where the gateway sent it, by index."""

    attempt_id: int
    wish: Wish
    number: int
    """Of the wish's attempts, from 1."""
    started_seconds: float
    prompt_tokens: int
    engine: int | None = None
    first_token_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """How an attempt ended. ``request`` is the wish's number, ``engine`` the index of the one it was sent to."""

    attempt_id: int
    request: int
    number: int
    tenant: str
    client: str
    engine: int | None
    started_seconds: float
    first_token_seconds: float | None
    ended_seconds: float
    outcome: AttemptOutcome
    prompt_tokens: int
    output_tokens: int
    """Asked for."""


@dataclass(frozen=True, slots=True)
class ClientTotals:
    """What clients know, since the beginning; ``in_flight`` and those after it are as of now.

    ``requests``: wishes, each counted once however often it was tried. ``waiting``: those between two attempts.
    ``thinking``: sessions between two turns.
    """

    requests: int = 0
    attempts: int = 0
    answered: int = 0
    timed_out: int = 0
    rejected: int = 0
    failed: int = 0
    refused: int = 0
    given_up: int = 0
    in_flight: int = 0
    waiting: int = 0
    thinking: int = 0

    @property
    def amplification_ratio(self) -> float | None:
        """Attempts over answers; None before the first answer."""
        return self.attempts / self.answered if self.answered else None


class Clients:
    """All clients of a fleet."""

    def __init__(self, config: ClientConfig, seed: int) -> None:
        self.config = config
        self._seed = seed
        self._chance = np.random.default_rng((seed, 1))
        self._wishes = self._requests = self._attempts = self._given_up = 0
        self._ends = dict.fromkeys(AttemptOutcome, 0)
        self._in_flight = self._waiting = self._thinking = 0

    def arrive(self, arrival: Arrival) -> Wish:
        """A user comes. The wish is to be sent at once."""
        wish = Wish(
            self._number(),
            arrival.content,
            arrival.output_tokens,
            arrival.tenant,
            arrival.client,
            arrival.answer,
            arrival.turns,
            arrival.leaves_seconds,
        )
        self._name_answer(wish)
        return wish

    def send(self, wish: Wish, now: float) -> Attempt:
        """Its next attempt, with the whole prompt."""
        if wish.tries:
            self._waiting -= 1
        else:
            self._requests += 1
            self._thinking -= wish.turn > 0
        wish.tries += 1
        self._attempts += 1
        self._in_flight += 1
        tokens = sum(segment.tokens for segment in wish.content)
        return Attempt(self._attempts, wish, wish.tries, now, tokens)

    def end(
        self, attempt: Attempt, now: float, outcome: AttemptOutcome
    ) -> tuple[AttemptEnd, float, Wish | None]:
        """An attempt ended: how, when the client's next one is due, and of what; None: it wants no more."""
        self._in_flight -= 1
        self._ends[outcome] += 1
        wish = attempt.wish
        ended = AttemptEnd(
            attempt.attempt_id,
            wish.number,
            attempt.number,
            wish.tenant,
            wish.client,
            attempt.engine,
            attempt.started_seconds,
            attempt.first_token_seconds,
            now,
            outcome,
            attempt.prompt_tokens,
            wish.output_tokens,
        )
        answered = outcome is AttemptOutcome.ANSWERED
        if not answered:
            if outcome is not AttemptOutcome.REFUSED and attempt.number <= self.config.retries:
                self._waiting += 1
                return ended, now + self._backoff(attempt.number), wish
            self._given_up += 1
        if wish.turn == len(wish.turns) or not (answered or self.config.persistent):
            return ended, now, None
        turn = wish.turns[wish.turn]
        if now + turn.think_seconds >= wish.leaves_seconds:
            return ended, now, None
        self._thinking += 1
        return ended, now + turn.think_seconds, self._next_turn(wish, turn, answered=answered)

    def totals(self) -> ClientTotals:
        """As of now."""
        ends = self._ends
        return ClientTotals(
            self._requests,
            self._attempts,
            ends[AttemptOutcome.ANSWERED],
            ends[AttemptOutcome.TIMED_OUT],
            ends[AttemptOutcome.REJECTED],
            ends[AttemptOutcome.FAILED],
            ends[AttemptOutcome.REFUSED],
            self._given_up,
            self._in_flight,
            self._waiting,
            self._thinking,
        )

    def _backoff(self, failed: int) -> float:
        config = self.config
        wait = min(
            config.backoff_seconds * config.backoff_factor ** (failed - 1), config.backoff_limit_seconds
        )
        return wait * (1.0 + config.jitter_ratio * float(self._chance.uniform(-1.0, 1.0)))

    def _next_turn(self, wish: Wish, turn: Turn, *, answered: bool) -> Wish:
        content = turn.content
        if turn.continues:
            said = wish.content
            if answered and wish.answer is not None:
                said += (Segment(wish.answer, wish.output_tokens),)
            content = said + content
        following = replace(
            wish,
            number=self._number(),
            content=content,
            output_tokens=turn.output_tokens,
            answer=None,
            turn=wish.turn + 1,
            tries=0,
        )
        self._name_answer(following)
        return following

    def _number(self) -> int:
        self._wishes += 1
        return self._wishes

    def _name_answer(self, wish: Wish) -> None:
        """The session's next turn will quote it: it needs an id."""
        if wish.answer is None and wish.turn < len(wish.turns) and wish.turns[wish.turn].continues:
            wish.answer = content_id(self._seed, wish.number)
