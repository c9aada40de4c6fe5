"""The flight recorder: every signal of every cycle into one file, off the loop that makes them.

The loop hands each snapshot over and never waits; one thread writes. Where it can't (a full disk, a
file system that turned read-only), recording stops and says so once, the sidecar goes on, and
recording resumes when it can.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import sqlite3
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

from exporter.recorder_file import RecordingError, size_in_bytes
from exporter.recorder_signals import RECORDER_BYTES, RECORDER_DROPPED, RECORDER_UP, SIGNALS
from exporter.recorder_writer import RecordingWriter, Retention
from exporter.snapshot import Snapshot, Value
from exporter.source_signals import SIGNAL_INFO

logger = logging.getLogger(__name__)

QUEUE_SIZE = 30
"""Cycles that wait for a disk that takes its time; half a minute of them is about 2 MB."""
RETRY_SECONDS = 10.0
_INFO = tuple(
    Value(SIGNAL_INFO, (each.full_name, each.confidence.value, each.method), 1.0, is_peak=False)
    for each in SIGNALS
)


@dataclass(frozen=True, slots=True)
class RecorderStatus:
    """How the recording goes: ``reason`` says in one line why not, empty while it does.

    ``written`` and ``failed`` count cycles since the start, ``size`` is in bytes.
    """

    up: bool = False
    reason: str = ""
    size: int = 0
    written: int = 0
    failed: int = 0


class Recorder:
    """Records snapshots at ``path`` from ``start`` until ``close``."""

    def __init__(
        self,
        path: Path,
        retention: Retention | None = None,
        *,
        queue_size: int = QUEUE_SIZE,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self.path = path
        self.status = RecorderStatus()
        """Replaced as a whole by the writing thread."""
        self._retention = retention or Retention()
        self._retry_seconds = retry_seconds
        self._queue: queue.Queue[Snapshot | None] = queue.Queue(queue_size)
        self._overflowed = 0
        self._behind = False  # from the first cycle dropped until all that waited is written
        self._writer: RecordingWriter | None = None
        self._next_try = 0.0
        self._ending = threading.Event()
        # A daemon: a disk that hangs must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    def start(self) -> None:
        """Open the file and begin to write.

        Raises RecordingError where that can never work: the file is something else, of a newer
        version, in use, or in a folder that isn't there. Anything else is tried again later.
        """
        if not self.path.absolute().parent.is_dir():
            raise RecordingError(f"{self.path}: its folder does not exist")
        if self.path.is_dir():
            raise RecordingError(f"{self.path}: is a folder, not a file")
        try:
            self._writer = RecordingWriter(self.path, self._retention)
        except (OSError, sqlite3.Error) as error:
            self._stopped(error)
        else:
            self.status = replace(self.status, up=True, size=size_in_bytes(self.path))
        self._thread.start()

    def put(self, snapshot: Snapshot) -> None:
        """Hand one cycle over; never waits. Where the queue is full, the cycle is dropped and counted."""
        if self._behind and self._queue.empty():
            self._behind = False
        try:
            self._queue.put_nowait(snapshot)
        except queue.Full:
            self._overflowed += 1
        else:
            return
        if not self._behind:
            self._behind = True
            logger.error("recording to %s fell behind: the disk is too slow; cycles are dropped", self.path)

    @property
    def dropped(self) -> int:
        """Cycles that were handed over and won't be in the file."""
        return self._overflowed + self.status.failed

    def values(self) -> tuple[Value, ...]:
        """What the recorder tells of itself, for the next snapshot."""
        status = self.status
        return (
            Value(RECORDER_UP, (), float(status.up and not self._behind), is_peak=False),
            Value(RECORDER_BYTES, (), float(status.size), is_peak=False),
            Value(RECORDER_DROPPED, (), float(self.dropped), is_peak=False),
            *_INFO,
        )

    def close(self, timeout_seconds: float = 0.5) -> bool:
        """Write what waits and close the file; gives whether that was done in time."""
        if not self._thread.is_alive():
            return True
        self._ending.set()
        with contextlib.suppress(queue.Full):
            self._queue.put_nowait(None)  # wakes the thread; where there is no room it is awake
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not (self._ending.is_set() and self._queue.empty()):
            snapshot = self._queue.get()
            if snapshot is not None:
                self._record(snapshot)
        if self._writer is not None:
            self._writer.close()

    def _record(self, snapshot: Snapshot) -> None:
        try:
            writer = self._writer or self._reopened()
            if writer is not None:
                writer.write(snapshot)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the sidecar goes on
            self._stopped(error)
            writer = None
        if writer is None:
            self.status = replace(self.status, failed=self.status.failed + 1)
            return
        if not self.status.up:
            logger.info("recording to %s again; %d cycles are missing so far", self.path, self.dropped)
        written = self.status.written + 1
        self.status = replace(self.status, up=True, reason="", size=size_in_bytes(self.path), written=written)

    def _reopened(self) -> RecordingWriter | None:
        if time.monotonic() < self._next_try:
            return None
        self._writer = RecordingWriter(self.path, self._retention)
        return self._writer

    def _stopped(self, error: Exception) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._next_try = time.monotonic() + self._retry_seconds
        reason = _in_words(error)
        if self.status.up or not self.status.reason:
            expected = isinstance(error, (OSError, sqlite3.Error, RecordingError))
            logger.error(
                "recording to %s stopped: %s; the rest goes on, and it is tried again every %g s",
                self.path,
                reason,
                self._retry_seconds,
                exc_info=None if expected else error,
            )
        self.status = replace(self.status, up=False, reason=reason)


def _in_words(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error) or repr(error)
