"""Waits for what GPUs tell of by themselves: XIDs, counted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from exporter.gpu_sample import MOST_XIDS, OTHER_XID, GpuSample
from exporter.sampler.backend import Backend, ReadError, Remedy
from exporter.sampler.log import log, where
from exporter.sampler.reasons import Reason, is_failure

WAIT_SECONDS = 2.0
"""For an event, at a time: the sampler can end between two waits, and close the library, which it waits 2.5 s for."""
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0


class EventThread(threading.Thread):
    """Counts XIDs of all GPUs until ``ending`` is set, or until the library says that it has no events.

    ``failed`` is told of each failure, by reason; ``reopen`` of one after which the library has to be
    loaded anew.
    """

    def __init__(
        self,
        backend: Backend,
        ending: threading.Event,
        failed: Callable[[str], None],
        reopen: Callable[[ReadError], None],
    ) -> None:
        super().__init__(name="events", daemon=True)
        self._backend, self._ending = backend, ending
        self._failed, self._reopen = failed, reopen
        self.inside: tuple[str, float] | None = None
        """That it waits, and since when."""
        self._pause_seconds = _FIRST_PAUSE_SECONDS
        self._seen: dict[str, tuple[tuple[tuple[int, float], ...], float]] = {}

    def with_xids(self, sample: GpuSample) -> GpuSample:
        """``sample`` with the XIDs of its GPU; for other threads."""
        xids, last_at = self._seen.get(sample.identity.uuid, ((), None))
        return sample._replace(xids_total=xids, xid_last_at=last_at) if xids else sample

    def run(self) -> None:
        """Wait, count, wait."""
        while not self._ending.is_set() and self._waited():
            pass

    def _waited(self) -> bool:
        """Wait once; gives whether there is any use in waiting again."""
        self.inside = ("waiting for XIDs", time.monotonic())
        try:
            event = self._backend.next_event(WAIT_SECONDS)
        except ReadError as error:
            if is_failure(error):
                self._failed(error.reason)
            if error.remedy == Remedy.REOPEN:
                self._reopen(error)
            if error.remedy in {Remedy.REOPEN, Remedy.DROP}:
                return False
        except Exception as error:  # noqa: BLE001 - a bug costs the events alone
            self._failed(Reason.INTERNAL)
            log(f"waiting for XIDs failed in thrashold itself: {where(error)}")
        else:
            self._pause_seconds = _FIRST_PAUSE_SECONDS
            if event is not None:
                self._count(event.uuid, event.xid)
            return True
        finally:
            self.inside = None
        self._ending.wait(self._pause_seconds)
        self._pause_seconds = min(2 * self._pause_seconds, _LONGEST_PAUSE_SECONDS)
        return True

    def _count(self, uuid: str, xid: int) -> None:
        counts = dict(self._seen.get(uuid, ((), 0.0))[0])
        if xid not in counts and len(counts) >= MOST_XIDS:
            xid = OTHER_XID
        counts[xid] = counts.get(xid, 0.0) + 1
        # replaced as a whole: others read it meanwhile
        self._seen[uuid] = (tuple(sorted(counts.items())), time.monotonic())
