"""Engines, the gateway before them and the clients before it, advanced together in simulated time. See docs/drill.md.

    fleet = Fleet({"engine-0": EngineConfig(...)}, arrivals, seed=1)
    for second in fleet.run(60):
        ...

Each engine runs until something reaches it, and nothing is looked at before its time: the same fleet gives the
same seconds, bit for bit.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Protocol

from drill.clients import Attempt, AttemptEnd, AttemptOutcome, ClientConfig, Clients, Patience, Wish
from drill.gateway import Gateway
from drill.gateway_config import GatewayConfig
from drill.gateway_counts import Reject, UpstreamEnd
from drill.replica import Replica
from drill.rollout import Rollout
from drill.second import Second
from drill.serving.config import EngineConfig
from drill.serving.request import Outcome, Request
from drill.serving.step_result import StepResult
from drill.serving.step_time import StepTimer
from drill.workload.arrivals import Arrival


class Action(Protocol):
    """Something that is done to a fleet: see drill/actions.py. Its ``str`` says what, in words."""

    def apply(self, fleet: Fleet) -> None:
        """Do it, now."""


class Fleet:
    """Engines by name, all serving at 0. ``arrivals`` in the order of time.

    ``plan``: actions and when they are done. ``start_seconds``: how long an engine takes to start.
    ``restarts``: an engine that died by itself is started again. ``timer``: replaces the roofline, of all engines.
    Raises ValueError: no engine.
    """

    def __init__(  # noqa: PLR0913 -- a fleet is made of so much, each by name
        self,
        engines: Mapping[str, EngineConfig],
        arrivals: Iterable[Arrival],
        *,
        gateway: GatewayConfig | None = None,
        clients: ClientConfig | None = None,
        plan: Iterable[tuple[float, Action]] = (),
        seed: int = 0,
        start_seconds: float = 120.0,
        restarts: bool = True,
        timer: StepTimer | None = None,
    ) -> None:
        if not engines:
            raise ValueError("a fleet needs an engine at least")
        self.now = 0.0
        self.restarts = restarts
        self.rollout = Rollout(self, start_seconds)
        self.replicas = [Replica(name, config, timer) for name, config in engines.items()]
        self.gateway = Gateway(gateway or GatewayConfig(), len(self.replicas))
        self.clients = Clients(clients or ClientConfig(), seed)
        self._arrivals = iter(arrivals)
        self._coming = next(self._arrivals, None)
        self._in_flight: dict[int, Attempt] = {}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = 0
        self._results_due = [math.inf] * len(self.replicas)
        self._horizon = 0.0
        self._ended: list[AttemptEnd] = []
        self._done: list[str] = []
        for seconds, action in plan:
            self.at(seconds, partial(self.act, action))
        self.tell_gateway()

    def run(self, seconds: int) -> Iterator[Second]:
        """The next so many seconds, one by one."""
        for _ in range(seconds):
            end = math.floor(self._horizon) + 1.0
            self._run_until(end)
            yield self._close_second(end)

    def at(self, seconds: float, call: Callable[[], None]) -> None:
        """Call something then, after what came to be due at the same time before."""
        heapq.heappush(self._events, (max(seconds, self.now), self._order, call))
        self._order += 1

    def act(self, action: Action) -> None:
        """Do something to it now, and say so in this second."""
        action.apply(self)
        self._done.append(str(action))

    def index(self, name: str) -> int:
        """Of an engine by its name. Raises ValueError."""
        for index, replica in enumerate(self.replicas):
            if replica.name == name:
                return index
        known = ", ".join(replica.name for replica in self.replicas)
        raise ValueError(f"no engine {name!r} in the fleet: there are {known}")

    def change(self, index: int, call: Callable[[Replica], object]) -> None:
        """Do something to an engine, now, and see what it does then. Requests that it loses by it fail."""
        self._advance(index)
        call(self.replicas[index])
        self.settle(index)

    def settle(self, index: int) -> None:
        """An engine was started, stopped or changed: requests that it lost fail, and it goes on from here."""
        if not self.replicas[index].listens:
            for attempt in [each for each in self._in_flight.values() if each.engine == index]:
                self._leave(attempt, UpstreamEnd.RESET, AttemptOutcome.FAILED)
        self._look(index)

    def tell_gateway(self) -> None:
        """It learns how the engines are."""
        for index, replica in enumerate(self.replicas):
            self.gateway.see(
                index,
                serves=replica.in_rotation,
                block_tokens=replica.config.block_tokens,
                usable_blocks=replica.config.usable_blocks,
                held_blocks=replica.held_blocks,
            )

    def _run_until(self, end: float) -> None:
        self._horizon = end
        due = self._results_due
        for index in range(len(due)):
            self._look(index)
        while True:
            result_at = min(due)
            event_at = self._events[0][0] if self._events else math.inf
            arrival_at = self._coming.seconds if self._coming is not None else math.inf
            now = min(result_at, event_at, arrival_at)
            if now > end:
                break
            self.now = max(self.now, now)
            if result_at == now:
                self._advance(due.index(now), end)
            elif event_at == now:
                heapq.heappop(self._events)[2]()
            else:
                self._arrive()
        self.now = end
        for index in range(len(due)):
            self._advance(index)

    def _close_second(self, end: float) -> Second:
        second = Second(
            end,
            tuple(replica.close_second(end) for replica in self.replicas),
            self.gateway.totals(),
            self.gateway.gauges(end),
            self.clients.totals(),
            tuple(self._ended),
            tuple(self._done),
        )
        self._ended, self._done = [], []
        self.tell_gateway()
        return second

    def _arrive(self) -> None:
        arrival = self._coming
        if arrival is None:
            return
        self._coming = next(self._arrivals, None)
        if self._coming is not None and self._coming.seconds < arrival.seconds:
            raise ValueError(
                f"a request that arrives at {self._coming.seconds} s comes after one at {arrival.seconds} s: sort them"
            )
        self._send(self.clients.arrive(arrival))

    def _send(self, wish: Wish) -> None:
        attempt = self.clients.send(wish, self.now)
        waits = self.gateway.come(attempt.attempt_id, self.now)
        if waits:
            self.at(self.now + waits, partial(self._offer, attempt))
        else:
            self._offer(attempt)

    def _offer(self, attempt: Attempt) -> None:
        wish = attempt.wish
        chosen = self.gateway.offer(attempt.attempt_id, wish.content, self.now)
        if isinstance(chosen, Reject):
            self._end(attempt, AttemptOutcome.REJECTED)
            return
        attempt.engine = chosen
        self._in_flight[attempt.attempt_id] = attempt
        replica = self.replicas[chosen]
        if not replica.listens:
            self._leave(attempt, UpstreamEnd.NO_CONNECTION, AttemptOutcome.FAILED)
            return
        if not replica.takes(attempt.prompt_tokens, wish.output_tokens):
            self._leave(attempt, UpstreamEnd.REFUSED, AttemptOutcome.REFUSED)
            return
        matters = replica.arrivals_matter()
        if matters:
            self._advance(chosen)
        replica.submit(
            Request(
                attempt.attempt_id,
                self.now,
                attempt.prompt_tokens,
                wish.output_tokens,
                wish.content,
                wish.answer,
                client=wish.client,
                tenant=wish.tenant,
            )
        )
        if matters:
            self._look(chosen)
        patience = self.clients.config.timeout_seconds
        if patience is not None:
            due = attempt.started_seconds + patience
            self.at(due, lambda: self._run_out_of_patience(attempt, patience))
        limit = self.gateway.config.timeout_seconds
        if limit is not None:
            self.at(self.now + limit, lambda: self._give_up(attempt))

    def _run_out_of_patience(self, attempt: Attempt, patience: float) -> None:
        if attempt.attempt_id not in self._in_flight or attempt.engine is None:
            return
        waits_for = self.clients.config.patience
        if waits_for is Patience.FIRST_TOKEN and attempt.first_token_seconds is not None:
            return
        if waits_for is Patience.SILENCE:
            self._advance(attempt.engine)
            self._look(attempt.engine)
            last = self.replicas[attempt.engine].last_token_seconds(attempt.attempt_id)
            if last is not None and last + patience > self.now:
                self.at(last + patience, lambda: self._run_out_of_patience(attempt, patience))
                return
        self._abandon(attempt, UpstreamEnd.CLIENT_LEFT, AttemptOutcome.TIMED_OUT)

    def _give_up(self, attempt: Attempt) -> None:
        if attempt.attempt_id in self._in_flight:
            self._abandon(attempt, UpstreamEnd.TIMED_OUT, AttemptOutcome.FAILED)

    def _abandon(self, attempt: Attempt, how: UpstreamEnd, outcome: AttemptOutcome) -> None:
        """Nobody waits for the answer any more; the engine learns of it where the gateway tells it."""
        index = attempt.engine
        if index is not None:
            replica = self.replicas[index]
            replica.orphans.add(attempt.attempt_id)
            if self.gateway.config.passes_disconnects:
                self._abort(index, attempt.attempt_id)
            elif self.gateway.config.orphan_seconds is not None:
                due = self.now + self.gateway.config.orphan_seconds
                self.at(due, lambda: self._collect(index, attempt.attempt_id))
        self._leave(attempt, how, outcome)

    def _collect(self, index: int, attempt_id: int) -> None:
        """Nobody has waited for it for long: the connection to the engine ends."""
        if attempt_id in self.replicas[index].orphans:
            self._abort(index, attempt_id)

    def _abort(self, index: int, attempt_id: int) -> None:
        self._advance(index)
        self.replicas[index].abort(attempt_id, self.now)
        self._look(index)

    def _leave(self, attempt: Attempt, how: UpstreamEnd, outcome: AttemptOutcome) -> None:
        del self._in_flight[attempt.attempt_id]
        self.gateway.end(attempt.attempt_id, how, self.now)
        self._end(attempt, outcome)

    def _end(self, attempt: Attempt, outcome: AttemptOutcome) -> None:
        ended, due, wish = self.clients.end(attempt, self.now, outcome)
        self._ended.append(ended)
        if wish is not None:
            self.at(due, lambda: self._send(wish))

    def _advance(self, index: int, horizon: float | None = None) -> None:
        """Take in what an engine's iterations that ended by now came to.

        With a horizon it then goes on up to there; without one, no further than the iteration under way, as something
        is to reach it.
        """
        replica = self.replicas[index]
        for result in replica.advance(self.now, self.now if horizon is None else horizon):
            self._land(result)
            if result.died is not None:
                self.settle(index)
                if self.restarts:
                    self.rollout.start_later(index)
        self.rollout.stop_if_drained(index)
        if horizon is not None:
            self._look(index)

    def _land(self, result: StepResult) -> None:
        for record in result.first_tokens:
            attempt = self._in_flight.get(record.request.request_id)
            if attempt is not None:
                attempt.first_token_seconds = record.first_token_seconds
        for record in result.finished:
            attempt = self._in_flight.get(record.request.request_id)
            if attempt is not None and record.outcome in (Outcome.LENGTH, Outcome.IGNORED):
                self._leave(attempt, UpstreamEnd.COMPLETED, AttemptOutcome.ANSWERED)

    def _look(self, index: int) -> None:
        self._results_due[index] = self.replicas[index].look(self._horizon)
