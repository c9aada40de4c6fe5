"""One run of the real engine for all its tests, and the table of its figures at the end.

THRASHOLD_REAL_ENGINE_OUT says where ``last_run.json`` and, beside it, the traces in ``last_run/`` go
(``.real_engine/``). With THRASHOLD_REAL_ENGINE_JUDGE=1 nothing is started: the traces that lie there are judged
again.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.real_engine import install, judge_model, report, run
from tests.real_engine.judging import Figure
from tests.real_engine.recording import Recording

LINES = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def traces() -> Path:
    """Where the one run's traces lie."""
    return Path(os.environ.get("THRASHOLD_REAL_ENGINE_OUT") or install.HOME) / "last_run"


@pytest.fixture(scope="session")
def figures(request: pytest.FixtureRequest, traces: Path) -> dict[str, Figure]:
    """Runs everything (about four minutes) and judges it. Skips where no engine can be had, except in CI."""
    if os.environ.get("THRASHOLD_REAL_ENGINE_JUDGE") != "1":
        try:
            run.record(traces, teller(request.config))
        except install.UnavailableError as error:
            if os.environ.get("CI") == "true":
                pytest.fail(f"CI must have the real engine: {error}", pytrace=False)
            pytest.skip(f"no real engine: {error}")
    recording = Recording.load(traces)
    made = report.judged(recording) | judge_model.judged(traces)
    report.write(traces.with_suffix(".json"), recording, made)
    about = ", ".join(f"{name} {value}" for name, value in report.circumstances(recording).items())
    request.config.stash[LINES] = [*report.table(made), "", about]
    return made


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Measured against true, for whoever reads the log and for the release notes."""
    lines = config.stash.get(LINES, None)
    if lines:
        terminalreporter.section("the sidecar beside a real engine")
        for line in lines:
            terminalreporter.write_line(line)


def teller(config: pytest.Config) -> install.Say:
    """Says how far the run is at once, past pytest's capture: four silent minutes look like a hang."""
    capture = config.pluginmanager.getplugin("capturemanager")
    terminal = config.pluginmanager.getplugin("terminalreporter")

    def say(what: str) -> None:
        with capture.global_and_fixture_disabled():
            terminal.ensure_newline()
            terminal.write_line(what)

    return say
