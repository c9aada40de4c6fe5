"""A thread of its own for each physical GPU: a driver that hangs on one delays no other."""

from __future__ import annotations

import threading
import time

from exporter.sampler.gpu_reader import SAMPLE_SECONDS, GpuReader
from exporter.sampler.log import log, where

_AFTER_A_BUG_SECONDS = 1.0


class GpuThread(threading.Thread):
    """Takes turns at ``readers``, the GPU and its MIG instances, until ``ending`` is set."""

    def __init__(self, name: str, ending: threading.Event) -> None:
        super().__init__(name=name, daemon=True)
        self.readers: tuple[GpuReader, ...] = ()
        """Replaced as a whole, by whoever looks which there are."""
        self._ending = ending

    def run(self) -> None:
        """Read at each deadline."""
        while not self._ending.wait(self._until_due()):
            for reader in self.readers:
                if self._ending.is_set():
                    return
                self._turn(reader)

    def _until_due(self) -> float:
        now = time.monotonic()
        # of a GPU that can't be opened all MIG instances may go: a thread can be without work
        due_at = min((reader.due_at for reader in self.readers), default=now + SAMPLE_SECONDS)
        return max(0.0, due_at - now)

    def _turn(self, reader: GpuReader) -> None:
        try:
            reader.turn()
        except Exception as error:  # noqa: BLE001 - the other GPUs of this thread go on
            log(f"{reader.identity.uuid}: a turn broke off in thrashold itself: {where(error)}")
            self._ending.wait(_AFTER_A_BUG_SECONDS)
