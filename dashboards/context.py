"""What all boards share: settings of the pack, who is linked to whom, and alerts as Prometheus keeps them."""

from __future__ import annotations

from dataclasses import dataclass

from alerts.alert import Severity
from alerts.pack_settings import PackSettings
from alerts.thresholds import Thresholds
from dashboards.normalise import Json
from dashboards.panels import DATASOURCE, Variable
from dashboards.queries import Expression, Look, Where, variable
from exporter.derive.ranks import ENGINE_INFO
from exporter.signal import Signal
from exporter.source_signals import BUILD_INFO

WORKER_UID = "thrashold-worker"
FIRING = "ALERTS"
"""The series that Prometheus itself writes while an alert fires."""


@dataclass(frozen=True, slots=True)
class Context:
    """How boards are rendered: ``thrashold dashboards render --config FILE`` reads the same file as the alerts do."""

    settings: PackSettings

    @property
    def lines(self) -> Thresholds:
        """The numbers that alerts compare with."""
        return self.settings.thresholds

    def look(self, *follows: str) -> Look:
        """What a board's queries follow beside the cluster."""
        return Look(self.settings.rendering, follows)

    def legend(self, *labels: str, said: str = "") -> str:
        """A legend that tells clusters apart."""
        names = [f"{{{{{label}}}}}" for label in (*self.settings.cluster_labels, *labels)]
        return " ".join([*names, said] if said else names)

    def clusters(self, signal: Signal = BUILD_INFO) -> tuple[Variable, ...]:
        """A list for each label that tells clusters apart."""
        return tuple(
            Variable(label, label.capitalize(), variable(self.settings.rendering, signal, label, before=True))
            for label in self.settings.cluster_labels
        )

    def engines(self, *, several: bool) -> Variable:
        """The engines of the picked clusters."""
        return Variable(
            "engine", "Engine", variable(self.settings.rendering, ENGINE_INFO, "engine"), several=several
        )

    def to_worker(self, labels: str = "__field.labels") -> Json:
        """A link to one engine's board; ``labels``: where Grafana finds the labels of what was clicked."""
        picked = [*self.settings.cluster_labels, "engine"]
        values = "&".join(f"var-{label}=${{{labels}.{label}}}" for label in picked)
        url = f"/d/{WORKER_UID}?${{datasource:queryparam}}&{values}&${{__url_time_range}}"
        return {"title": "This engine's board", "url": url}

    def firing(self, where: Where = (), *, follows: tuple[str, ...] = ()) -> Expression:
        """Alerts that fire: one series each."""
        clusters = self.settings.cluster_labels
        labels = ("alertname", "severity", "engine", "gateway", "uuid", "source")
        matchers = ['alertstate="firing"', f'severity!="{Severity.INFO.value}"']
        matchers += [f'{label}=~"${label}"' for label in (*clusters, *follows)]
        matchers += [f'{label}="{value}"' for label, value in where]
        by = ", ".join((*clusters, *labels))
        return Expression(f"max by ({by}) ({FIRING}{{{','.join(matchers)}}})", (), labels, clusters)

    def annotations(self, *, follows: tuple[str, ...] = ()) -> tuple[Json, ...]:
        """Pages and warnings as marks over all panels, the latter off until they are asked for."""
        return tuple(
            {
                "datasource": DATASOURCE,
                "enable": severity is Severity.PAGE,
                "expr": self.firing((("severity", severity.value),), follows=follows).text,
                "hide": False,
                "iconColor": color,
                "name": name,
                "step": "15s",
                "tagKeys": "alertname",
                "textFormat": "{{engine}} {{gateway}} {{uuid}}",
                "titleFormat": "{{alertname}}",
            }
            for severity, name, color in (
                (Severity.PAGE, "Pages", "red"),
                (Severity.WARNING, "Warnings", "orange"),
            )
        )
