"""A real Chromium without a window, asked over a pipe: what a page logs, asks the network for, and looks like."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROGRAM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
"""None: there is none on this machine."""
_QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)

_WIRED = (
    "import fcntl, os, sys; ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]];"
    "os.dup2(ends[0], 3); os.dup2(ends[1], 4); os.execv(sys.argv[3], sys.argv[3:])"
)
"""It reads commands from descriptor 3 and answers on 4."""


class Browser:
    """One page of one browser: commands of its debugging protocol, and what it told meanwhile."""

    def __init__(self, reading: int, writing: int, seconds: float) -> None:
        self._reading, self._writing = reading, writing
        self._rest = b""
        self._number = 0
        self._until = time.monotonic() + seconds
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: object) -> dict[str, Any]:
        """One command, and its answer; what is told meanwhile is kept. Raises RuntimeError: it was refused."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") != self._number:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            else:
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if time.monotonic() > self._until:
                raise TimeoutError("the browser takes too long")
            piece = os.read(self._reading, 1 << 20)
            if not piece:
                raise EOFError("the browser is gone")
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def open(self, path: Path, width: int = 1280, height: int = 900) -> None:
        """Show a file in a window of that many CSS pixels."""
        self.resize(width, height)
        self.events.clear()
        self.send("Page.navigate", url=path.resolve().as_uri())
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def visit(self, url: str, width: int = 1280, height: int = 900) -> None:
        """Show what a server has, in a window of that many CSS pixels."""
        self.resize(width, height)
        self.events.clear()
        self.send("Page.navigate", url=url)
        self.wait(f"document.readyState === 'complete' && location.href === {json.dumps(url)}")

    def resize(self, width: int, height: int) -> None:
        """Make the window so large; a narrow one is a phone's."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def value(self, expression: str) -> Any:  # noqa: ANN401 - whatever the page says
        """Of JavaScript in the page."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def wait(self, expression: str) -> None:
        """Until it is true in the page."""
        while not self.value(expression):
            time.sleep(0.02)

    def hover(self, x: float, y: float) -> None:
        """Move the pointer there."""
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def scheme(self, name: str, media: str = "") -> None:
        """``dark`` or ``light``; ``media`` "print": as on paper."""
        self.send(
            "Emulation.setEmulatedMedia",
            media=media,
            features=[{"name": "prefers-color-scheme", "value": name}],
        )

    def shot(self, path: Path | None = None, *, whole: bool = False) -> bytes:
        """What is seen, or the ``whole`` page, as PNG; into a file where one is given."""
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        picture = base64.b64decode(answer["data"])
        if path is not None:
            path.write_bytes(picture)
        return picture

    def problems(self) -> list[str]:
        """Exceptions, errors and warnings that the page had since it was opened, what its policy refused among them."""
        found = []
        for event in self.events:
            params = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"]))
            elif event["method"] == "Log.entryAdded" and params["entry"]["level"] in {"error", "warning"}:
                found.append(params["entry"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled" and params["type"] in {
                "error",
                "warning",
                "assert",
            }:
                found.append(" ".join(str(each.get("value")) for each in params["args"]))
        return found

    def requests(self) -> list[str]:
        """Addresses that the page asked for, itself and what is inside of it (``data:``) left out."""
        addresses = [
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent" and event["params"]["type"] != "Document"
        ]
        return [each for each in addresses if not each.startswith("data:")]


@contextlib.contextmanager
def browser(seconds: float = 60.0) -> Iterator[Browser]:
    """A browser that is ended afterwards; everything in it is over after so many seconds."""
    if PROGRAM is None:
        raise FileNotFoundError("there is no Chromium here")
    commands_out, commands_in = os.pipe()
    answers_out, answers_in = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [
                *(sys.executable, "-c", _WIRED, str(commands_out), str(answers_in)),
                *(PROGRAM, *_QUIET, f"--user-data-dir={profile}"),
            ],
            pass_fds=(commands_out, answers_in),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands_out)
        os.close(answers_in)
        try:
            yield Browser(answers_out, commands_in, seconds)
        finally:
            os.close(commands_in)
            os.close(answers_out)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
