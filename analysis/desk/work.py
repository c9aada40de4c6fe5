"""The desk's work, one incident after another: each in a process of its own, so that the desk always answers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from analysis.desk.grafana import Marker
from analysis.desk.incident import Work
from analysis.desk.job import JOB, REPORT_HTML, REPORT_JSON, REPORT_TEXT, TRIAGE, Wanted
from analysis.desk.schedule import HOUR, Schedule
from analysis.desk.store import Store

logger = logging.getLogger(__name__)

MOST_SECONDS = 600.0
KEPT = (REPORT_HTML, REPORT_JSON, REPORT_TEXT, TRIAGE)
_LOOK_SECONDS = 5.0
"""Between looks at which incidents go on for long enough to be told anew."""
_MOST_LINE_BYTES = 16_384


@dataclass(frozen=True, slots=True)
class Given:
    """How the desk was started: what a job reads its settings from anew."""

    config: Path | None
    environment: Mapping[str, str]
    flags: Mapping[str, str]


@dataclass(slots=True)
class Worker:
    """Makes reports. ``changed`` is called with an incident's number whenever something is new about it."""

    store: Store
    folder: Path
    given: Given
    schedule: Schedule
    clock: Callable[[], float]
    changed: Callable[[int], None]
    marker: Marker | None = None
    _queue: asyncio.Queue[int] = field(default_factory=asyncio.Queue)
    _waiting: set[int] = field(default_factory=set)
    _tried: dict[int, float] = field(default_factory=dict)

    def ask(self, number: int) -> None:
        """Have an incident's report made, or made anew; once however often that is asked while it waits."""
        if number not in self._waiting:
            self._waiting.add(number)
            self._queue.put_nowait(number)
            self.store.set_work(number, Work.WAITING)
            self.changed(number)

    def files(self, number: int) -> Path:
        """The folder of an incident: its name is a number of ours and nothing that anybody sent."""
        return self.folder / f"{number:d}"

    async def run(self) -> None:
        """Work until cancelled; what an earlier desk left undone comes first. A job that runs then ends with it."""
        for number in self.store.unfinished():
            self.ask(number)
        while True:
            number = await self._queue.get()
            self._waiting.discard(number)
            try:
                await self._report(number)
            except Exception:
                logger.exception("incident %d: an error in thrashold itself", number)
                with contextlib.suppress(sqlite3.Error):  # a full disk, perhaps
                    self._done(number, Work.FAILED, "an error in thrashold itself: the log has it")

    async def keep_up(self) -> None:
        """Ask for reports of incidents that go on, as the schedule has it, until cancelled."""
        while True:
            try:
                self._ask_for_those_due()
            except sqlite3.Error:
                logger.exception("it could not be looked up which incidents go on; it is tried again")
            await asyncio.sleep(_LOOK_SECONDS)

    def _ask_for_those_due(self) -> None:
        now, going_on = self.clock(), self.store.going_on()
        known = {each.number for each in going_on}
        self._tried = {number: at for number, at in self._tried.items() if number in known}
        for each in going_on:
            due = self.schedule.due(each.opened, each.reported, self._tried.get(each.number), each.joined)
            if now >= due and not each.waited_for:
                self.ask(each.number)

    async def _report(self, number: int) -> None:
        incident = self.store.incident(number)
        if incident is None:
            return
        self.store.set_work(number, Work.RUNNING)
        self._tell(number, "a report is made")
        if self.marker is not None:
            await self.marker.mark(incident, self.files(number))
        began = self._tried[number] = self.clock()
        start, until = self.schedule.looked_at(incident.opened, began)
        if until < (began if incident.ended is None else incident.ended):
            hours = self.schedule.longest / HOUR
            self._tell(
                number, f"it lasts longer than {hours:g} h: the report looks at the first {hours:g} h of it"
            )
        made = self.files(number) / "new"
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        wanted = Wanted(
            start,
            until,
            self.store.engines(number),
            {name: text for name, text in incident.cluster.items() if text},
            None if self.given.config is None else str(self.given.config),
            dict(self.given.environment),
            dict(self.given.flags),
        )
        (made / JOB).write_bytes(msgspec.json.encode(wanted))
        code = await self._run(number, made)
        for name in KEPT:
            if (made / name).is_file():
                (made / name).replace(self.files(number) / name)
        shutil.rmtree(made, ignore_errors=True)
        if code == 0:
            text = f"the report is there, {self.clock() - began:.0f} s after it was begun"
            self._done(number, Work.DONE, text, until)
        else:
            self._done(number, Work.FAILED, "there is no report")

    async def _run(self, number: int, made: Path) -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "analysis.desk.job",
            str(made),
            stdin=asyncio.subprocess.PIPE,  # nothing is written: its end tells the job that there is no desk any more
            stdout=asyncio.subprocess.PIPE,
            limit=_MOST_LINE_BYTES,
            start_new_session=True,  # its own children end with it
        )
        assert process.stdout is not None  # noqa: S101 - asked for above
        try:
            async with asyncio.timeout(MOST_SECONDS):
                async for line in lines(process.stdout):
                    if line is None:
                        self._tell(number, f"a line of more than {_MOST_LINE_BYTES} bytes is left out")
                        continue
                    with contextlib.suppress(
                        msgspec.DecodeError
                    ):  # of something that prints, and isn't the job
                        self._tell(number, msgspec.json.decode(line, type=str))
                return await process.wait()
        except TimeoutError:
            self._tell(number, f"it took more than {MOST_SECONDS:g} s and was given up")
            return 1
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    def _done(self, number: int, work: Work, text: str, until: float | None = None) -> None:
        # asked for anew meanwhile, it waits: a restart has to know
        self.store.set_work(number, Work.WAITING if number in self._waiting else work, until)
        self._tell(number, text)

    def _tell(self, number: int, text: str) -> None:
        self.store.tell(number, self.clock(), text)
        self.changed(number)


async def lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes | None]:
    """Without their ends, the last one too if it has none. None: one longer than the stream's limit, let go of.

    ``readline`` raises there, and what is left of the line would be the next one.
    """
    fits = True
    while True:
        try:
            line = (await stream.readuntil())[:-1]
        except asyncio.LimitOverrunError as error:
            await stream.readexactly(error.consumed)
            fits = False
            continue
        except asyncio.IncompleteReadError as error:
            if error.partial or not fits:
                yield error.partial if fits else None
            return
        yield line if fits else None
        fits = True
