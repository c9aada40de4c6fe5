"""Opens the library and has all GPUs read; no call of the library is ever made by who asks here."""

from __future__ import annotations

import importlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from exporter.sampler.backend import Backend, Device, ReadError, Remedy
from exporter.sampler.events import EventThread
from exporter.sampler.frame import HUNG_SECONDS, REOPEN_EXIT, Trouble, Unopened
from exporter.sampler.gpu_reader import GpuReader, Terms
from exporter.sampler.log import log, where
from exporter.sampler.options import Options
from exporter.sampler.pace import Pace
from exporter.sampler.pcie_meter import PcieMeter
from exporter.sampler.reasons import Reason, advice, advised, is_failure
from exporter.sampler.shift import Shift

SCAN_SECONDS = 30.0
"""Between two looks at which GPUs and MIG instances there are."""
_SLOW_SECONDS = 1.0
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0


class End(NamedTuple):
    """Why the sampler has to end by itself: its exit code, and what it says."""

    code: int
    trouble: Trouble


class Crew(threading.Thread):
    """The thread that opens and looks round; it starts those that read.

    ``wake`` is called when there is something new that the main thread should not wait a second for.
    """

    def __init__(self, options: Options, pace: Pace, wake: Callable[[], None]) -> None:
        super().__init__(name="crew", daemon=True)
        self.ending = threading.Event()
        self.end: End | None = None
        self.readers: tuple[GpuReader, ...] = ()
        """All of them, replaced as a whole."""
        self.events: EventThread | None = None
        self.expected: int | None = None
        self.unopened: tuple[Unopened, ...] = ()
        self.library = ""
        self.errors: Counter[str] = Counter()
        self.driver_seconds = 0.0
        self._trouble: Trouble | None = None
        self.inside: tuple[str, float] | None = None
        """What of the library it is in itself, and since when."""
        self._lock = threading.Lock()
        self._options, self._wake = options, wake
        self._terms = Terms(pace, time.monotonic, self.reopen, options.processes)
        self._backend: Backend | None = None
        self._shift = Shift(self.ending)

    def trouble(self, now: float) -> Trouble | None:
        """Why nothing can be read at all, if that is so."""
        if self.readers:  # which go on, whatever a new look comes to
            return None
        inside = self.inside
        if inside is not None and now - inside[1] > HUNG_SECONDS:
            return Trouble(Reason.HUNG, f"{inside[0]} does not come to an end: {advice(Reason.HUNG)}")
        return self._trouble

    def inside_calls(self) -> list[tuple[str, float]]:
        """What is being done with the library that is about no one GPU, and since when."""
        waiting = self.events.inside if self.events else None
        return [call for call in (self.inside, waiting) if call is not None]

    def is_held_up(self, now: float) -> bool:
        """Whether a call has been out for longer than nearly all take; not that which waits for XIDs."""
        calls = [self.inside, *(reader.inside for reader in self.readers)]
        return any(call is not None and now - call[1] > _SLOW_SECONDS for call in calls)

    def run(self) -> None:
        """Open, however often it takes, then look round again and again."""
        pause = _FIRST_PAUSE_SECONDS
        while not self._timed("opening the library", self._open):
            if self.ending.wait(pause):
                return
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        while not self.ending.is_set():
            done = self._timed("looking which GPUs there are", self._scan)
            self.ending.wait(SCAN_SECONDS if done else _FIRST_PAUSE_SECONDS)

    def reopen(self, error: ReadError) -> None:
        """End the sampler: only a fresh process can load the library anew. For all threads."""
        self._end(REOPEN_EXIT, Trouble(error.reason, str(advised(error))))

    def count(self, reason: str) -> None:
        """Count a failure that belongs to no group of a GPU; for all threads."""
        with self._lock:
            self.errors[reason] += 1

    def close(self, seconds: float) -> None:
        """Let all threads come to an end, then let go of the library, in ``seconds`` altogether at most.

        Where a call hangs the library is left as it is: to close it under a call is worse.
        """
        deadline = time.monotonic() + seconds
        self.ending.set()
        threads = [self, *self._shift.threads, *([self.events] if self.events else [])]
        for each in threads:
            if each.is_alive():
                each.join(max(0.0, deadline - time.monotonic()))
        if self._backend is not None and not any(each.is_alive() for each in threads):
            closing = threading.Thread(target=self._backend.close, name="closing", daemon=True)
            closing.start()
            closing.join(max(0.0, deadline - time.monotonic()))

    def _end(self, code: int, trouble: Trouble) -> None:
        with self._lock:
            self.end = self.end or End(code, trouble)
        self.ending.set()
        self._wake()

    def _timed(self, what: str, work: Callable[[Backend], None]) -> bool:
        """Do something with the library; gives whether that went well."""
        began = time.monotonic()
        self.inside = (what, began)
        try:
            if self._backend is None:
                self._backend = _made(self._options.backend)
            work(self._backend)
        except _BackendNameError as error:
            self._end(2, Trouble(Reason.INTERNAL, str(error)))
        except ReadError as error:
            self._failed(error)
        except Exception as error:  # noqa: BLE001 - what is known goes on, and it may work later
            self._say_bug(what, error)
        else:
            self._trouble = None
            return True
        finally:
            self.inside = None
            self.driver_seconds += time.monotonic() - began
        return False

    def _failed(self, error: ReadError) -> None:
        self._trouble = Trouble(error.reason, str(error))
        if is_failure(error):
            self.count(error.reason)
        if error.remedy == Remedy.REOPEN:
            self.reopen(error)

    def _say_bug(self, what: str, error: Exception) -> None:
        self._trouble = Trouble(Reason.INTERNAL, f"{what} failed ({error}): {advice(Reason.INTERNAL)}")
        self.count(Reason.INTERNAL)
        if self.errors[Reason.INTERNAL] == 1:
            log(f"{what} failed in thrashold itself: {where(error)}")

    def _open(self, backend: Backend) -> None:
        backend.open()
        self.events = EventThread(backend, self.ending, self.count, self.reopen)
        self.events.start()

    def _scan(self, backend: Backend) -> None:
        devices = backend.devices()
        self.library = backend.version
        self._take_on(devices)
        before = {(each.device_index, each.reason) for each in self.unopened}
        self.unopened = tuple(
            Unopened(index, error.reason, str(error)) for index, error in backend.unopened()
        )
        for each in self.unopened:
            if (each.device_index, each.reason) not in before:
                self.count(each.reason)
        self.expected = backend.expected

    def _take_on(self, devices: Iterable[Device]) -> None:
        """A reader for each GPU that is new. A GPU stays, whatever becomes of it; a MIG instance may go."""
        known = {reader.identity.uuid: reader for reader in self.readers}
        found = {device.identity.uuid: device for device in devices}
        # All at the same ticks: what is read together finds in the caches what the one before it has left there.
        first_at = time.monotonic()
        for uuid, device in found.items():
            if uuid not in known:
                known[uuid] = self._reader(device, first_at)
        for uuid, reader in list(known.items()):
            # Where not even its GPU is there, nothing is known of how it is partitioned.
            if reader.identity.parent_uuid in found and uuid not in found:
                del known[uuid]
        self.readers = tuple(known.values())
        self._set_to_work()

    def _reader(self, device: Device, first_at: float) -> GpuReader:
        is_whole = not device.identity.parent_uuid
        meter = PcieMeter(device, window=self._options.pcie_window) if is_whole else None
        return GpuReader(device, meter, self._terms, first_at)

    def _set_to_work(self) -> None:
        teams: dict[str, tuple[GpuReader, ...]] = {}
        for reader in self.readers:
            name = reader.identity.parent_uuid or reader.identity.uuid
            teams[name] = (*teams.get(name, ()), reader)
        self._shift.assign(teams)


class _BackendNameError(Exception):
    """``--backend`` names nothing that makes one."""


def _made(name: str) -> Backend:
    module, _, factory = name.partition(":")
    try:
        backend: Backend = getattr(importlib.import_module(module), factory)()
    except (ImportError, AttributeError) as error:
        raise _BackendNameError(f"--backend {name}: can't be loaded: {error}") from error
    return backend
