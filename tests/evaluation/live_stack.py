"""The whole way of an alert, of real programs on loopback.

``thrashold drill serve``, a ``thrashold exporter`` beside each engine, which reads its engine, its machine's GPUs and
the gateway, a Prometheus with our rules, an Alertmanager with our configuration, and a webhook in place of people.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from alerts.alertmanager import configuration
from alerts.pack_settings import PackSettings
from alerts.render import rule_file
from tests.evaluation.live_webhook import Webhook, listening
from tests.exporter.running import ROOT, clean_environment, running
from tests.support import alertmanager, prometheus
from tests.support.processes import end

CLUSTER = "drill"
RECORDING = "recording.db"
_DRILL = (sys.executable, str(ROOT / "thrashold.py"), "drill", "serve")
_MACHINE = re.compile(r"^GPUs of (\S+) +(http\S+)$", re.MULTILINE)
_START_SECONDS = 120.0
_END_SECONDS = 60.0
_WEBHOOK = re.compile(r"^https?://[^/]+")


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between scrapes, and between evaluations of rules."""

    seconds: int = 15


@dataclass(slots=True)
class Served:
    """A drill that is served, and what it says."""

    process: subprocess.Popen[bytes]
    out: Path
    _read: int = field(default=0)

    @property
    def log(self) -> Path:
        """All that it has said."""
        return self.out / "serve.log"

    @property
    def running(self) -> bool:
        """Whether it goes on."""
        return self.process.poll() is None

    def new_lines(self) -> list[str]:
        """Whole lines that it said since this was last asked."""
        text = self.log.read_bytes()[self._read :]
        whole, found, _ = text.rpartition(b"\n")
        self._read += len(whole) + len(found)
        return whole.decode().splitlines()


@dataclass(frozen=True, slots=True)
class Stack:
    """All of it, as it runs. ``sidecars``: their URLs; ``recordings``: theirs, by engine."""

    served: Served
    prometheus: prometheus.Prometheus
    webhook: Webhook
    sidecars: Sequence[str]
    recordings: Mapping[str, Path]


@contextlib.contextmanager
def live(folder: Path, drill: Sequence[str], settings: PackSettings, pace: Pace) -> Iterator[Stack]:
    """Everything, started in the order in which it can see what is before it, and ended in the other.

    ``drill``: what ``thrashold drill serve`` is given. Raises RuntimeError where a part of it doesn't start.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as parts:
        webhook = parts.enter_context(listening())
        served = parts.enter_context(_serving(folder, drill))
        recordings, contexts = {}, []
        for name, sidecar in _sidecars(served).items():
            own = folder / f"sidecar-{name}"
            own.mkdir(exist_ok=True)
            file, recordings[name] = own / "sidecar.yaml", own / RECORDING
            file.write_text(yaml.safe_dump(sidecar, sort_keys=False))
            contexts.append(running("--config", str(file), "--recorder", str(recordings[name])))
        # all at once: on a busy machine a dozen would take minutes of the drill one after the other
        with ThreadPoolExecutor(len(contexts)) as pool:
            sidecars = list(pool.map(parts.enter_context, contexts))
        for started in sidecars:
            # what is recorded is kept where it ends in its own time
            parts.callback(started.terminate)
        targets = [started.url.removeprefix("http://") for started in sidecars]
        manager_file = folder / "alertmanager.yml"
        manager_file.write_text(yaml.safe_dump(_to(webhook.url, configuration(settings)), sort_keys=False))
        manager = parts.enter_context(alertmanager.started(manager_file, folder))
        server = parts.enter_context(
            prometheus.started(_prometheus(folder, targets, manager, settings, pace), folder / "data")
        )
        yield Stack(served, server, webhook, [each.url for each in sidecars], recordings)


@contextlib.contextmanager
def _serving(folder: Path, drill: Sequence[str]) -> Iterator[Served]:
    with (folder / "serve.log").open("wb") as sink:
        process = subprocess.Popen(
            [*_DRILL, *drill, "--port-base", "0", "--out", str(folder)],
            env=clean_environment(),
            cwd=ROOT,
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
    served = Served(process, folder)
    try:
        until = time.monotonic() + _START_SECONDS
        while "thrashold exporter --config" not in served.log.read_text():
            if not served.running or time.monotonic() > until:
                raise RuntimeError(f"the drill isn't served:\n{served.log.read_text()}")
            time.sleep(0.05)
        served.new_lines()
        yield served
    finally:
        end(process, _END_SECONDS)


def _sidecars(served: Served) -> dict[str, dict[str, Any]]:
    """Settings of one beside each engine, out of those that the drill wrote for one beside all of them."""
    told = yaml.safe_load((served.out / "sidecar.yaml").read_text())
    machines = dict(_MACHINE.findall(served.log.read_text()))
    return {
        engine["name"]: {
            "engines": [engine],
            "gateways": told["gateways"],
            "gpus": {"nvml": "never", "dcgm": machines[engine["name"]]},
        }
        for engine in told["engines"]
    }


def _to(url: str, configured: dict[str, Any]) -> dict[str, Any]:
    """The same configuration, with our webhook in place of each of its own: the path stays."""
    receivers = [
        each
        | {
            "webhook_configs": [
                hook | {"url": _WEBHOOK.sub(url, hook["url"])} for hook in each.get("webhook_configs", [])
            ]
        }
        for each in configured["receivers"]
    ]
    return configured | {"receivers": receivers}


def _prometheus(
    folder: Path, targets: Sequence[str], manager: str, settings: PackSettings, pace: Pace
) -> Path:
    rules = folder / "thrashold.rules.yml"
    rules.write_text(rule_file(settings))
    every = f"{pace.seconds}s"
    file = folder / "prometheus.yml"
    file.write_text(
        yaml.safe_dump(
            {
                "global": {"scrape_interval": every, "evaluation_interval": every},
                "rule_files": [str(rules)],
                "alerting": {
                    "alertmanagers": [{"static_configs": [{"targets": [manager.removeprefix("http://")]}]}]
                },
                "scrape_configs": [
                    {
                        "job_name": "thrashold",
                        "scrape_timeout": f"{min(pace.seconds, 10)}s",
                        "static_configs": [{"targets": list(targets), "labels": {"cluster": CLUSTER}}],
                    }
                ],
            },
            sort_keys=False,
        )
    )
    return file
