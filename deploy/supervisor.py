"""Programs that are kept running: started in order, started anew when they die, ended in the other order.

Each has a process group of its own, so that Ctrl-C reaches none of them but through here, and a log of its own. Where
the supervisor itself is killed the kernel ends them, on Linux.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from deploy.part import Part

READY_SECONDS = 60.0
"""What a program has to answer within, on a busy machine too."""
GRACE_SECONDS = 15.0
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 1.0, 30.0
"""Before one that died is started anew: twice as long each time that it dies within a minute."""
STEADY_SECONDS = 60.0
MOST_LOG_BYTES = 16 * 1024 * 1024
"""Of one part, and as much of what came before: a stack may run for months."""
_PAUSE_SECONDS = 0.1
_LOOK_AT_LOGS_SECONDS = 5.0
_PR_SET_PDEATHSIG = 1
_NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class PartFailedError(Exception):
    """A part that doesn't come up: which, and the end of its log."""


@dataclass(slots=True)
class _Running:
    part: Part
    log: Path
    process: subprocess.Popen[bytes]
    began: float
    wait: float = FIRST_WAIT_SECONDS
    again_at: float | None = None


@dataclass(slots=True)
class Supervisor:
    """``say`` gets a line about each thing that happens. Logs are written to ``folder``."""

    folder: Path
    say: Callable[[str], None]
    _running: list[_Running] = field(default_factory=list)

    def start(self, part: Part) -> None:
        """Start one and wait until it is ready. Raises PartFailedError."""
        log = self.folder / f"{part.name}.log"
        each = _Running(part, log, _started(part, log), time.monotonic())
        self._running.append(each)
        until = time.monotonic() + READY_SECONDS
        while not _ready(part.ready_url):
            if each.process.poll() is not None:
                raise PartFailedError(
                    f"{part.name} ended with {each.process.returncode} at once: {_end(log)}"
                )
            if time.monotonic() > until:
                raise PartFailedError(
                    f"{part.name} doesn't answer at {part.ready_url} in {READY_SECONDS:g} s: {_end(log)}"
                )
            time.sleep(_PAUSE_SECONDS)

    def watch(self, until: Callable[[], bool]) -> None:
        """Start anew what dies, until that is so."""
        logs_at = time.monotonic()
        while not until():
            for each in self._running:
                self._look(each)
            if time.monotonic() >= logs_at:
                logs_at = time.monotonic() + _LOOK_AT_LOGS_SECONDS
                for each in self._running:
                    _bound(each.log)
            time.sleep(_PAUSE_SECONDS)

    def _look(self, each: _Running) -> None:
        now, code = time.monotonic(), each.process.poll()
        if code is None:
            return
        if each.again_at is None:
            _kill_group(
                each.process.pid
            )  # what it started would hold its ports, or write what the next one writes
            steady = now - each.began > STEADY_SECONDS
            each.wait = FIRST_WAIT_SECONDS if steady else each.wait
            each.again_at = now + each.wait
            self.say(
                f"{each.part.name} died ({_why(code)}); it is started anew in {each.wait:g} s; {each.log}"
            )
            each.wait = min(2 * each.wait, LONGEST_WAIT_SECONDS)
        elif now >= each.again_at:
            try:
                each.process, each.began, each.again_at = _started(each.part, each.log), now, None
            except OSError as error:  # the program is being exchanged, perhaps
                each.again_at = now + each.wait
                self.say(
                    f"{each.part.name} can't be started ({error.strerror}); it is tried again in {each.wait:g} s"
                )
                each.wait = min(2 * each.wait, LONGEST_WAIT_SECONDS)
            else:
                self.say(f"{each.part.name} is started anew")

    def end(self) -> None:
        """End all of them, the last one first: each in its own time, or after ``GRACE_SECONDS`` in none."""
        for each in reversed(self._running):
            if each.process.poll() is None:
                each.process.terminate()
            try:
                each.process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                self.say(f"{each.part.name} didn't end in {GRACE_SECONDS:g} s and is killed")
                each.process.kill()
                each.process.wait()
            _kill_group(each.process.pid)
        self._running.clear()

    @property
    def pids(self) -> dict[str, int]:
        """Of all that run, by name."""
        return {each.part.name: each.process.pid for each in self._running if each.process.poll() is None}


def _started(part: Part, log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as sink:
        return subprocess.Popen(  # noqa: S603 - our own list of programs
            part.command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 - one thread here
        )


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _ready(url: str) -> bool:
    try:
        with _NO_PROXY.open(url, timeout=2.0):
            return True
    except (urllib.error.URLError, OSError, ValueError):
        return False


def _end(log: Path, lines: int = 5) -> str:
    told = log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]
    return " | ".join(told) or "it said nothing"


def _why(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:  # those of real time have no names
        return f"signal {-code}"


def _kill_group(leader: int) -> None:
    """Whatever a part that has ended left behind."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _bound(log: Path) -> None:
    """Start a log afresh that has become large, beside what was in it; its part appends, and goes on with it."""
    with contextlib.suppress(OSError):
        if log.stat().st_size > MOST_LOG_BYTES:
            shutil.copyfile(log, log.with_name(f"{log.name}.1"))
            os.truncate(log, 0)
