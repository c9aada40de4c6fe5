"""One run as it lies on disk: what the sidecar said, what the oracle and the clients know, and when what was done.

marks.jsonl    the schedule as it came to pass (``Marks``)
sidecar.jsonl  a scrape of the sidecar a second (``recorder``)
probed.jsonl   the same of a second sidecar, which hears the probe too
toggle.jsonl   a line a step while the probe was switched off and on (``oracle/thrashold_toggle``)
oracle.jsonl   truth from inside the engine's scheduler (``oracle/``)
clients.jsonl  truth from outside, a line a request (``drive.py``)
engine.log, sidecar.log, probed.log
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.real_engine.recorder import Row, read_rows
from tests.real_engine.truth import Oracle, Request, Toggled, read_oracle, read_requests, read_toggled

FILES = ("marks.jsonl", "sidecar.jsonl", "oracle.jsonl", "clients.jsonl", "probed.jsonl", "toggle.jsonl")


class Marks:
    """Writes down when the run did what."""

    def __init__(self, file: Path) -> None:
        """Into ``file``, a JSON line a mark."""
        self._file = file
        file.write_text("")

    def __call__(self, what: str, **more: float | str) -> None:
        """Now ``what`` happens."""
        with self._file.open("a", encoding="utf-8") as sink:
            sink.write(json.dumps({"t": time.time(), "what": what, **more}) + "\n")


@dataclass(frozen=True, slots=True)
class Recording:
    """A run read back."""

    rows: list[Row]
    oracle: Oracle
    requests: list[Request]
    marks: dict[str, float]
    facts: dict[str, float | str]
    probed: list[Row] = field(default_factory=list)
    toggled: list[Toggled] = field(default_factory=list)

    @classmethod
    def load(cls, folder: Path) -> Recording:
        """The run that ``folder`` holds."""
        marks, rows, oracle, requests, probed, toggled = (_lines(folder / name) for name in FILES)
        times: dict[str, float] = {}
        facts: dict[str, float | str] = {}
        for mark in map(json.loads, marks):
            times[mark.pop("what")] = mark.pop("t")
            facts |= mark
        return cls(
            read_rows(rows),
            read_oracle(oracle),
            read_requests(requests),
            times,
            facts,
            read_rows(probed),
            read_toggled(toggled),
        )

    def between(self, begin: str, end: str) -> list[Row]:
        """The scrapes from one mark to another."""
        return [row for row in self.rows if self.marks[begin] <= row.at <= self.marks[end]]

    def last_before(self, mark: str) -> Row:
        """The last scrape before a mark."""
        return [row for row in self.rows if row.at < self.marks[mark]][-1]

    def of_probed(self, begin: str, end: str) -> list[Row]:
        """The scrapes of the sidecar that hears the probe, from one mark to another."""
        return [row for row in self.probed if self.marks[begin] <= row.at <= self.marks[end]]

    def probed_before(self, mark: str) -> Row:
        """The last of them before a mark."""
        return [row for row in self.probed if row.at < self.marks[mark]][-1]

    def of_phase(self, phase: str) -> list[Request]:
        """The requests of one phase's clients."""
        return [request for request in self.requests if request.phase == phase]


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines(keepends=True)
