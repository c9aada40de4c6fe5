"""The desk's work, one incident after another: each in a process of its own, so that the desk always answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from analysis.desk.grafana import Marker
from analysis.desk.incident import Work
from analysis.desk.job import JOB, REPORT_HTML, REPORT_JSON, REPORT_TEXT, TRIAGE, Wanted
from analysis.desk.store import Store

logger = logging.getLogger(__name__)

MOST_SECONDS = 600.0
KEPT = (REPORT_HTML, REPORT_JSON, REPORT_TEXT, TRIAGE)
_NICE = 10
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
    look_back_seconds: float
    clock: Callable[[], float]
    changed: Callable[[int], None]
    marker: Marker | None = None
    _queue: asyncio.Queue[int] = field(default_factory=asyncio.Queue)
    _waiting: set[int] = field(default_factory=set)
    _process: asyncio.subprocess.Process | None = None

    def ask(self, number: int) -> None:
        """Have an incident's report made, or made anew; once however often that is asked while it waits."""
        if number not in self._waiting:
            self._waiting.add(number)
            self.store.set_work(number, Work.WAITING)
            self._queue.put_nowait(number)
            self.changed(number)

    def files(self, number: int) -> Path:
        """The folder of an incident: its name is a number of ours and nothing that anybody sent."""
        return self.folder / f"{number:d}"

    async def run(self) -> None:
        """Work until cancelled; what an earlier desk left undone comes first."""
        for number in self.store.unfinished():
            self.ask(number)
        while True:
            number = await self._queue.get()
            self._waiting.discard(number)
            try:
                await self._report(number)
            except Exception:
                logger.exception("incident %d: an error in thrashold itself", number)
                self._done(number, Work.FAILED, "an error in thrashold itself: the log has it")

    async def end(self) -> None:
        """End what runs; a restart begins it anew."""
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _report(self, number: int) -> None:
        incident = self.store.incident(number)
        if incident is None:
            return
        self.store.set_work(number, Work.RUNNING)
        self._tell(number, "a report is made")
        if self.marker is not None:
            await self.marker.mark(incident, self.files(number))
        until = self.clock()
        made = self.files(number) / "new"
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        wanted = Wanted(
            incident.opened - self.look_back_seconds,
            until,
            incident.engines,
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
            self.store.set_work(number, Work.DONE, until)
            self._tell(number, f"the report is there, {self.clock() - until:.0f} s after it was begun")
        else:
            self._done(number, Work.FAILED, "there is no report")

    async def _run(self, number: int, made: Path) -> int:
        self._process = process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "analysis.desk.job",
            str(made),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            limit=_MOST_LINE_BYTES,
            preexec_fn=lambda: os.nice(_NICE),  # the desk hears alerts first
        )
        assert process.stdout is not None  # noqa: S101 - asked for above
        try:
            async with asyncio.timeout(MOST_SECONDS):
                async for line in process.stdout:
                    with contextlib.suppress(ValueError):
                        self._tell(number, str(json.loads(line)))
                return await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
            self._tell(number, f"it took more than {MOST_SECONDS:g} s and was given up")
            return 1

    def _done(self, number: int, work: Work, text: str) -> None:
        self.store.set_work(number, work)
        self._tell(number, text)

    def _tell(self, number: int, text: str) -> None:
        self.store.tell(number, self.clock(), text)
        self.changed(number)
