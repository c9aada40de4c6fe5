"""One incident's report, in a process of its own: ``python -m analysis.desk.job FOLDER``.

``FOLDER/job.json`` says what is wanted. Whatever is found is put beside it, and each step is a line on standard output,
as JSON, for the desk to pass on. A recorder that doesn't answer costs its own part and nothing else.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlencode

import msgspec

from analysis.desk.narrowing import MOST_SIDECARS, narrowed
from analysis.desk.settings import DeskSettings, WorkerSettings
from exporter.clock import anchored_clock
from exporter.settings import SettingsError, load
from exporter.sources.endpoint import Endpoint, Reply, shown
from exporter.sources.failure import ENGINE, ReadFailedError, Reason

JOB, RECORDED, TRIAGE = "job.json", "recorded.om", "triage.json"
REPORT_HTML, REPORT_JSON, REPORT_TEXT = "report.html", "report.json", "report.md"
ENVIRONMENT_PREFIX = "THRASHOLD_DESK_"
_OURS = (sys.executable, "-m", "thrashold")
_TRIAGE_SECONDS, _ANALYSIS_SECONDS = 30.0, 280.0
_MOST_LINE = 500
_NICE = 10
"""The desk hears alerts first."""
_MOST_WORKERS = 8
"""Of one report: an hour of a worker with eight GPUs is a quarter of a gigabyte of text, analysed in ten seconds."""
_MOST_WORKER_HOURS = 16.0
"""Of one report, all workers together: more is read from the server, 15 times as coarse, where there is one."""
_AT_ONCE = 2
"""That are held in memory."""
_PIECE_SECONDS = 3600.0
"""Of a recording that are asked for at a time: a bound on an answer is one on such a piece."""
_BUSY_SECONDS, _BUSY_TRIES = 5.0, 12
"""A recorder answers one at a time, and others with 503: somebody else's look takes seconds."""
_END = b"# EOF\n"


class Wanted(msgspec.Struct, frozen=True):
    """What is asked of a job. ``engines``: those that the alerts name; none: all that are known. ``cluster``: labels.

    ``config``: the desk's own settings in a file, since secrets are named there and stay there.
    """

    start: float
    end: float
    engines: tuple[str, ...]
    cluster: dict[str, str]
    config: str | None
    environment: dict[str, str]
    flags: dict[str, str]


def main() -> int:
    """Gives the exit code: 0 when there is a report."""
    os.nice(_NICE)
    threading.Thread(target=_end_with_desk, daemon=True).start()
    folder = Path(sys.argv[1])
    wanted = msgspec.json.decode((folder / JOB).read_bytes(), type=Wanted)
    try:
        settings = load(
            DeskSettings,
            file=Path(wanted.config) if wanted.config else None,
            environ=wanted.environment,
            flags=wanted.flags,
            prefix=ENVIRONMENT_PREFIX,
        )
    except SettingsError as error:
        _say(f"settings can't be read any more: {error}")
        return 1
    workers = [each for each in settings.workers if _concerns(each, wanted)]
    triage = _triage_begun(workers[:_MOST_WORKERS])
    source = _source(settings, _asked_of(settings, workers, wanted), wanted, folder)
    _triage_ended(triage, folder)
    if source is None:
        return 1
    return _analysed(source, wanted, folder)


def _end_with_desk() -> None:
    """Whatever ends the desk closes its side of standard input; nobody waits for a report then, nor for its parts."""
    while os.read(0, 1):
        pass
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _concerns(worker: WorkerSettings, wanted: Wanted) -> bool:
    return not wanted.engines or not worker.engines or not set(worker.engines).isdisjoint(wanted.engines)


def _asked_of(settings: DeskSettings, workers: list[WorkerSettings], wanted: Wanted) -> list[WorkerSettings]:
    """Those whose flight recorders are read; none where the server has to do for that long and that many."""
    hours = (wanted.end - wanted.start) / 3600
    fit = max(1, min(_MOST_WORKERS, int(_MOST_WORKER_HOURS / hours)))
    if len(workers) <= fit:
        return workers
    if settings.prometheus and fit < _MOST_WORKERS:
        _say(f"{len(workers)} workers over {hours:.1f} h: their flight recorders hold more than can be read")
        return []
    _say(f"{len(workers)} workers are concerned: the first {fit} are asked")
    return workers[:fit]


def _source(
    settings: DeskSettings, workers: list[WorkerSettings], wanted: Wanted, folder: Path
) -> str | None:
    """Where history is, as seen from the folder: flight recorders, since they have each second; else the server.

    None, and said: nowhere.
    """
    with (folder / RECORDED).open("wb") as out:
        read = asyncio.run(_pulled(workers, wanted, out))
        out.write(_END)
    if read:
        return RECORDED
    if settings.prometheus:
        _say(f"history comes from {shown(settings.prometheus)}")
        return settings.prometheus
    _say(
        "there is no history: no flight recorder of these engines answered, and no Prometheus is set; see `workers` and"
        " `prometheus` in the desk's settings"
    )
    return None


async def _pulled(workers: list[WorkerSettings], wanted: Wanted, out: BinaryIO) -> int:
    """Write what they hold, one after the other; gives how many answered."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(worker: WorkerSettings) -> bool:
        async with turns:
            return await _one(worker, wanted, out)

    return sum(await asyncio.gather(*(one(worker) for worker in workers)))


async def _one(worker: WorkerSettings, wanted: Wanted, out: BinaryIO) -> bool:
    """Write what one holds, an hour after the other; gives whether there was any."""
    written, seconds, problem, asked, empty = 0, 0.0, "", 0, 0
    for start, end in _pieces(wanted):
        asked += 1
        try:
            reply = await _piece(worker, start, end)
        except ReadFailedError as error:
            problem = str(error)
            if error.reason is not Reason.HTTP_STATUS or error.status == HTTPStatus.SERVICE_UNAVAILABLE:
                break  # it isn't there, or takes too long: later hours would fare no better
            empty += 1  # nothing was recorded in that hour, perhaps
            continue
        body = reply.body
        # a slice of bytes would be a second copy of it
        out.write(memoryview(body)[: len(body) - len(_END) if body.endswith(_END) else len(body)])
        written += len(body)
        seconds += reply.seconds
    if written:
        of_some = f"; {empty} of {asked} parts of that time are not in it" if empty else ""
        _say(f"the flight recorder of {worker.name}: {written / 1e6:.1f} MB in {seconds:.1f} s{of_some}")
    if problem and not (written and empty):
        _say(f"the flight recorder of {worker.name}: {problem}")
    return bool(written)


def _pieces(wanted: Wanted) -> Iterator[tuple[float, float]]:
    count = math.ceil((wanted.end - wanted.start) / _PIECE_SECONDS)
    length = (wanted.end - wanted.start) / count
    for place in range(count):
        yield wanted.start + place * length, wanted.start + (place + 1) * length


async def _piece(worker: WorkerSettings, start: float, end: float) -> Reply:
    query = urlencode({"from": f"{start:.3f}", "to": f"{end:.3f}"})
    asked = replace(worker.sidecar, url=f"{worker.sidecar.url}?{query}")
    endpoint = Endpoint(asked, anchored_clock(), ENGINE)
    try:
        return await _in_turn(endpoint, worker)
    finally:
        await endpoint.aclose()


async def _in_turn(endpoint: Endpoint, worker: WorkerSettings) -> Reply:
    """What it answers once it has time. Raises ReadFailedError."""
    for turn in range(_BUSY_TRIES - 1):
        try:
            return await endpoint.read()
        except ReadFailedError as error:
            if error.status != HTTPStatus.SERVICE_UNAVAILABLE:
                raise
            if turn == 0:
                _say(f"the flight recorder of {worker.name} is busy: it is asked again, for a minute at most")
        await asyncio.sleep(_BUSY_SECONDS)
    return await endpoint.read()


def _triage_begun(workers: list[WorkerSettings]) -> dict[str, subprocess.Popen[bytes]]:
    return {
        worker.name: subprocess.Popen(  # noqa: S603 - our own command
            [*_OURS, "triage", worker.triage, "--json"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for worker in workers
        if worker.triage
    }


def _triage_ended(begun: dict[str, subprocess.Popen[bytes]], folder: Path) -> None:
    told: dict[str, Any] = {}
    for engine, process in begun.items():
        try:
            out, _ = process.communicate(timeout=_TRIAGE_SECONDS)
            told[engine] = json.loads(out)
            _say(f"triage of {engine}: {told[engine].get('verdict') or told[engine].get('error')}")
        except (subprocess.TimeoutExpired, ValueError):
            process.kill()
            process.wait()
            _say(f"triage of {engine}: no answer")
    if told:
        (folder / TRIAGE).write_text(json.dumps(told, indent=1), encoding="utf-8")


def _analysed(source: str, wanted: Wanted, folder: Path) -> int:
    _say("the history is analysed")
    # asked for from inside: the report names its source, and where the desk keeps its files is nobody's business
    command = [*_OURS, "analyze", source, "--start", f"{wanted.start:.3f}", "--end", f"{wanted.end:.3f}"]
    if source != RECORDED:
        matchers = narrowed(source, wanted.engines, wanted.cluster, wanted.start, wanted.end)
        if matchers:
            _say(
                f"it has more than {MOST_SIDECARS} sidecars: those of these engines are read, or some of them"
            )
        command += [text for each in matchers for text in ("--match", each)]
    try:
        done = subprocess.run(  # noqa: S603 - our own command
            [*command, "--out", "."],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_ANALYSIS_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        _say(f"the analysis took more than {_ANALYSIS_SECONDS:g} s and was given up")
        return 1
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        _say(f"the analysis failed: {lines[-1] if lines else f'exit code {done.returncode}'}")
        return 1
    return 0 if (folder / REPORT_HTML).is_file() else 1


def _say(text: str) -> None:
    sys.stdout.write(json.dumps(text[:_MOST_LINE]) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
