"""Scrapes the sidecar once a second, as a Prometheus would, and keeps what it said."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import httpx
from prometheus_client.parser import text_string_to_metric_families

INTERVAL_SECONDS = 1.0
PREFIX = "thrashold_"


class Value(NamedTuple):
    """One value of the exposition, its name without the prefix."""

    name: str
    labels: dict[str, str]
    value: float
    kind: str


class Row(NamedTuple):
    """One scrape: when it was asked for, how long it took, what came (nothing: it failed)."""

    at: float
    seconds: float
    error: str
    values: list[Value]

    def all(self, name: str, **labels: str) -> list[Value]:
        """The values of a signal whose labels include these."""
        return [v for v in self.values if v.name == name and labels.items() <= v.labels.items()]

    def get(self, name: str, **labels: str) -> float | None:
        """The one value of a signal with these labels; None when it is absent."""
        found = self.all(name, **labels)
        if len(found) > 1:
            raise ValueError(f"{name} {labels} is not one value but {len(found)}")
        return found[0].value if found else None


def parse(text: str) -> list[Value]:
    """The sidecar's own values in an exposition; those of its Python runtime stay out."""
    return [
        Value(sample.name.removeprefix(PREFIX), dict(sample.labels), sample.value, family.type)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith(PREFIX)
    ]


def read_rows(lines: Iterable[str]) -> list[Row]:
    """What a recorder has written."""
    rows = []
    for line in lines:
        at, seconds, error, values = json.loads(line)
        rows.append(Row(at, seconds, error, [Value(*value) for value in values]))
    return rows


class Recorder:
    """A thread that scrapes ``url`` until ``stop`` and writes a JSON line a scrape."""

    def __init__(self, url: str, file: Path) -> None:
        """Of a sidecar at ``url`` into ``file``."""
        self._url, self._file = url, file
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the scrape in progress."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        due = time.monotonic()
        with (
            httpx.Client(timeout=5.0, trust_env=False) as client,
            self._file.open("w", encoding="utf-8") as sink,
        ):
            while not self._stop.is_set():
                sink.write(json.dumps(self._scrape(client)) + "\n")
                sink.flush()
                due = max(due + INTERVAL_SECONDS, time.monotonic())
                self._stop.wait(due - time.monotonic())

    def _scrape(self, client: httpx.Client) -> Row:
        at, began = time.time(), time.perf_counter()
        try:
            answer = client.get(self._url).raise_for_status()
        except httpx.HTTPError as error:
            return Row(at, time.perf_counter() - began, repr(error), [])
        seconds = time.perf_counter() - began
        try:
            return Row(at, seconds, "", parse(answer.text))
        except ValueError as error:  # an exposition that can't be read is a failed scrape too
            return Row(at, seconds, repr(error), [])
