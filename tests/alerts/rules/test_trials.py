"""Every alert in promtool: it fires for the one that is ill, in time, with its words, and stays quiet of all else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from alerts.catalogue import ALERTS, RECORDINGS
from alerts.pack.watching import WATCHDOG
from alerts.pack_settings import PackSettings
from alerts.render import recording_group, rule
from tests.alerts.rules import cache, engine, fleet, gateway, latency, machine, swap, watching
from tests.alerts.rules.promtool import OK, verdicts
from tests.alerts.rules.trials import Fires, Quiet, Trial, alerts_of, promtool_test

MODULES = (cache, swap, latency, machine, gateway, engine, fleet, watching)
PLAIN = PackSettings()


class Variant(NamedTuple):
    """A trial as it is run."""

    trial: Trial
    twice: bool = False
    bare: bool = False

    def file(self) -> dict[str, object]:
        """Of tests. The one rule alone, and what it needs to be recorded."""
        alert = self.trial.alert
        groups = recorded_for(ALERTS[alert].promql(PLAIN.rendering))
        recorded = [f"{name}.recorded.json" for name in groups]
        kind = "bare" if self.bare else "rules"
        return {
            "rule_files": [*recorded, *(f"{name}.{kind}.json" for name in alerts_of(self.trial))],
            "evaluation_interval": f"{self.trial.step}s",
            "group_eval_order": [
                *(recording_group(name, PLAIN)["name"] for name in groups),
                *alerts_of(self.trial),
            ],
            "tests": [promtool_test(self.trial, twice=self.twice, bare=self.bare)],
        }


def recorded_for(expression: str) -> list[str]:
    """Groups of recordings that it reads, and those that these read, in order."""
    found, text = set[str](), expression
    for name, group in reversed(RECORDINGS.items()):
        if any(each.name in text for each in group.recordings):
            found.add(name)
            text += " ".join(each.promql(PLAIN.rendering) for each in group.recordings)
    return [name for name in RECORDINGS if name in found]


def named() -> Iterator[tuple[str, Variant]]:
    """Each trial, and each once more with all pages scraped twice."""
    for module in MODULES:
        for trial in module.TRIALS:
            kind = type(trial).__name__.lower()
            name = re.sub(r"\W+", "-", f"{trial.alert} {kind} {trial.why}")
            yield name, Variant(trial)
            if isinstance(trial, Fires) and trial.twice:
                yield f"{name}-twice", Variant(trial, twice=True, bare=not trial.steady)


VARIANTS = dict(named())


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What promtool says of each."""
    files: dict[str, dict[str, object]] = {
        f"{name}.recorded.json": {"groups": [recording_group(name, PLAIN)]} for name in RECORDINGS
    }
    for name, alert in ALERTS.items():
        made = rule(alert, PLAIN)
        bare = {key: value for key, value in made.items() if key != "annotations"}
        files[f"{name}.rules.json"] = {"groups": [{"name": name, "rules": [made]}]}
        files[f"{name}.bare.json"] = {"groups": [{"name": name, "rules": [bare]}]}
    files |= {f"{name}.json": variant.file() for name, variant in VARIANTS.items()}
    return verdicts(files, tmp_path_factory.mktemp("trials"))


@pytest.mark.parametrize("name", VARIANTS)
def test_promtool_agrees(name: str, told: dict[str, str]) -> None:
    assert told[f"{name}.json"] == OK


@pytest.mark.parametrize("alert", sorted(set(ALERTS) - {WATCHDOG.name}))
def test_every_alert_is_tried_and_so_is_its_silence(alert: str) -> None:
    kinds = {type(each.trial) for each in VARIANTS.values() if alert in alerts_of(each.trial)}
    assert kinds == {Fires, Quiet}


def test_names_of_trials_tell_them_apart() -> None:
    assert len(VARIANTS) == len(list(named()))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_what_a_pager_shows_has_no_gap(module: ModuleType) -> None:
    """What promtool compares with is literal: it says here that it would be worth reading."""
    for expected in (trial.expected() for trial in module.TRIALS if isinstance(trial, Fires)):
        assert all(expected["exp_labels"].values())
        for words in expected["exp_annotations"].values():
            assert words
            assert not re.search(r"<no value>|\{\{|  |^[ :]| $|\bNaN\b", words)


def test_the_watchdog_always_fires(tmp_path: Path) -> None:
    made = rule(WATCHDOG, PLAIN)
    alert = {"exp_labels": made["labels"], "exp_annotations": made["annotations"]}
    checks = [
        {"eval_time": at, "alertname": WATCHDOG.name, "exp_alerts": [alert]} for at in ("0s", "10m", "1h")
    ]
    files = {
        "rules.json": {"groups": [{"name": "one", "rules": [made]}]},
        "test.json": {
            "rule_files": ["rules.json"],
            "evaluation_interval": "1m",
            "tests": [{"interval": "1m", "input_series": [], "alert_rule_test": checks}],
        },
    }
    assert verdicts(files, tmp_path) == {"test.json": OK}
