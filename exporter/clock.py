"""Wall time that never jumps."""

from __future__ import annotations

import time
from collections.abc import Callable


def anchored_clock() -> Callable[[], float]:
    """Make a clock of seconds since the epoch: the wall time of now plus what elapses from here on.

    A wall clock that is stepped (NTP after boot, a suspended virtual machine, an operator) would
    make deltas negative or huge; this one runs with the monotonic clock.
    """
    anchor = time.time() - time.monotonic()
    return lambda: anchor + time.monotonic()
