"""Writes frames to a pipe, without ever waiting for whoever reads it."""

from __future__ import annotations

import json
import os
import stat

from exporter.gpu_sample import GpuSample
from exporter.sampler.frame import Frame

_JSON = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_GPUS = Frame._fields.index("gpus")


def never_block(descriptor: int) -> None:
    """Let writing to a pipe fail rather than wait. A terminal or a file is shared with others: left as it is."""
    if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        os.set_blocking(descriptor, False)


class FrameLines:
    """Frames as lines of JSON. What is as in the frame before is not written anew: of a GPU, most."""

    def __init__(self) -> None:
        self._newest: tuple[tuple[GpuSample, list[str]], ...] = ()

    def line(self, frame: Frame) -> bytes:
        """A frame as one line. Raises ValueError for one that holds NaN or infinity."""
        before = self._newest
        self._newest = tuple(
            (sample, _parts(sample, *(before[place] if place < len(before) else (None, []))))
            for place, sample in enumerate(frame.gpus)
        )
        gpus = ",".join(f"[{','.join(parts)}]" for _, parts in self._newest)
        head, tail = (_JSON(values)[1:-1] for values in (frame[:_GPUS], frame[_GPUS + 1 :]))
        return f"[{head},[{gpus}],{tail}]\n".encode()


def _parts(sample: GpuSample, earlier: GpuSample | None, written: list[str]) -> list[str]:
    if earlier is None:
        return list(map(_JSON, sample))
    return [
        text if value is old or value == old else _JSON(value)
        for value, old, text in zip(sample, earlier, written, strict=True)
    ]


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
