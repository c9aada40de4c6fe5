"""The pack as files: a rule file of Prometheus, and the same as a PrometheusRule of its operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from alerts.alert import Alert
from alerts.alertmanager import configuration
from alerts.catalogue import GROUPS, RECORDINGS
from alerts.pack_settings import PackSettings
from alerts.runbooks import runbook_url

HEAD = "# Made by `thrashold alerts render`: don't edit it, set what is to be else in a file of settings.\n"
_PREFIX = "thrashold-"


class _Dumper(yaml.SafeDumper):
    """Keeps the order of keys, and expressions as blocks that people can read."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def rule_file(settings: PackSettings) -> str:
    """What goes behind ``rule_files`` of a Prometheus."""
    return HEAD + as_yaml({"groups": _groups(settings)})


def prometheus_rule(settings: PackSettings) -> str:
    """What Prometheus's operator takes."""
    return HEAD + as_yaml(
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {"name": "thrashold", "labels": {"app.kubernetes.io/name": "thrashold"}},
            "spec": {"groups": _groups(settings)},
        }
    )


def alertmanager_file(settings: PackSettings) -> str:
    """An example: receivers are webhooks of this machine's desk, to be exchanged for one's own."""
    return HEAD + as_yaml(configuration(settings))


def _groups(settings: PackSettings) -> list[dict[str, Any]]:
    """What is recorded stands before the alerts that read it, in one file, so that nobody has only half of it."""
    groups = [recording_group(name, settings) for name, group in RECORDINGS.items() if not group.before]
    for name, alerts in GROUPS.items():
        heads = (head for head, group in RECORDINGS.items() if group.before == name)
        rules = [each for head in heads for each in recording_group(head, settings)["rules"]]
        rules += [rule(alert, settings) for alert in alerts if not settings.of(alert.name).disabled]
        if rules:
            groups.append({"name": _PREFIX + name, "rules": rules})
    return groups


def recording_group(name: str, settings: PackSettings) -> dict[str, Any]:
    """One group of recording rules as Prometheus reads it. Raises KeyError."""
    group = RECORDINGS[name]
    made: dict[str, Any] = {"name": f"{_PREFIX}record-{name}"}
    if group.every_seconds is not None:
        made["interval"] = f"{group.every_seconds}s"
    rendering = settings.rendering
    made["rules"] = [{"record": each.name, "expr": each.promql(rendering)} for each in group.recordings]
    return made


def rule(alert: Alert, settings: PackSettings) -> dict[str, Any]:
    """One alert as Prometheus reads it."""
    own = settings.of(alert.name)
    wait = alert.for_seconds if own.for_seconds is None else own.for_seconds
    keep = alert.keep_firing_seconds if own.keep_firing_seconds is None else own.keep_firing_seconds
    made: dict[str, Any] = {"alert": alert.name, "expr": alert.promql(settings.rendering)}
    if wait:
        made["for"] = f"{wait}s"
    if keep:
        made["keep_firing_for"] = f"{keep}s"
    made["labels"] = {
        "severity": (own.severity or alert.severity).value,
        "cause": alert.cause.value,
    }
    made["annotations"] = {
        "summary": alert.summary,
        "description": alert.description(settings.rendering),
        "runbook_url": runbook_url(alert, settings.runbooks),
    }
    return made


def as_yaml(what: Mapping[str, Any]) -> str:
    """As files are written: keys in their order, a text of several lines as a block, no line broken."""
    return yaml.dump(what, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)
