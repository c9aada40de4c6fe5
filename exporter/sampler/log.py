"""What the sampler says on standard error; the sidecar puts it into its log."""

from __future__ import annotations

import contextlib
import os

_MOST = 400


def log(line: str) -> None:
    """Write one line. Where nobody takes it, it is lost: a full pipe must hold up no thread."""
    words = " ".join(line.split())[:_MOST]
    with contextlib.suppress(OSError):
        os.write(2, f"{words}\n".encode())


def where(error: BaseException) -> str:
    """What went wrong, and in which line of which file."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    at = f" ({place.tb_frame.f_code.co_filename}:{place.tb_lineno})" if place else ""
    return f"{type(error).__name__}: {error}{at}"
