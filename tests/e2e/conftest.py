"""One run for all tests, act by act, and the table of its figures at the end.

THRASHOLD_E2E_OUT says where the traces go (``.real_engine/e2e``). With THRASHOLD_E2E_JUDGE=1 nothing is started: the
traces that lie there are judged again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import engine_run, incident_run, judge_engine, judge_incident
from tests.real_engine import install, judging, report
from tests.real_engine.conftest import teller
from tests.real_engine.judging import Figure
from tests.support.prometheus import tool

FIGURES = pytest.StashKey[dict[str, Figure]]()
PROGRAMS = (("prometheus", "prometheus"), ("prometheus-alertmanager", "prometheus-alertmanager"))


@pytest.fixture(scope="session")
def traces() -> Path:
    """Where the run's traces lie; what an earlier one left there is gone."""
    folder = Path(os.environ.get("THRASHOLD_E2E_OUT") or install.HOME / "e2e")
    if not _judged_again():
        shutil.rmtree(folder, ignore_errors=True)
    return folder


@pytest.fixture(scope="session")
def engine_figures(request: pytest.FixtureRequest, traces: Path) -> dict[str, Figure]:
    """Of the first act. Skips where no engine can be had, except in CI."""
    folder = traces / "engine"
    _play(engine_run.record, folder, request.config)
    return _kept(request.config, judging.judged(judge_engine.FIGURES, judge_engine.Act.load(folder)))


@pytest.fixture(scope="session")
def incident_figures(request: pytest.FixtureRequest, traces: Path) -> dict[str, Figure]:
    """Of the second act."""
    folder = traces / "incident"
    _play(incident_run.record, folder, request.config)
    return _kept(request.config, judging.judged(judge_incident.FIGURES, judge_incident.Act.load(folder)))


def _play(record: Callable[[Path, install.Say], None], folder: Path, config: pytest.Config) -> None:
    if _judged_again():
        return
    for program, package in PROGRAMS:
        tool(program, package)
    try:
        record(folder, teller(config))
    except install.UnavailableError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must have the real parts: {error}", pytrace=False)
        pytest.skip(f"not all parts are here: {error}")


def _judged_again() -> bool:
    return os.environ.get("THRASHOLD_E2E_JUDGE") == "1"


def _kept(config: pytest.Config, figures: dict[str, Figure]) -> dict[str, Figure]:
    config.stash.setdefault(FIGURES, {}).update(figures)
    return figures


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:  # noqa: ANN401 -- pytest's own
    """Measured against true, for whoever reads the log."""
    figures = config.stash.get(FIGURES, {})
    if figures:
        terminalreporter.section("end to end, real parts only")
        for line in report.table(figures):
            terminalreporter.write_line(line)
