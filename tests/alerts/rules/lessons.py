"""What tests of lessons share: a few series, the pack over them, and what promtool says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from alerts.alert import Alert
from alerts.catalogue import ALERTS, RECORDINGS
from alerts.pack_settings import PackSettings
from alerts.render import recording_group, rule
from tests.alerts.rules.promtool import verdicts

PLAIN = PackSettings()
RANK = 'rank="0",model_name="m"'
USAGE = "thrashold_kv_usage_ratio"


class Value(NamedTuple):
    """What an expression gives at an instant: samples by their labels."""

    expression: str
    at: str
    samples: Sequence[tuple[str, float]] = ()


Firing = Mapping[str, Sequence[Mapping[str, str]]]


def tried(  # noqa: PLR0913 -- what promtool is given
    folder: Path,
    names: Sequence[str],
    series: Mapping[str, str],
    firing: Mapping[str, Firing],
    *,
    step: str = "15s",
    values: Sequence[Value] = (),
) -> str:
    """What promtool says: ``firing`` has by instant, by alert, the labels of those that fire; words don't matter here.

    ``values``: what expressions give at an instant.
    """
    files: dict[str, Any] = {
        f"{name}.json": {"groups": [recording_group(name, PLAIN)]} for name in RECORDINGS
    }
    rules = [
        {key: part for key, part in rule(ALERTS[name], PLAIN).items() if key != "annotations"}
        for name in names
    ]
    files["alerts.json"] = {"groups": [{"name": "alerts", "rules": rules}]}
    checks = [
        {
            "eval_time": at,
            "alertname": name,
            "exp_alerts": [{"exp_labels": {**_fixed(ALERTS[name]), **labels}} for labels in expected],
        }
        for at, alerts in firing.items()
        for name, expected in alerts.items()
    ]
    asked = [
        {
            "expr": each.expression,
            "eval_time": each.at,
            "exp_samples": [{"labels": labels, "value": number} for labels, number in each.samples],
        }
        for each in values
    ]
    files["test.json"] = {
        "rule_files": [*(f"{name}.json" for name in RECORDINGS), "alerts.json"],
        "group_eval_order": [*(recording_group(name, PLAIN)["name"] for name in RECORDINGS), "alerts"],
        "evaluation_interval": step,
        "tests": [
            {
                "interval": step,
                "input_series": [{"series": name, "values": row} for name, row in series.items()],
                "alert_rule_test": checks,
                "promql_expr_test": asked,
            }
        ],
    }
    return verdicts(files, folder)["test.json"]


def _fixed(alert: Alert) -> dict[str, str]:
    return {"severity": alert.severity.value, "cause": alert.cause.value}


def usage(cluster: str, engine: str, instance: str = "i") -> str:
    return f'{USAGE}{{cluster="{cluster}",engine="{engine}",{RANK},instance="{instance}"}}'


def events(cluster: str, engine: str, *, good: str, slo: str = "ttft", instance: str = "i") -> str:
    labels = f'cluster="{cluster}",engine="{engine}",slo="{slo}",good="{good}",instance="{instance}"'
    return f"thrashold_slo_events_total{{{labels}}}"
