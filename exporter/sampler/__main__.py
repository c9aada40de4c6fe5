"""``python -m exporter.sampler``: the process that owns the GPU library.

The main thread calls no library: it writes a frame each second, whatever the other threads are held up
by, and ends the process on SIGTERM, when its parent is gone, or when the library has to be loaded anew.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from typing import NoReturn

from exporter.sampler.crew import Crew
from exporter.sampler.frame import ENDING_NAME, FRAME_SECONDS, REOPEN_EXIT, Frame, Trouble
from exporter.sampler.frames import FrameMaker
from exporter.sampler.log import log, where
from exporter.sampler.options import parse
from exporter.sampler.pace import Pace
from exporter.sampler.pipe import FrameLines, LineWriter, never_block
from exporter.sampler.reasons import Reason, advice
from exporter.sampler.ticks import next_tick

_IN, _OUT, _ERRORS = range(3)
NICENESS = 2
"""An engine goes first, by a bit: one thread that gives way to everybody reads counters too late on a full machine."""
CLOSE_SECONDS = 2.5
"""For calls to come back and the library to be closed, at the end."""
_LOOK_SECONDS = 0.1
"""How often to look whether the first frame is complete."""


class Alarm:
    """Wakes the main thread out of its wait: a pipe to itself, written to by signals and by threads."""

    def __init__(self) -> None:
        self.reading, self._writing = os.pipe()
        for each in (self.reading, self._writing):
            os.set_blocking(each, False)
        self.is_told_to_end = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)

    def ring(self) -> None:
        """Wake it; from any thread."""
        with contextlib.suppress(BlockingIOError):  # it is awake
            os.write(self._writing, b"!")

    def quiet(self) -> None:
        """Take what rang."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.reading, 4096)

    def _end(self, *_: object) -> None:
        self.is_told_to_end = True
        self.ring()


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run until told to end; gives the exit code to the system itself, so that no thread is waited for."""
    options = parse(arguments)
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    for descriptor in (_OUT, _ERRORS):
        never_block(descriptor)
    alarm, pace = Alarm(), Pace()
    crew = Crew(options, pace, alarm.ring)
    writer = LineWriter(_OUT)
    maker, lines = FrameMaker(crew, pace), FrameLines()
    crew.start()
    code = 0
    try:
        _write_frames(crew, lambda: _line(maker, lines), maker, writer, alarm)
        if crew.end is not None:
            code = crew.end.code
            if code != REOPEN_EXIT:  # which is part of life
                log(crew.end.trouble.line)
            writer.put(_line(maker, lines))
    except OSError:  # nobody reads any more
        pass
    except Exception as error:  # noqa: BLE001 - said in one line, and the library is closed all the same
        log(f"the sampler broke off: {where(error)}")
        code = 1
    if crew.is_held_up(time.monotonic()):
        _tell_of_ending()
    crew.close(CLOSE_SECONDS)
    os._exit(code)


def _tell_of_ending() -> None:
    """To whoever starts the next one, who may know nothing of this one: a sidecar that was restarted."""
    with contextlib.suppress(OSError):
        name = os.open("/proc/self/comm", os.O_WRONLY)
        os.write(name, ENDING_NAME.encode())
        os.close(name)


def _write_frames(
    crew: Crew, line: Callable[[], bytes], maker: FrameMaker, writer: LineWriter, alarm: Alarm
) -> None:
    """Write a frame each second, and one as soon as there is something to tell. Raises OSError at a broken pipe."""
    due_at = time.monotonic() + FRAME_SECONDS
    has_told = False
    while not (alarm.is_told_to_end or crew.end):
        wait = due_at - time.monotonic()
        writing = [_OUT] if writer.is_waiting else []
        ready = select.select(
            [_IN, alarm.reading],
            writing,
            [],
            max(0.0, wait if has_told else min(wait, _LOOK_SECONDS)),
        )
        if _IN in ready[0] and not os.read(_IN, 4096):
            return
        alarm.quiet()
        writer.flush()
        now = time.monotonic()
        if not has_told and maker.is_complete:
            # From here on just after the ticks at which GPUs are read, so that each frame shows the second just read.
            has_told, due_at = True, now
        if now >= due_at:
            due_at = next_tick(due_at, FRAME_SECONDS, now)
            writer.put(line())


def _line(maker: FrameMaker, lines: FrameLines) -> bytes:
    frame = maker.next()
    try:
        return lines.line(frame)
    except ValueError as error:  # the heartbeat goes on
        line = f"a frame can't be written ({error}): {advice(Reason.INTERNAL)}"
        return lines.line(
            Frame(frame.sequence, frame.at, frame.started_at, trouble=Trouble(Reason.INTERNAL, line))
        )


if __name__ == "__main__":
    main()
