"""What reaches a human: a real Alertmanager with the example configuration, in compressed time.

All cases go through one Alertmanager at once, each as a cluster of its own: groups and inhibitions keep clusters
apart. All its durations are divided by how many times faster the clock goes, and states are sent as Prometheus sends
them: when an alert fires, every minute while it does (at the evaluation after), and when it has ended, for a quarter of
an hour.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx
import yaml

from alerts.alertmanager import PEOPLE, configuration
from alerts.pack_settings import PackSettings
from tests.evaluation.evaluating import EVALUATION_SECONDS, Evaluated, Fired
from tests.evaluation.live_webhook import listening
from tests.support.alertmanager import started

TIMES = 30.0
"""As fast as life: the shortest duration, 10 s, is a third of a second."""
_RESEND_SECONDS = 60.0
_VALID_SECONDS = 4 * _RESEND_SECONDS
_RESOLVED_SECONDS = 900.0
_LEAD_SECONDS = 60.0
_HELD_SECONDS = 180.0
"""How long what fires at a run's end is taken to go on: longer than a warning waits to be told."""
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_DURATIONS = ("group_wait", "group_interval", "repeat_interval")


@dataclass(frozen=True, slots=True)
class Notification:
    """One that a receiver got: ``at`` on the clock of the run, what it was about, by name and labels."""

    receiver: str
    at: float
    firing: tuple[Mapping[str, str], ...]
    resolved: tuple[Mapping[str, str], ...]

    @property
    def all_clear(self) -> bool:
        """It says that nothing of its group fires any more."""
        return not self.firing

    @property
    def names(self) -> tuple[str, ...]:
        """Alerts that fire, each once."""
        return tuple(sorted({labels["alertname"] for labels in self.firing}))


def notifications(
    cases: Mapping[str, Evaluated], settings: PackSettings | None = None, *, times: float = TIMES
) -> dict[str, list[Notification]]:
    """Of each case, in order. What still fires at a run's end is taken to end soon after."""
    starts = {name: case.start for name, case in cases.items()}
    sends = _all_sends(cases)
    with tempfile.TemporaryDirectory(prefix="paging-") as folder, listening() as webhook:
        file = Path(folder) / "alertmanager.yml"
        told = _configuration(settings or PackSettings(), webhook.url, times)
        file.write_text(yaml.safe_dump(told), encoding="utf-8")
        with started(file, Path(folder)) as url, httpx.Client(trust_env=False, timeout=10.0) as client:
            begun = time.time() + 0.5
            for story, batch in groupby(sends, key=lambda send: send.story):
                _sleep_until(begun + story / times)
                client.post(
                    f"{url}/api/v2/alerts", json=[each.as_json(begun, times) for each in batch]
                ).raise_for_status()
            last = max((send.story for send in sends), default=0.0)
            # that it is over is told when its group's turn comes
            _sleep_until(begun + (last + _LEAD_SECONDS + _longest_interval(settings)) / times)
    found: dict[str, list[Notification]] = {name: [] for name in cases}
    for each in webhook.heard:
        if each.receiver not in PEOPLE:
            continue  # the desk is told by a route of its own
        name = each.alerts[0].labels["cluster"]
        at = (each.at - begun) * times + starts[name]
        firing = tuple(alert.labels for alert in each.alerts if alert.firing)
        over = tuple(alert.labels for alert in each.alerts if not alert.firing)
        found[name].append(Notification(each.receiver, at, firing, over))
    return found


@dataclass(frozen=True, slots=True)
class _Send:
    """A state as Prometheus tells it: ``story`` seconds after the run's start; ``ends``: until when it is valid."""

    story: float
    starts: float
    ends: float
    labels: Mapping[str, str]

    def as_json(self, begun: float, times: float) -> dict[str, Any]:
        """As Alertmanager takes it, on the wall's clock."""

        def wall(story: float) -> str:
            return datetime.fromtimestamp(begun + story / times, UTC).isoformat(timespec="milliseconds")

        return {"labels": dict(self.labels), "startsAt": wall(self.starts), "endsAt": wall(self.ends)}


def _all_sends(cases: Mapping[str, Evaluated]) -> list[_Send]:
    sends = [send for name, case in cases.items() for one in case.fired for send in _sends(one, name, case)]
    return sorted(sends, key=lambda send: send.story)


def _sends(one: Fired, name: str, case: Evaluated) -> Iterator[_Send]:
    labels = {**one.labels, "cluster": name}
    begins = one.at - case.start
    over = one.episode.ended_at
    ends = (case.end + _HELD_SECONDS if over is None else over) - case.start
    every = _RESEND_SECONDS + EVALUATION_SECONDS  # more than a minute: at the fifth evaluation
    story = begins
    while story < ends:
        yield _Send(story, begins, story + _VALID_SECONDS, labels)
        story += every
    story = ends
    while story <= ends + _RESOLVED_SECONDS:
        yield _Send(story, begins, ends, labels)
        story += every


def _sleep_until(wall: float) -> None:
    time.sleep(max(0.0, wall - time.time()))


def _configuration(settings: PackSettings, hook: str, times: float) -> dict[str, Any]:
    told = configuration(settings)
    for route in _routes(told["route"]):
        for key in _DURATIONS:
            if key in route:
                route[key] = f"{max(1, round(_seconds(route[key]) / times * 1000))}ms"
    for receiver in told["receivers"]:
        for each in receiver.get("webhook_configs", ()):
            each["url"] = hook
    return told


def _longest_interval(settings: PackSettings | None) -> float:
    told = configuration(settings or PackSettings())
    return max(
        _seconds(route["group_interval"]) for route in _routes(told["route"]) if "group_interval" in route
    )


def _routes(route: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield route
    for each in route.get("routes", ()):
        yield from _routes(each)


def _seconds(duration: str) -> float:
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)([smh])", duration))
