"""All scenarios, by name. A new one is a file beside this and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from drill.scenarios.overload import OVERLOAD
from drill.scenarios.scenario import Scenario
from drill.scenarios.setting import SettingError

SCENARIOS: Mapping[str, Scenario] = {each.name: each for each in (OVERLOAD,)}


def scenario_by_name(name: str) -> Scenario:
    """Of that name. Raises SettingError."""
    found = SCENARIOS.get(name)
    if found is None:
        raise SettingError(f"no scenario {name!r}: there are {', '.join(sorted(SCENARIOS))}")
    return found
