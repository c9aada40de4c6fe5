"""Starts processes, looks at what they use, and ends them: only ever those started here."""

from __future__ import annotations

import contextlib
import os
import pty
import shutil
import subprocess
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.processes import end

ROOT = Path(__file__).resolve().parents[2]
WINDOW = (40, 120)
"""Rows and columns of the terminal that programs for people are given."""

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_END_SECONDS = 5.0
_KEPT_BYTES = 4000


class Usage(NamedTuple):
    """What a process, or it and its descendants, use at one instant; CPU since they started."""

    at: float
    cpu_seconds: float
    rss_megabytes: float
    pss_megabytes: float

    def cpu_share_since(self, earlier: Usage) -> float:
        """The share of one core since then, in percent."""
        return 100 * (self.cpu_seconds - earlier.cpu_seconds) / (self.at - earlier.at)


def usage(pid: int, *, family: bool = True) -> Usage:
    """What ``pid`` and, with ``family``, its descendants use. Raises OSError where it has ended."""
    cpu = rss = pss = 0.0
    for each in _family(pid) if family else [pid]:
        # the command's name, in brackets, may hold anything
        fields = Path(f"/proc/{each}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        cpu += (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND
        rollup = Path(f"/proc/{each}/smaps_rollup").read_text(encoding="utf-8")
        kibibytes = {
            name: int(rest.split()[0])
            for name, colon, rest in (line.partition(":") for line in rollup.splitlines())
            if colon and name in {"Rss", "Pss"}
        }
        rss += kibibytes["Rss"] * 1024 / 1e6
        pss += kibibytes["Pss"] * 1024 / 1e6
    return Usage(time.monotonic(), cpu, rss, pss)


def _family(pid: int) -> list[int]:
    found = [pid]
    for each in found:
        for task in Path(f"/proc/{each}/task").iterdir():
            found.extend(int(child) for child in (task / "children").read_text(encoding="utf-8").split())
    return found


def best_seconds(command: Sequence[str], times: int) -> float:
    """The shortest of a few runs of ``command``. Raises CalledProcessError where it fails."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT, timeout=30)
        taken.append(time.perf_counter() - began)
    return min(taken)


def _with_us() -> list[str]:
    """What makes the kernel end a program with us, however we end; nothing on a system that can't."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM"] if setpriv else []


class InTerminal:
    """A program for people: it runs in a pseudo-terminal of a fixed size, and what it draws is taken off."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self._master, slave = pty.openpty()
        termios.tcsetwinsize(slave, WINDOW)
        try:
            self.process = subprocess.Popen(
                [*_with_us(), *command],
                stdin=slave,
                stdout=slave,
                stderr=slave,
                env={**environment, "TERM": "xterm-256color"},
                cwd=folder,
                start_new_session=True,
            )
        except OSError:
            os.close(self._master)
            raise
        finally:
            os.close(slave)
        self.drawn_bytes = 0
        self._newest = b""
        self._taking = threading.Thread(target=self._take, daemon=True)
        self._taking.start()

    def last_words(self) -> str:
        """The last line it wrote: the reason, where it broke off."""
        lines = self._newest.decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "nothing")

    def end(self) -> None:
        """End the program and give the terminal back."""
        end(self.process, _END_SECONDS)
        self._taking.join(_END_SECONDS)
        os.close(self._master)

    def _take(self) -> None:
        with contextlib.suppress(OSError):  # how a terminal tells that nobody holds its other end
            while chunk := os.read(self._master, 65536):
                self.drawn_bytes += len(chunk)
                self._newest = (self._newest + chunk)[-_KEPT_BYTES:]
