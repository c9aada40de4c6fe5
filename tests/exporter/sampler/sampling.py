"""The sampler as a process of its own, on the scripted GPUs of a folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from exporter.sampler.frame import Frame
from tests.exporter.running import ROOT
from tests.exporter.sampler.scripted import FOLDER_VARIABLE

BACKEND = ("--backend", "tests.exporter.sampler.scripted:ScriptedBackend")
COMMAND = (sys.executable, "-m", "exporter.sampler", *BACKEND)
SECONDS = 30.0
"""What anything may take before a test gives up."""


def gpus(folder: Path, *names: str) -> Path:
    """Put GPUs into ``folder``, each with 5 GB in use."""
    for name in names:
        (folder / name).write_text("5e9")
    return folder


def until(holds: Callable[[], object], what: str = "") -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and isn't waited for by its parent doesn't."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in {"Z", "X"}


@dataclass(slots=True)
class Sampler:
    process: subprocess.Popen[bytes]

    def frame(self) -> Frame:
        """The next frame."""
        assert self.process.stdout is not None
        return msgspec.json.decode(self.process.stdout.readline(), type=Frame)

    def waiting_bytes(self) -> int:
        """How much of its output lies in the pipe."""
        assert self.process.stdout is not None
        return int.from_bytes(fcntl.ioctl(self.process.stdout, termios.FIONREAD, bytes(4)), sys.byteorder)

    def frame_where(self, holds: Callable[[Frame], object]) -> Frame:
        """The next frame of which that holds."""
        deadline = time.monotonic() + SECONDS
        while not holds(frame := self.frame()):
            assert time.monotonic() < deadline, frame
        return frame

    def ended(self) -> int:
        """Wait until it has; gives its exit code."""
        return self.process.wait(SECONDS)

    def said(self) -> str:
        """All of its standard error, once it has ended."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()


_PARENT = (
    "import subprocess, sys\n"
    "child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
    "child.stdout.readline()\n"
    "print(child.pid, flush=True)\n"
    "child.wait()\n"
)


def orphaned(folder: Path, then: Callable[[], object] = lambda: None) -> int:
    """A sampler whose parent was killed after its first frame and whatever is to happen ``then``."""
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT, *COMMAND],
        env={**os.environ, FOLDER_VARIABLE: str(folder)},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_alive(pid)
        then()
        parent.send_signal(signal.SIGKILL)
    return pid


@contextlib.contextmanager
def sampling(folder: Path, *arguments: str) -> Iterator[Sampler]:
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        env={**os.environ, FOLDER_VARIABLE: str(folder)},
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            yield Sampler(process)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            # what a test left in the pipes goes nowhere
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    with contextlib.suppress(OSError):
                        stream.close()
