"""Debian's rules and boards of Ceph, which know nothing of us: read whole, and quickly, and each find is a fault."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from alerts.lint.run import Report, lint
from alerts.lint.settings import LintSettings

PACKAGES = ("ceph-prometheus-alerts", "ceph-grafana-dashboards")
_SECONDS = 2.0
_WITHOUT_RUNBOOK = 21


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the packages hold, unpacked and not installed."""
    made = tmp_path_factory.mktemp("ceph")
    for tool in ("apt-get", "dpkg"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool} here: the corpus is Debian's")
    done = subprocess.run(
        ["apt-get", "download", *PACKAGES], cwd=made, capture_output=True, text=True, check=False, timeout=60
    )
    if done.returncode:
        told = f"apt-get download {' '.join(PACKAGES)} fails (apt-get update?): {done.stderr.strip()[:300]}"
        if os.environ.get("CI") == "true":
            pytest.fail(told, pytrace=False)
        pytest.skip(told)
    for package in made.glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, made / "etc-of-it"], check=True, timeout=60)
    return made / "etc-of-it" / "etc"


@pytest.fixture(scope="module")
def told(folder: Path) -> tuple[Report, float]:
    began = time.process_time()
    report = lint([folder], LintSettings())
    return report, time.process_time() - began


def test_all_of_it_is_read_within_two_seconds_of_cpu(told: tuple[Report, float]) -> None:
    report, seconds = told
    assert (report.files, report.queries, report.troubles, report.passed_over) == (14, 279, (), 0)
    assert seconds < _SECONDS


def test_each_find_is_one_that_can_be_defended(told: tuple[Report, float]) -> None:
    """Means of means in four panels: latencies of OSDs and gateways weigh idle ones as much as busy ones.

    Alerts without a page: those that have no ``documentation``. Nothing else: none of it is about engines.
    """
    report, _ = told
    assert Counter(problem.check for problem in report.problems) == {
        "averaged-average": 4,
        "missing-runbook": _WITHOUT_RUNBOOK,
    }
    for problem in report.problems:
        text = Path(problem.file).read_text(encoding="utf-8")
        if problem.check == "averaged-average":
            rest = "\n".join(text.splitlines()[problem.place.line - 1 :])[problem.place.column - 1 :]
            assert rest.startswith(("avg", "sum"))
            assert "_sum{" in rest[:120]
        else:
            rule = text.partition(f'alert: "{problem.where}"')[2].partition("- alert:")[0]
            assert "documentation:" not in rule
            assert "runbook" not in rule
