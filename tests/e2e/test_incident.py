"""The drill's incident through the whole stack: the page, the report, and the numbers against the truth."""

from __future__ import annotations

import pytest

from tests.e2e.judge_incident import FIGURES
from tests.real_engine.judging import Figure

# The whole act comes under the first test.
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(2400)]


@pytest.mark.parametrize("name", FIGURES)
def test_claim_holds_of_the_incident(incident_figures: dict[str, Figure], name: str) -> None:
    figure = incident_figures[name]
    assert figure.holds, f"{figure.measured} against {figure.truth} ({figure.allowed}): {figure.note}"
