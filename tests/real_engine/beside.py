"""Servers that run beside the engine, each in a virtual environment of its own: put up once, waited for."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import httpx

from tests.real_engine import install
from tests.real_engine.install import UnavailableError
from tests.real_engine.serve import end_of

READY_SECONDS = 120.0
STEP_SECONDS = 300.0


def environment(name: str, packages: Sequence[str]) -> Path:
    """The interpreter of ``.real_engine/<name>``, put up when missing or of other packages.

    Raises UnavailableError.
    """
    venv = install.HOME / name
    python, stamp = venv / "bin" / "python", venv / "packages.txt"
    wanted = "\n".join(packages)
    if not (stamp.is_file() and stamp.read_text() == wanted):
        step([sys.executable, "-m", "venv", "--clear", venv], packages)
        step([python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", *packages], packages)
        stamp.write_text(wanted)
    return python


def step(command: Sequence[str | Path], packages: Sequence[str]) -> None:
    """Run one command on the way. Raises UnavailableError, which names the ``packages`` that it needs."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=STEP_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"{command[0]} took over {STEP_SECONDS:.0f} s") from None
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-8:])
        raise UnavailableError(f"{tail}\nIt needs a package index that has {', '.join(packages)}.")


def wait_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Until ``url`` answers well. Raises RuntimeError with the end of ``log`` when it doesn't."""
    until = time.monotonic() + READY_SECONDS
    while process.poll() is None and time.monotonic() < until:
        try:
            httpx.get(url, timeout=2.0, trust_env=False).raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"{url} never answered; the end of the server's log:\n{end_of(log)}")
