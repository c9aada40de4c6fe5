"""``thrashold triage`` on the real engine while the one run goes on: idle, under load, in overload, frozen, gone.

It watches the marks of the run and asks at its moments, as somebody at a terminal would; it disturbs nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.real_engine.install import ROOT

FILE = "triage.jsonl"
SIDECAR, ALONE = "beside a sidecar", "alone"
_LOOK_SECONDS = 0.2
_ASK_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Moment:
    """So long after a mark of the run."""

    state: str
    mark: str
    seconds: float


MOMENTS = (
    Moment("idle", "ready", 3.0),
    Moment("load", "load", 5.0),
    Moment("overload", "overload", 30.0),
    Moment("standing", "long_stop", 10.0),
    Moment("frozen", "long_stop", 32.5),
    Moment("gone", "gone", 1.0),
)
"""A frozen engine is known as such after 30 s, and can be suspected at once."""


class TriageRun:
    """Asks at ``MOMENTS`` from ``start`` to ``stop``."""

    def __init__(self, engine: str, sidecar: str, out: Path) -> None:
        self._engine, self._sidecar = engine, sidecar
        self._marks, self._file = out / "marks.jsonl", out / FILE
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """From now on."""
        self._file.write_text("")
        self._thread.start()

    def stop(self) -> None:
        """Ask no more; what is being asked is waited for."""
        self._ended.set()
        self._thread.join(_ASK_SECONDS)

    def _run(self) -> None:
        for moment in MOMENTS:
            while (at := self._marked(moment.mark)) is None or time.time() < at + moment.seconds:
                if self._ended.wait(_LOOK_SECONDS):
                    return
            with self._file.open("a", encoding="utf-8") as sink:
                for told in self._asked(moment.state):
                    sink.write(json.dumps(told) + "\n")

    def _marked(self, name: str) -> float | None:
        whole = self._marks.read_text(encoding="utf-8").rpartition("\n")[0]
        marks = (json.loads(line) for line in whole.splitlines())
        return next((mark["t"] for mark in marks if mark["what"] == name), None)

    def _asked(self, state: str) -> Iterator[dict[str, object]]:
        command = [sys.executable, str(ROOT / "thrashold.py"), "triage", "--json", self._engine, "--sidecar"]
        asking = {
            way: subprocess.Popen([*command, where], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for way, where in ((SIDECAR, self._sidecar), (ALONE, "none"))
        }
        for way, process in asking.items():
            out, err = process.communicate(timeout=_ASK_SECONDS)
            said = json.loads(out) if out else {"error": err.decode()}
            yield {"state": state, "way": way, "code": process.returncode, "said": said}
