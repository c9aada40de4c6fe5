"""What an engine does to each of its GPUs, as it goes on: also within an iteration that outlasts the moment."""

from __future__ import annotations

from typing import NamedTuple

from drill.serving.config import EngineConfig
from drill.serving.engine import Engine
from drill.serving.step_result import StepResult


class Work(NamedTuple):
    """Of one GPU: payload over PCIe towards it and from it, NVLink in each direction, seconds.

    ``busy_seconds``: in which a kernel ran, all-reduces among them and host copies not; ``sm_seconds`` and
    ``memory_seconds``: what they are with all SMs, with all bandwidth in use.
    """

    in_bytes: float = 0.0
    out_bytes: float = 0.0
    nvlink_bytes: float = 0.0
    busy_seconds: float = 0.0
    sm_seconds: float = 0.0
    memory_seconds: float = 0.0

    def plus(self, other: Work, share: float = 1.0) -> Work:
        """With a share of another."""
        return Work(*(one + share * more for one, more in zip(self, other, strict=True)))


class WorkMeter:
    """Of one engine. ``see`` is to be told of every result; an iteration's work is spread evenly over it."""

    def __init__(self, config: EngineConfig) -> None:
        self._config = config
        self._ended = Work()
        self._told = Work()
        self._tier_told = (0.0, 0.0)

    def see(self, result: StepResult) -> None:
        """What the engine came to."""
        gpus = self._config.tensor_parallel
        sm_seconds = result.sm_busy_ratio * result.seconds
        self._ended = self._ended.plus(
            Work(
                # what the tier moves goes on between iterations: the tier itself is asked
                result.to_device_bytes - result.tier_load_bytes / gpus,
                result.to_host_bytes - result.tier_store_bytes / gpus,
                result.nvlink_bytes,
                sm_seconds + result.collective_seconds,
                sm_seconds,
                result.memory_busy_ratio * result.seconds,
            )
        )

    def since_last(self, engine: Engine, now: float) -> Work:
        """What was done since this was last asked; ``now`` on the drill's clock, ``engine`` as far as it has come."""
        work = self._so_far(engine, now)
        # what was under way may have been thrown away with its engine
        done = Work(*(max(0.0, rise) for rise in work.plus(self._told, -1.0)))
        self._told = work
        loaded, stored = self._tier_since(engine, now)
        return done.plus(Work(loaded, stored))

    def _so_far(self, engine: Engine, now: float) -> Work:
        """All that is done, and of what is under way the part that has passed."""
        flight = engine.under_way
        if flight is None or flight.ends <= flight.started:
            return self._ended
        into, out = flight.pcie_bytes
        seconds = flight.ends - flight.started
        sm_seconds = flight.sm_busy_ratio * seconds
        whole = Work(
            into,
            out,
            flight.nvlink_bytes,
            sm_seconds + flight.cost.collective_seconds * flight.iterations,
            sm_seconds,
            flight.memory_busy_ratio(self._config.gpu.memory_bytes_per_second) * seconds,
        )
        return self._ended.plus(whole, min(1.0, max(0.0, (now - flight.started) / seconds)))

    def _tier_since(self, engine: Engine, now: float) -> tuple[float, float]:
        """Bytes that the tier below moved to and from one GPU since this was last asked."""
        if engine.tier is None:
            return 0.0, 0.0
        loaded, stored = engine.tier.moved(now)
        before = self._tier_told
        if loaded < before[0] or stored < before[1]:  # another engine
            before = (0.0, 0.0)
        self._tier_told = (loaded, stored)
        size = self._config.block_bytes_gpu
        return (loaded - before[0]) * size, (stored - before[1]) * size
