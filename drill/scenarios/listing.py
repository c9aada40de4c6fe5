"""What there is to run, as a table for people and as JSON for programs."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable
from typing import Any

from drill.scenarios.scenario import Scenario
from drill.scenarios.setting import Setting, Size

_NO_CAUSE = "nothing"
_MINUTE, _HOUR = 60, 3600


def as_json(scenarios: Iterable[Scenario]) -> str:
    """One object each; ``cause`` is null where nothing goes wrong. Sizes are those without further options.

    ``alerts``: those that are its own.
    """
    return json.dumps([_entry(each) for each in scenarios], indent=2)


def as_table(scenarios: Iterable[Scenario], columns: int | None = None) -> str:
    """Name, cause, both sizes, and what happens.

    A line each; in a terminal of fewer ``columns`` than that takes, what happens stands below the rest.
    """
    rows = [("scenario", "cause", *(str(size) for size in Size), "what happens")]
    for each in map(_entry, scenarios):
        sizes = [f"{_engines(each[size]['engines'])}, {_time(each[size]['seconds'])}" for size in Size]
        rows.append((each["name"], each["cause"] or _NO_CAUSE, *sizes, each["summary"]))
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]) - 1)]
    facts = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)) for row in rows]
    lines = [f"{fact}  {row[-1]}" for fact, row in zip(facts, rows, strict=True)]
    if columns is None or max(map(len, lines)) <= columns:
        return "\n".join(lines)
    below = [textwrap.fill(row[-1], columns, initial_indent="  ", subsequent_indent="  ") for row in rows]
    return "\n".join(f"{fact.rstrip()}\n{text}" for fact, text in zip(facts, below, strict=True))


def _entry(scenario: Scenario) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": scenario.name,
        "cause": None if scenario.cause is None else scenario.cause.value,
        "summary": scenario.summary,
        "alerts": list(scenario.alerts),
    }
    for size in Size:
        scene = scenario.scene(Setting(size))
        entry[size.value] = {"engines": len(scene.engines), "seconds": scene.seconds}
    return entry


def _engines(count: int) -> str:
    return f"{count} engine" if count == 1 else f"{count} engines"


def _time(seconds: int) -> str:
    return f"{seconds / _HOUR:g} h" if seconds % _HOUR == 0 else f"{seconds / _MINUTE:g} min"
