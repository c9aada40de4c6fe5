"""What all boards share: settings of the pack, who is linked to whom, and alerts as Prometheus keeps them."""

from __future__ import annotations

from dataclasses import dataclass

from alerts.alert import Severity
from alerts.catalogue import ALERTS
from alerts.pack.promql import Where
from alerts.pack_settings import PackSettings
from alerts.thresholds import Thresholds
from dashboards.board import Variable
from dashboards.normalise import Json
from dashboards.panels import DATASOURCE
from dashboards.queries import MODEL, Expression, Look, variable
from exporter.derive.ranks import ENGINE_INFO
from exporter.source_signals import BUILD_INFO

WORKER_UID = "thrashold-worker"
FIRING = "ALERTS"
"""The series that Prometheus itself writes while an alert fires."""

SUBJECTS = tuple(
    dict.fromkeys(label for alert in ALERTS.values() for label in alert.labels if label != MODEL)
)
"""Labels that say what an alert is about."""


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

    def clusters(self, *, several: bool = True) -> tuple[Variable, ...]:
        """A list for each label that tells clusters apart."""
        rendering = self.settings.rendering
        return tuple(
            Variable(
                label,
                label.capitalize(),
                variable(rendering, BUILD_INFO, label, before=True),
                several=several,
            )
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
        """Alerts that fire: one series each. ``follows``: of what is picked there, and of what has no such label."""
        clusters = self.settings.cluster_labels
        labels = ("severity", "alertname", *SUBJECTS)
        matchers = ['alertstate="firing"', f'severity!="{Severity.INFO.value}"']
        matchers += [f'{label}=~"${label}"' for label in clusters]
        # what speaks of no engine, as a gateway, is about all of them
        matchers += [f'{label}=~"${label}|"' for label in follows]
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
                "textFormat": " ".join(f"{{{{{label}}}}}" for label in SUBJECTS),
                "titleFormat": "{{alertname}}",
            }
            for severity, name, color in (
                (Severity.PAGE, "Pages", "red"),
                (Severity.WARNING, "Warnings", "orange"),
            )
        )
