"""Puts XIDs into the log, a few lines whatever storm there is. No clock: times are those of the samples."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from exporter.gpu_sample import OTHER_XID, GpuSample

QUIET_SECONDS = 600.0
"""Between two lines about one XID of one GPU; the later one says how many there were."""


class XidWords:
    """Told each sample, says what is new."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._said: dict[tuple[str, int], tuple[float, float]] = {}

    def take(self, gpus: Iterable[GpuSample]) -> None:
        """Log the XIDs of which there are more than were said."""
        for sample in gpus:
            for xid, count in sample.xids_total:
                self._look(sample, xid, count)

    def _look(self, sample: GpuSample, xid: int, count: float) -> None:
        which = sample.identity
        said, said_at = self._said.get((which.uuid, xid), (0.0, 0.0))
        if count < said:  # counted anew
            said = 0.0
        if count > said and (not said_at or sample.at - said_at >= QUIET_SECONDS):
            index = "" if which.device_index is None else f" {which.device_index}"
            times = "" if count == 1 else f", {count:.0f} times by now"
            name = "of other numbers" if xid == OTHER_XID else xid
            self._log.warning("XID %s on GPU%s (%s)%s", name, index, which.uuid, times)
            self._said[which.uuid, xid] = (count, sample.at)
