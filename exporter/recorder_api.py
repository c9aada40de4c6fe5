"""``GET /api/v1/recorder``: a range of the recording as OpenMetrics, read by a process of its own.

The sidecar passes bytes on and no more, so ``/metrics`` answers as fast as ever meanwhile. One export
at a time: each keeps a core busy and holds up the clearing of the recording's write-ahead log.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from typing import IO, TypeAlias

from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from exporter.recorder_request import EMPTY, REFUSED, Request, understood
from exporter.service import accepts_gzip

logger = logging.getLogger(__name__)

PATH = "/api/v1/recorder"
CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
STALL_SECONDS = 60.0
"""A client that takes nothing for so long is given up: others may be waiting."""
_MOST_SECONDS = 1800.0
_PIECE_BYTES = 1 << 16
_PATIENCE_SECONDS = 1.0
"""A client sees an export's end a moment before its process has ended; the next request waits for that."""
_RETRY_SECONDS = 10
_END_STEP_SECONDS = 0.005
_LAST_SECONDS = 0.04
_STATUS_OF_EXIT = {REFUSED: 400, EMPTY: 404}
_PACKAGES = str(Path(__file__).resolve().parents[1])


Child: TypeAlias = Popen[bytes]


class RecorderPage:
    """The page as a bare ASGI application over the recording at ``path``; 404 where there is none.

    ``clock`` gives seconds since the epoch, as the recording has them.
    """

    def __init__(self, path: Path | None, clock: Callable[[], float]) -> None:
        self._path = path
        self._clock = clock
        self._turn = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if self._path is None:
            await _refusal(404, "nothing is recorded: start the sidecar with --recorder FILE")(
                scope, receive, send
            )
            return
        try:
            asked = understood(scope["query_string"].decode("latin-1"), self._clock())
        except ValueError as error:
            await _refusal(400, str(error))(scope, receive, send)
            return
        headers = scope["headers"]
        zipped = accepts_gzip(b",".join(value for name, value in headers if name == b"accept-encoding"))
        if scope["method"] == "HEAD":
            await _begin(send, zipped=zipped)
            await send({"type": "http.response.body", "body": b""})
            return
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._turn.acquire()
        except TimeoutError:
            await _refusal(503, "another export is under way; try again later")(scope, receive, send)
            return
        try:
            await self._export(self._path, asked, zipped, scope, receive, send)
        finally:
            self._turn.release()

    async def _export(  # noqa: PLR0913, PLR0917 - the three of ASGI among them
        self,
        path: Path,
        asked: Request,
        zipped: bool,  # noqa: FBT001
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        try:
            child = _started(path, asked, zipped=zipped)
        except OSError as error:
            await _refusal(503, f"the export can't be started: {error.strerror}")(scope, receive, send)
            return
        try:
            await _while_wanted(receive, _answer(child, zipped, scope, receive, send))
        except asyncio.CancelledError:
            # the server cancels only at its own end, and would call it an error of ours
            logger.warning("export of the recording: broken off, the sidecar ends")
        finally:
            child.kill()
            try:
                await _end_of(child)
            except (
                asyncio.CancelledError
            ):  # the loop ends as well; a recording is closed after its last reader
                with contextlib.suppress(TimeoutExpired):
                    child.wait(_LAST_SECONDS)
            for pipe in (child.stdout, child.stderr):
                _of(pipe).close()


def _started(path: Path, asked: Request, *, zipped: bool) -> Child:
    request = {"path": str(path), "zipped": zipped, **asdict(asked)}
    packages = os.pathsep.join(filter(None, (_PACKAGES, os.environ.get("PYTHONPATH"))))
    # asyncio's own way leaves loose ends that complain where the loop ends first
    child = Popen(  # noqa: S603 - our own module
        (sys.executable, "-P", "-m", "exporter.recorder_child", json.dumps(request)),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        env={**os.environ, "PYTHONPATH": packages},
        process_group=0,  # what a terminal sends to end us must not end it before us
    )
    os.set_blocking(_of(child.stdout).fileno(), False)
    os.set_blocking(_of(child.stderr).fileno(), False)
    return child


async def _answer(child: Child, zipped: bool, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: FBT001
    """Answer with what ``child`` writes, or with its reason where it writes nothing."""
    piece = await _read(child.stdout)
    if not piece:
        status = _STATUS_OF_EXIT.get(await _end_of(child), 503)
        await _refusal(status, await _last_line(child))(scope, receive, send)
        return
    await _begin(send, zipped=zipped)
    while piece:
        async with asyncio.timeout(STALL_SECONDS):  # the server waits with it for the client
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        piece = await _read(child.stdout)
    if await _end_of(child) == 0:
        await send({"type": "http.response.body", "body": b""})
    else:
        # an answer that isn't brought to its end is one that clients see to be broken off
        logger.error("export of the recording: broke off: %s", await _last_line(child))


async def _while_wanted(receive: Receive, answer: Coroutine[None, None, None]) -> None:
    """Run ``answer`` until it ends, or the client goes away, or time is up."""

    async def until_gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    tasks = {asyncio.ensure_future(answer), asyncio.ensure_future(until_gone())}
    try:
        ended, _ = await asyncio.wait(tasks, timeout=_MOST_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
        if not ended:
            logger.warning("export of the recording: ended, it took longer than %g s", _MOST_SECONDS)
    except TimeoutError:
        logger.warning("export of the recording: ended, its client took nothing for %g s", STALL_SECONDS)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _begin(send: Send, *, zipped: bool) -> None:
    headers = [
        (b"content-type", CONTENT_TYPE.encode()),
        (b"content-disposition", b'attachment; filename="flight.om"'),
        (b"cache-control", b"no-store"),
        (b"vary", b"Accept-Encoding"),
    ]
    if zipped:
        headers.append((b"content-encoding", b"gzip"))
    await send({"type": "http.response.start", "status": 200, "headers": headers})


async def _last_line(child: Child) -> str:
    said = b""
    while piece := await _read(child.stderr):
        said = (said + piece)[-_PIECE_BYTES:]
    lines = said.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"exit code {child.returncode}"


async def _read(pipe: IO[bytes] | None) -> bytes:
    """Wait for what comes next, at most a piece; nothing at the end."""
    descriptor = _of(pipe).fileno()
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
    return os.read(descriptor, _PIECE_BYTES)


async def _end_of(child: Child) -> int:
    """Wait for the exit code; one that hangs in the kernel must not hang us."""
    while (code := child.poll()) is None:  # noqa: ASYNC110 - a process sets no event
        await asyncio.sleep(_END_STEP_SECONDS)
    return code


def _refusal(status: int, line: str) -> Response:
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = f"{_RETRY_SECONDS}"
    return PlainTextResponse(f"{line}\n", status, headers)


def _of(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise AssertionError("a pipe was asked for")
    return pipe
