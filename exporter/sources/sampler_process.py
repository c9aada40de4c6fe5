"""Starts the sampler, listens to it, starts it again, and never waits for it.

A process inside a driver that hangs can't be ended, and a kill in the middle of a call has been seen to take
the GPU down (NVIDIA/dcgm-exporter#84). So there is SIGTERM and nothing beyond it, nobody ever waits for the
process to end, and while it lives no other one is started: nor by the next sidecar, where this one was killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import exporter
from exporter.sampler.frame import ASLEEP_SECONDS, ENDING_NAME, HUNG_SECONDS, REOPEN_EXIT
from exporter.sampler.reasons import Reason, advice
from exporter.sources.failure import one_line
from exporter.sources.lines import Lines
from exporter.sources.process_state import called, held_in

SAMPLER = (sys.executable, "-P", "-m", "exporter.sampler")
FIRST_HEARTBEAT_SECONDS = 30.0
"""A machine that is busy starting may take long to start this as well."""
GRACE_SECONDS = 5.0
"""From SIGTERM on; whoever still lives then is held by the kernel."""
PAUSES_SECONDS = (1.0, 60.0)
"""Before it is started again: the first and, each time doubled, the longest."""
_LOOK_SECONDS = 1.5
"""Longer than what lies between two lines."""
_ENDING_SECONDS = 0.1
"""Between two looks at one that has closed its output and will be gone in a moment."""
_MOST_LINES_LOGGED = 20
_MOST_LINE_BYTES = 1 << 20
_MOST_WORD_BYTES = 4096

logger = logging.getLogger(__name__)


class SamplerProcess:
    """``take`` is given each line of its output, ``failed`` a reason and one line for each failure of its own.

    Everything runs in the loop of ``run``.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        take: Callable[[bytes], None],
        failed: Callable[[str, str], None],
        *,
        command: Sequence[str] = SAMPLER,
        pauses_seconds: tuple[float, float] = PAUSES_SECONDS,
    ) -> None:
        self.restarts = 0
        self._command = (*command, *arguments)
        self._take, self._failed = take, failed
        self._pauses = pauses_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._heard_at = 0.0
        self._patience = FIRST_HEARTBEAT_SECONDS
        self._looked_at = self._awake_since = 0.0
        self._told_at: float | None = None
        self._has_said_held = False
        self._output_ended = asyncio.Event()
        self._look: asyncio.Timeout | None = None
        self._words: list[str] = []

    @property
    def pid(self) -> int | None:
        """The process, as long as it lives."""
        return None if self._process is None or self._process.poll() is not None else self._process.pid

    def stuck_seconds(self) -> float:
        """For how long it has said nothing; 0 where that is no sign of anything."""
        silent = time.monotonic() - max(self._heard_at, self.awake_since())
        return silent if self.pid is not None and silent > self._patience else 0.0

    def awake_since(self) -> float:
        """Since when the sidecar itself has listened without a gap (CLOCK_MONOTONIC); 0: since ever."""
        now = time.monotonic()
        is_listening = self.pid is not None
        return now if is_listening and now - self._looked_at > ASLEEP_SECONDS else self._awake_since

    async def run(self, *, beside_others: bool = False) -> None:
        """Keep it running until cancelled; then it is told to end, and left.

        Not before those that earlier sidecars have left are gone, but for one that is ``beside_others`` for a moment.
        """
        first, longest = self._pauses
        pause = first
        try:
            await self._old_one_gone()
            if not beside_others:
                await self._others_gone()
            while True:
                began = time.monotonic()
                await self._run_one()
                if time.monotonic() - began > longest:
                    pause = first
                await asyncio.sleep(pause)
                pause = min(2 * pause, longest)
                self.restarts += 1
        finally:
            self._let_go()

    async def _old_one_gone(self) -> None:
        """Wait for one that an earlier ``run`` has left."""
        while self._process is not None and self._process.poll() is None:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(_LOOK_SECONDS)

    async def _others_gone(self) -> None:
        """Wait for those that earlier sidecars have left amid a call that did not come back."""
        began, has_failed = time.monotonic(), False
        while left := called(ENDING_NAME):
            if not has_failed and time.monotonic() - began > GRACE_SECONDS:
                has_failed = True
                which = f"an earlier sampler (process {left[0]}, {held_in(left[0])})"
                remedy = f"no other is started meanwhile; {advice(Reason.HUNG)}"
                self._failed(Reason.HUNG, f"{which} does not end: {remedy}")
            await asyncio.sleep(_LOOK_SECONDS)

    async def _run_one(self) -> None:
        """Start one and stay with it to its end."""
        try:
            process = self._started()
        except OSError as error:
            line = f"the sampler can't be started: {error.strerror}; {advice(Reason.NOT_STARTED)}"
            self._failed(Reason.NOT_STARTED, line)
            return
        while process.poll() is None:
            if self._output_ended.is_set():
                await asyncio.sleep(_ENDING_SECONDS)
            else:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_SECONDS) as self._look:
                        await self._output_ended.wait()
                self._look = None
            self._watch(process)
        self._close_pipes(process)
        self._explain_end(process.returncode)

    def _started(self) -> subprocess.Popen[bytes]:
        process = self._process = subprocess.Popen(  # noqa: S603 - our own module
            self._command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            close_fds=True,
            start_new_session=True,  # Ctrl-C at a terminal is for us to pass on
            env=_environment(),
        )
        self._heard_at, self._patience = time.monotonic(), FIRST_HEARTBEAT_SECONDS
        self._looked_at, self._awake_since = self._heard_at, 0.0
        self._told_at, self._has_said_held, self._words = None, False, []
        self._output_ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        for stream, lines, end in (
            (process.stdout, Lines(_MOST_LINE_BYTES, self._hear), self._output_ended.set),
            (process.stderr, Lines(_MOST_WORD_BYTES, self._note), lambda: None),
        ):
            if stream is not None:  # both are pipes
                os.set_blocking(stream.fileno(), False)
                loop.add_reader(stream.fileno(), _read, stream.fileno(), lines, end)
        return process

    def _hear(self, line: bytes) -> None:
        self._awake_since = self.awake_since()
        self._heard_at, self._patience = time.monotonic(), HUNG_SECONDS
        self._looked_at = self._heard_at
        if self._look is not None and not self._look.expired():
            # one that speaks needs no look: that saves a waking up a second
            self._look.reschedule(asyncio.get_running_loop().time() + _LOOK_SECONDS)
        self._take(line)

    def _note(self, line: bytes) -> None:
        words = one_line(line.decode(errors="replace"), 300)
        if len(self._words) < _MOST_LINES_LOGGED:
            logger.warning("sampler: %s", words)
        self._words = [*self._words, words][-_MOST_LINES_LOGGED:]

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Tell one that has fallen silent to end; one that doesn't is left alone."""
        self._awake_since = self.awake_since()
        now = self._looked_at = time.monotonic()
        if not self.stuck_seconds():
            return
        if self._told_at is None:
            self._told_at = now
            line = f"the sampler has said nothing for {self._patience:g} s and is told to end: {advice(Reason.HUNG)}"
            self._failed(Reason.HUNG, line)
            process.terminate()
        elif now - self._told_at > GRACE_SECONDS and not self._has_said_held:
            self._has_said_held = True
            logger.error(
                "the sampler (process %d) does not end: %s; no other is started while it lives",
                process.pid,
                held_in(process.pid),
            )

    def _explain_end(self, code: int) -> None:
        if code == REOPEN_EXIT:  # its last frame has said why
            return
        if self._told_at is not None:
            logger.info("the sampler has ended after all; it is started again")
            return
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        said = f" ({self._words[-1]})" if self._words else " and has said nothing"
        why = advice(Reason.EXITED)
        if code == -signal.SIGKILL:
            why += "; look for 'out of memory' in the kernel's log"
        self._failed(Reason.EXITED, f"the sampler {how}{said}: {why}")

    def _close_pipes(self, process: subprocess.Popen[bytes]) -> None:
        loop = asyncio.get_running_loop()
        for stream in (process.stdout, process.stderr):
            if stream is not None and not stream.closed:
                loop.remove_reader(stream.fileno())
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()

    def _let_go(self) -> None:
        """Tell it to end, in two ways, and go."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        self._close_pipes(process)
        process.terminate()


def _read(descriptor: int, lines: Lines, end: Callable[[], None]) -> None:
    """Take what is there. At the end nothing more is looked for."""
    try:
        some = os.read(descriptor, 1 << 16)
    except BlockingIOError:
        return
    if some:
        lines.feed(some)
    else:
        asyncio.get_running_loop().remove_reader(descriptor)
        end()


def _environment() -> dict[str, str]:
    """Our own, so that it finds the library where we do, and this package where we run from a checkout."""
    root = str(Path(exporter.__file__).parents[1])
    environment = {"MALLOC_ARENA_MAX": "2", **os.environ}  # each thread would take an arena of its own
    if root != sysconfig.get_path("purelib"):
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    return environment
