"""Engines of a fleet are drained, stopped, and started again."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from drill.serving.config import EngineConfig

if TYPE_CHECKING:
    from drill.fleet import Fleet


class Rollout:
    """Of one fleet, whose engines take ``start_seconds`` to start."""

    def __init__(self, fleet: Fleet, start_seconds: float) -> None:
        self._fleet = fleet
        self._start_seconds = start_seconds
        self._configs: dict[int, EngineConfig] = {}
        """What engines that drain or are stopped will be started with."""

    def restart(self, index: int, config: EngineConfig, drain_seconds: float) -> None:
        """Send it nothing more, stop it once it is empty or the time is up, and start it with that configuration."""
        fleet = self._fleet
        replica = fleet.replicas[index]
        if replica.gpus_lost:
            return
        self._configs[index] = config
        replica.draining = True
        fleet.tell_gateway()
        self.stop_if_drained(index)
        fleet.at(fleet.now + drain_seconds, partial(self._stop, index, replica.life))

    def stop_if_drained(self, index: int) -> None:
        """A draining engine may have nothing left."""
        replica = self._fleet.replicas[index]
        if replica.draining and replica.empty:
            self._stop(index, replica.life)

    def start_later(self, index: int) -> None:
        """It is started as soon as an engine can be, if nothing else starts it before."""
        fleet = self._fleet
        fleet.at(fleet.now + self._start_seconds, partial(self._start, index, fleet.replicas[index].life))

    def _stop(self, index: int, life: int) -> None:
        replica = self._fleet.replicas[index]
        if replica.life == life and replica.draining:
            replica.stop()
            self._fleet.settle(index)
            self.start_later(index)

    def _start(self, index: int, life: int) -> None:
        fleet = self._fleet
        replica = fleet.replicas[index]
        if replica.life == life and not replica.listens and not replica.gpus_lost:
            config = self._configs.pop(index, replica.config)
            # the machine is as it is now, whatever was done to it since the configuration was made
            replica.start(fleet.now, replace(config, gpu=replica.config.gpu))
            fleet.settle(index)
            fleet.tell_gateway()
