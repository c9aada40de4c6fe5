"""``thrashold triage`` on the real engine, at moments of the one run, as somebody at a terminal would ask.

The run goes on when both answers are there: what is asked while a core stands still is answered while it does.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.real_engine.install import ROOT

FILE = "triage.jsonl"
SIDECAR, ALONE = "beside a sidecar", "alone"
STATES = ("idle", "load", "overload", "standing", "frozen", "gone")
SETTLED_SECONDS = 3.0
"""After a phase has begun, until it is what it is called."""
_ASK_SECONDS = 120.0


class TriageRun:
    """Asks of ``engine``, beside the sidecar whose page is at ``sidecar`` and alone, and writes down what was said."""

    def __init__(self, engine: str, sidecar: str, out: Path) -> None:
        self._file = out / FILE
        self._file.write_text("")
        command = [sys.executable, str(ROOT / "thrashold.py"), "triage", "--json", engine, "--sidecar"]
        self._commands = {SIDECAR: [*command, sidecar], ALONE: [*command, "none"]}

    def ask(self, state: str) -> None:
        """Both ways at a time."""
        asking = {
            way: subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for way, command in self._commands.items()
        }
        for way, process in asking.items():
            out, err = process.communicate(timeout=_ASK_SECONDS)
            said = json.loads(out) if out else {"error": err.decode()}
            told = {"state": state, "way": way, "code": process.returncode, "said": said}
            with self._file.open("a", encoding="utf-8") as sink:
                sink.write(json.dumps(told) + "\n")
