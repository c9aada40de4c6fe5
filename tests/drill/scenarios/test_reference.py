"""docs/scenarios.md is what the scenarios say."""

from __future__ import annotations

from pathlib import Path

from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.reference import page

PAGE = Path(__file__).resolve().parents[3] / "docs" / "scenarios.md"


def test_the_committed_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"


def test_every_scenario_tells_its_story_in_a_paragraph_of_its_own() -> None:
    for name, scenario in SCENARIOS.items():
        assert len(scenario.story.split("\n\n")) >= 2, name
        assert scenario.summary.endswith("."), name
