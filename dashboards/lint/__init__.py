"""Rules for boards, after those of Grafana's dashboard-linter. What metrics mean is the alerts' linter's.

Left out of that linter's rules, and why:

- template-job-rule, template-instance-rule, target-job-rule, target-instance-rule: a sidecar watches several engines,
  and an engine is told by ``cluster`` and ``engine`` wherever it is scraped. The Sidecar board has instances.
- target-counter-agg-rule, target-logql-rule: panels are made of signals that know what they count; no LogQL.
- template-label-promql-rule: a query's variables are tried on a real Prometheus by the tests instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dashboards.lint.board_rules import BOARD_RULES
from dashboards.lint.finding import Board, Finding, panels_of
from dashboards.lint.panel_rules import PANEL_RULES

__all__ = ["Finding", "findings"]


def findings(board: Board) -> list[Finding]:
    """All that is wrong with a board, in the order of rules and panels."""
    return list(_findings(board))


def _findings(board: Board) -> Iterator[Finding]:
    for name, rule in BOARD_RULES.items():
        for problem in rule(board):
            yield Finding(name, "", problem)
    for place, panel in enumerate(panels_of(board)):
        title: Any = panel.get("title", "")
        for name, of_panel in PANEL_RULES.items():
            for problem in of_panel(panel):
                yield Finding(name, str(title), problem, place)
