"""Writes docs/scenarios.md from the scenarios themselves."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Scene
from drill.scenarios.setting import Setting, Size

_HOURS_FROM_MINUTES = 180
_HEAD = """# Scenarios

Made by `make docs` from the scenarios themselves (`drill/scenarios/`); don't edit it. How they are run, and what a run
writes, is in [drill.md](drill.md).

Each is a fleet that is well under its load, and what goes wrong in it. They compose: `thrashold drill run
engine-frozen --with pcie-other-tenant` does both to the fleet of the first. They move: `--model`, `--gpu`,
`--generation`, `--engines`, `--ramp` and `--seed` give the same story elsewhere.

Each has the alerts that are its own ([alerts.md](alerts.md)): they fire on it. Others fire beside them, of what follows
from it: clients that wait, neighbours that get the load.
"""


def page(scenarios: Mapping[str, Scenario] = SCENARIOS) -> str:
    """The page."""
    rows = ["| scenario | cause | what happens | small | full |", "|---|---|---|---|---|"]
    for name, scenario in sorted(scenarios.items()):
        small, full = (_size(scenario.scene(Setting(size))) for size in Size)
        cause = "none" if scenario.cause is None else f"`{scenario.cause.value}`"
        rows.append(f"| [{name}](#{name}) | {cause} | {scenario.summary} | {small} | {full} |")
    told = [
        f"## {name}\n\n{scenario.story}\n{_alerts(scenario)}" for name, scenario in sorted(scenarios.items())
    ]
    return "\n".join((_HEAD, *rows, "", *told))


def _alerts(scenario: Scenario) -> str:
    if not scenario.alerts:
        return ""
    links = ", ".join(f"[{name}](runbooks/{name}.md)" for name in scenario.alerts)
    return f"\nAlerts of its own: {links}.\n"


def _size(scene: Scene) -> str:
    config = next(iter(scene.engines.values()))
    engines = "1 engine" if len(scene.engines) == 1 else f"{len(scene.engines)} engines"
    minutes = scene.seconds / 60
    length = f"{minutes:g} min" if minutes < _HOURS_FROM_MINUTES else f"{minutes / 60:g} h"
    return f"{engines}, {config.model.name} on {config.tensor_parallel} {config.gpu.name}, {length}"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
