"""Writes frames to a pipe, without ever waiting for whoever reads it."""

from __future__ import annotations

import json
import os
import stat

from exporter.sampler.frame import Frame


def never_block(descriptor: int) -> None:
    """Let writing to a pipe fail rather than wait. A terminal or a file is shared with others: left as it is."""
    if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        os.set_blocking(descriptor, False)


def line_of(frame: Frame) -> bytes:
    """A frame as one line of JSON. Raises ValueError for one that holds NaN or infinity."""
    return json.dumps(frame, allow_nan=False, separators=(",", ":")).encode() + b"\n"


class LineWriter:
    """Whole lines or none: what a full pipe didn't take goes out before anything else does."""

    def __init__(self, descriptor: int) -> None:
        self.dropped = 0
        """Lines for which there was no room."""
        self._descriptor = descriptor
        self._rest = b""

    @property
    def is_waiting(self) -> bool:
        """Whether a line is half out."""
        return bool(self._rest)

    def put(self, line: bytes) -> None:
        """Write ``line`` as far as the pipe takes it, or drop it. Raises OSError where nobody reads any more."""
        self.flush()
        if self._rest:
            self.dropped += 1
            return
        self._rest = line
        self.flush()

    def flush(self) -> None:
        """Go on with the line that is half out. Raises as ``put`` does."""
        try:
            while self._rest:
                self._rest = self._rest[os.write(self._descriptor, self._rest) :]
        except BlockingIOError:
            return
