"""Runs the linter over texts, for its tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from alerts.lint.problem import Problem
from alerts.lint.run import Report, lint_text
from alerts.lint.settings import LintSettings

RUNBOOK = "https://runbooks.example/x"


def rules(*made: Mapping[str, Any], **group: object) -> str:
    """A rule file with one group, as JSON, which is YAML too."""
    return "# a rule file\n" + json.dumps({"groups": [{"name": "g", **group, "rules": list(made)}]}, indent=1)


def alert(expr: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 -- whatever a rule may have
    """A rule that lacks nothing else."""
    return {"alert": "A", "expr": expr, "annotations": {"runbook_url": RUNBOOK}, **more}


def board(expr: str, *, kind: str = "timeseries", **panel: Any) -> str:  # noqa: ANN401 -- whatever a panel may have
    """A board with one panel."""
    return json.dumps({"panels": [{"type": kind, "title": "P", "targets": [{"expr": expr}], **panel}]})


def linted(text: str, settings: LintSettings | None = None) -> Report:
    """What is found in a text that can be read."""
    report = lint_text("file", text, settings or LintSettings())
    assert not report.troubles, report.troubles
    return report


def finds(check: str, text: str, settings: LintSettings | None = None) -> list[Problem]:
    """What one check finds in a rule file or a board."""
    return [problem for problem in linted(text, settings).problems if problem.check == check]


def finds_in(check: str, expr: str, settings: LintSettings | None = None) -> list[Problem]:
    """What one check finds in the expression of an alert."""
    return finds(check, rules(alert(expr)), settings)
