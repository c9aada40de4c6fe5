"""What a trial of an alert is: one subject of many falls ill, and the alert says so, of it alone and in time.

Two clusters, two engines in each, two ranks, two GPUs, two gateways: all of them healthy but one. When an alert has to
fire and to end follows from its ``for`` and ``keep_firing_for``, so that a trial needs no change when those do.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from alerts.alert import Alert
from alerts.catalogue import ALERTS
from alerts.pack_settings import PackSettings
from alerts.render import rule
from exporter.signal import Kind, Scope, Signal

CLUSTERS, ENGINES, PAIR = ("east", "west"), ("a", "b"), ("0", "1")
MODEL = "llama"
ILL: Mapping[str, str] = {
    "cluster": "east",
    "engine": "a",
    "rank": "1",
    "model_name": MODEL,
    "uuid": "GPU-east-a-1",
    "gateway": "g",
    "source": "a",
    "instance": "east-a:9807",
}
"""The subject that falls ill, by the labels that tell it from the others."""
SUBJECTS: Mapping[Scope, Callable[[str, str], list[dict[str, str]]]] = {
    Scope.RANK: lambda _, engine: [{"engine": engine, "rank": rank, "model_name": MODEL} for rank in PAIR],
    Scope.ENGINE: lambda _, engine: [{"engine": engine}],
    Scope.GPU: lambda cluster, engine: [{"uuid": f"GPU-{cluster}-{engine}-{index}"} for index in PAIR],
    Scope.GATEWAY: lambda _, engine: [{"gateway": {"a": "g", "b": "h"}[engine]}],
    Scope.SOURCE: lambda _, engine: [{"source": engine}, {"source": "nvml"}],
    Scope.SIDECAR: lambda _, __: [{}],
}
STEP_SECONDS = 15


@dataclass(frozen=True, slots=True)
class Prometheus:
    """What Prometheus itself says of each sidecar that it scrapes."""

    full_name: str
    kind: Kind = Kind.GAUGE
    scope: Scope = Scope.SIDECAR


UP = Prometheus("up")
_HELD_STEPS = 10
Value = float | None
Labels = dict[str, str]


@dataclass(frozen=True, slots=True)
class Told:
    """A signal: what the healthy say, and what the ill one says while it is ill. A counter rises by so much a second.

    ``ill`` may be several values, of which the last holds on. ``at`` says who is ill, unless it is the one of ``ILL``;
    ``after`` what it says when it is over, unless what the healthy say. None: nothing. With ``raw`` a counter's values
    stand as they are. Labels of ``where`` may name others of the series: ``GPU-{engine}``.
    """

    signal: Signal | Prometheus
    healthy: Value
    ill: Value | tuple[Value, ...]
    where: tuple[tuple[str, str], ...] = ()
    at: Mapping[str, str] | None = None
    after: Value | str = "healthy"
    raw: bool = False

    def rows(self, phases: tuple[int, int, int], step: int) -> Iterator[tuple[Labels, list[Value]]]:
        """Each series with its values."""
        for cluster, engine in itertools.product(CLUSTERS, ENGINES):
            for subject in SUBJECTS[self.signal.scope](cluster, engine):
                labels = {"cluster": cluster, "instance": f"{cluster}-{engine}:9807", **subject}
                labels |= {name: value.format(**labels) for name, value in self.where}
                yield labels, self._values(phases, step, ill=self._is_ill(labels))

    def _is_ill(self, labels: Labels) -> bool:
        wanted = self.at or {name: value for name, value in ILL.items() if name in labels}
        return wanted.items() <= labels.items()

    def _values(self, phases: tuple[int, int, int], step: int, *, ill: bool) -> list[Value]:
        calm, held, over = phases
        after = self.healthy if self.after == "healthy" else self.after
        course = self.ill if isinstance(self.ill, tuple) else (self.ill,)
        course = (*course, *course[-1:] * held)[:held]
        told = (
            [*[self.healthy] * calm, *course, *[after] * over]
            if ill
            else [self.healthy] * (calm + held + over)
        )
        if self.signal.kind is Kind.GAUGE or self.raw:
            return told
        return [round(each, 6) for each in itertools.accumulate([0.0, *(each * step for each in told[:-1])])]


@dataclass(frozen=True, slots=True)
class Fires:
    """The ill one falls ill, the alert fires for it alone, and ends.

    Where the expression looks back over a window it sees the beginning some time ``within_seconds``, and the end some
    time ``ends_within_seconds`` (None: not looked at); else both at once. ``summary`` is what the pager shows,
    ``labels`` those of the ill one where they aren't ``ILL``'s, ``worst`` what the description ends with. Where the
    words' numbers aren't ``steady`` to the end, that is looked at without words.
    """

    alert: str
    why: str
    told: tuple[Told, ...]
    summary: str
    within_seconds: int = 0
    ends_within_seconds: int | None = 0
    calm_seconds: int = 120
    step: int = STEP_SECONDS
    labels: Mapping[str, str] = field(default_factory=dict)
    worst: str = ""
    steady: bool = True
    twice: bool = True
    """Whether what is scraped twice is tried, too."""

    def checks(self, *, bare: bool = False) -> Iterator[tuple[int, bool]]:
        """Instants in seconds, and whether it fires: never before ``for`` has passed, always once it has."""
        steady = self.steady or bare
        alert = ALERTS[self.alert]
        begun, end, gone = self._instants()
        yield begun - self.step, False
        if alert.for_seconds:
            yield begun + self._waits(alert) - self.step, False
        yield begun + self.within_seconds + self._waits(alert), True
        yield end - self.step, True
        if steady:
            yield end - self.step + max(0, self._keeps(alert) - self.step), True
        if self.ends_within_seconds == 0 and steady:
            yield gone - self.step, True
        if self.ends_within_seconds is not None:
            yield gone, False

    def phases(self) -> tuple[int, int, int]:
        """In steps: healthy, ill, healthy again."""
        begun, end, gone = self._instants()
        return begun // self.step, (end - begun) // self.step, (gone - end) // self.step + 2

    def expected(self, *, bare: bool = False) -> dict[str, Any]:
        """The one alert, as promtool wants it; ``bare``: without words."""
        alert = ALERTS[self.alert]
        made = rule(alert, PackSettings())
        labels = {name: {**ILL, **self.labels}[name] for name in ("cluster", *alert.labels)}
        if bare:
            return {"exp_labels": {**made["labels"], **labels}}
        shown = {**made["annotations"], "summary": self.summary}
        if alert.worst is not None:
            shown["description"] = f"{alert.meaning} {self.worst}"
        return {"exp_labels": {**made["labels"], **labels}, "exp_annotations": shown}

    def _waits(self, alert: Alert) -> int:
        """Its ``for``, in whole evaluations."""
        return -(-alert.for_seconds // self.step) * self.step

    def _keeps(self, alert: Alert) -> int:
        return -(-alert.keep_firing_seconds // self.step) * self.step

    def _instants(self) -> tuple[int, int, int]:
        """When the ill one falls ill, is well again, and when the alert is gone."""
        alert = ALERTS[self.alert]
        end = self.calm_seconds + self.within_seconds + self._waits(alert) + _HELD_STEPS * self.step
        return self.calm_seconds, end, end + (self.ends_within_seconds or 0) + self._keeps(alert)


@dataclass(frozen=True, slots=True)
class Quiet:
    """One is ill, though not of this: the alert says nothing at any time, or from ``from_seconds`` on.

    Nor do ``others``, which look at the same.
    """

    alert: str
    why: str
    told: tuple[Told, ...]
    calm_seconds: int = 120
    ill_seconds: int = 0
    """How long; unless set, the alert's ``for`` and five minutes more."""
    from_seconds: int = 0
    step: int = STEP_SECONDS
    others: tuple[str, ...] = ()

    def phases(self) -> tuple[int, int, int]:
        """See Fires."""
        ill = self.ill_seconds or max(ALERTS[name].for_seconds for name in (self.alert, *self.others)) + 300
        return self.calm_seconds // self.step, ill // self.step, 300 // self.step

    def checks(self) -> Iterator[tuple[int, bool]]:
        """See Fires."""
        steps = sum(self.phases())
        instants = (steps * part // 12 * self.step for part in range(1, 13))
        yield from ((at, False) for at in instants if at >= self.from_seconds)


Trial = Fires | Quiet


def alerts_of(trial: Trial) -> tuple[str, ...]:
    """Those that it is about."""
    return (trial.alert,) if isinstance(trial, Fires) else (trial.alert, *trial.others)


def promtool_test(trial: Trial, *, twice: bool, bare: bool) -> dict[str, Any]:
    """One test of promtool's. ``twice``: every page is scraped by two jobs; ``bare``: the rules have no words."""
    rows = [(each.signal, row) for each in trial.told for row in each.rows(trial.phases(), trial.step)]
    jobs = ("thrashold", "again") if twice else ("thrashold",)
    fires = isinstance(trial, Fires)
    expected = [trial.expected(bare=bare)] if fires else []
    checks = trial.checks(bare=bare) if fires else trial.checks()
    return {
        "interval": f"{trial.step}s",
        "input_series": [
            {"series": _series(signal, {**labels, "job": job}), "values": _notation(values)}
            for signal, (labels, values) in rows
            for job in jobs
        ],
        "alert_rule_test": [
            {"eval_time": f"{at}s", "alertname": name, "exp_alerts": expected if firing else []}
            for at, firing in checks
            for name in alerts_of(trial)
        ],
    }


def _series(signal: Signal | Prometheus, labels: Labels) -> str:
    return signal.full_name + "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"


def _notation(values: list[Value]) -> str:
    """Equal values in a row are told once: promtool takes ``5x3`` for four of them."""
    parts = []
    for value, run in itertools.groupby(values):
        count = len(list(run))
        parts.append(f"_x{count}" if value is None else f"{value:.10g}x{count - 1}")
    return " ".join(parts)
