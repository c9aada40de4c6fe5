"""Ends what a test started."""

from __future__ import annotations

import subprocess


def end(process: subprocess.Popen[bytes], seconds: float = 30.0) -> None:
    """In its own time, or after so many seconds in none."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
