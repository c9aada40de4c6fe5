"""Ends what a test or a benchmark started."""

from __future__ import annotations

import subprocess
import time


def end(process: subprocess.Popen[bytes] | subprocess.Popen[str], seconds: float = 30.0) -> float:
    """In its own time, or after so many seconds in none; gives how many it took."""
    began = time.monotonic()
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return time.monotonic() - began
