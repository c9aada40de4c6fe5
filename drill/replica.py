"""One engine of a fleet over its lives: it serves, drains, stands still, dies, and is started again."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from drill.activity import ActivityMeter
from drill.second import EngineSecond, EngineState, Truth
from drill.serving.config import EngineConfig
from drill.serving.engine import Engine
from drill.serving.request import Record, Request
from drill.serving.step_result import StepResult
from drill.serving.step_time import StepTimer
from drill.troubles import Troubles
from drill.truth import held_blocks, tail_waste_tokens

_REPEAT_SECONDS = 30.0


class Replica:
    """The engine called ``name``, serving from the beginning. ``timer`` replaces the roofline in all its lives."""

    def __init__(self, name: str, config: EngineConfig, timer: StepTimer | None = None) -> None:
        self.name = name
        self.config = config
        self.troubles = Troubles()
        self.orphans: set[int] = set()
        """Requests in the engine whose client is gone, and those that ended in this second."""
        self.draining = False
        self.gpus_lost: tuple[int, ...] = ()
        self._timer = timer
        self._engine: Engine | None = None
        self._killed = False
        self._frozen_since: float | None = None
        self.life = -1
        self._started = 0.0
        self._received = self._leaked = 0
        self._results: list[StepResult] = []
        self._meter = ActivityMeter()
        self.start(0.0)

    @property
    def state(self) -> EngineState:
        """How it is now."""
        if self._killed or (self._engine is not None and self._engine.dead is not None):
            return EngineState.DEAD
        if self._engine is None:
            return EngineState.STARTING
        if self._frozen_since is not None:
            return EngineState.FROZEN
        return EngineState.DRAINING if self.draining else EngineState.SERVING

    @property
    def listens(self) -> bool:
        """Whether there is an engine that takes requests."""
        return self.state not in (EngineState.DEAD, EngineState.STARTING)

    @property
    def in_rotation(self) -> bool:
        """Whether requests are to be sent to it: nobody tells a frozen one from others."""
        return self.listens and not self.draining

    @property
    def held_blocks(self) -> int:
        """Blocks that are in use, as of its last iteration."""
        return 0 if self._engine is None else self._engine.gauges().used_blocks

    @property
    def empty(self) -> bool:
        """Whether no request is in it."""
        return self._engine is None or self._engine.queued() == (0, 0)

    def start(self, now: float, config: EngineConfig | None = None) -> None:
        """An engine begins its life, with another configuration if one is given."""
        self.stop()
        self._killed = False
        self.config = self.config if config is None else config
        self.life += 1
        self._started = now
        self._engine = Engine(
            self.config, self.troubles.timer(self.config) if self._timer is None else self._timer
        )
        self._engine.now = now
        self.apply_troubles(now)

    def stop(self) -> None:
        """Its process ends, with all that is in it; it is not there until it starts."""
        self._engine, self._frozen_since, self.draining = None, None, False
        self._leaked = 0
        self.orphans.clear()
        self._meter.drop()

    def kill(self) -> None:
        """Its process dies."""
        self.stop()
        self._killed = True

    def apply_troubles(self, now: float) -> None:
        """``troubles`` or the GPU changed: they hold from the next iteration on. ``advance`` up to now comes first."""
        self._meter.foreign(self.troubles.foreign_bytes_per_second, now)
        engine = self._engine
        if engine is None:
            return
        if self._timer is None:
            engine.timer = self.troubles.timer(self.config)
        if engine.tier is not None:
            rate = self.troubles.offload_bytes_per_second(self.config)
            engine.tier.block_seconds = self.config.block_bytes_gpu / rate

    def advance(self, now: float, horizon: float) -> Iterator[StepResult]:
        """What ended by ``now``; what begins then may go on up to ``horizon``, should nothing be submitted before."""
        engine = self._engine
        while engine is not None and self._frozen_since is None:
            if horizon > now and engine.look(horizon) > now:
                return
            result = engine.step(now)
            if result is None:
                return
            self._results.append(result)
            self._meter.landed(result)
            yield result

    def look(self, until: float) -> float:
        """When the next result comes if nothing is submitted or aborted before; infinite: none by ``until``."""
        if self._engine is None or self._frozen_since is not None:
            return math.inf
        return self._engine.look(until)

    def takes(self, prompt_tokens: int, output_tokens: int) -> bool:
        """Whether such a request isn't too long for the engine."""
        return prompt_tokens + output_tokens <= self.config.max_model_tokens

    def submit(self, request: Request) -> None:
        """A request reaches the engine. ``advance`` up to now comes first where ``arrivals_matter``."""
        if self._engine is None:
            raise ValueError(f"{self.name} has no engine now: see listens")
        self._engine.submit(request)
        self._received += 1

    def arrivals_matter(self) -> bool:
        """Whether a request that comes now may change what the engine does next."""
        return self._engine is not None and self._engine.scheduler.arrivals_matter()

    def abort(self, request: int, now: float) -> None:
        """The engine is told that a client left. ``advance`` up to now comes first."""
        if self._engine is not None:
            self._engine.abort(request, now)

    def last_token_seconds(self, request: int) -> float | None:
        """When a request that is in the engine got its last token. ``advance`` up to now comes first."""
        sequence = None if self._engine is None else self._engine.sequences().get(request)
        return None if sequence is None else sequence.last_token

    def freeze(self, now: float) -> None:
        """It stands still from now on. ``advance`` up to now comes first."""
        if self._engine is not None and self._frozen_since is None:
            self._frozen_since = now

    def thaw(self, now: float, life: int) -> None:
        """It goes on where it stood still, if that life of it still lasts."""
        if self._engine is not None and self._frozen_since is not None and self.life == life:
            self._engine.stand_still(self._frozen_since, now)
            self._frozen_since = None

    def leak(self, blocks: int) -> int:
        """So many blocks are lost, or as many as are free: how many. ``advance`` up to now comes first."""
        if self._engine is None:
            return 0
        lost = min(blocks, self._engine.memory.pool.free)
        self._engine.leak(lost)
        self._leaked += lost
        return lost

    def lose_gpu(self, index: int) -> None:
        """A GPU falls off the bus: the engine dies of it, and can't be started while it is gone."""
        self.kill()
        self.gpus_lost = tuple(sorted({*self.gpus_lost, index}))

    def narrow_link(self, lanes: int, now: float) -> None:
        """Its GPUs' PCIe links run with so many lanes. ``advance`` up to now comes first."""
        self.config = replace(self.config, gpu=replace(self.config.gpu, pcie_width=lanes))
        self.apply_troubles(now)

    def close_second(self, now: float) -> EngineSecond:
        """The second that ends now. ``advance`` up to now comes first."""
        engine = self._engine if self.listens else None
        flight = None if engine is None or self._frozen_since is not None else engine.under_way
        second = EngineSecond(
            self.name,
            self.state,
            self.life,
            self._started,
            self.config,
            tuple(self._results),
            self._received,
            None if engine is None else engine.gauges(),
            self._meter.close(flight, self.config.gpu.memory_bytes_per_second, now),
            self._truth(engine),
            self.gpus_lost,
        )
        self._results = []
        self._received = 0
        return second

    def _truth(self, engine: Engine | None) -> Truth:
        results = self._results
        self.orphans = {each for each in self.orphans if engine is not None and engine.has(each)}
        return Truth(
            tail_waste_tokens=0 if engine is None else tail_waste_tokens(engine),
            orphans=len(self.orphans),
            orphan_blocks=0 if engine is None else held_blocks(engine, self.orphans),
            leaked_blocks=self._leaked,
            preemptions=sum(len(each.preempted) for each in results),
            repeat_preemptions_30s=sum(_again(record) for each in results for record, _ in each.preempted),
            recomputed_tokens=sum(each.recomputed_tokens for each in results),
            swap_in_bytes=sum(each.swap_in_bytes for each in results),
            swap_out_bytes=sum(each.swap_out_bytes for each in results),
            copy_seconds=sum(each.copy_seconds for each in results),
            tier_load_bytes=sum(each.tier_load_bytes for each in results),
            tier_store_bytes=sum(each.tier_store_bytes for each in results),
        )


def _again(record: Record) -> bool:
    """Whether its last preemption came within 30 s of the one before."""
    times = [time for time, _ in record.preemptions[-2:]]
    return len(times) == 2 and times[1] - times[0] <= _REPEAT_SECONDS  # noqa: PLR2004 -- the last and the one before
