"""A real engine behind a real Envoy, overloaded and killed, and the stack around it killed part by part.

Not part of a plain ``pytest``; ``make e2e`` runs it. One run serves all tests, so that each claim fails alone.
"""

from __future__ import annotations

import pytest

from tests.e2e.judge_engine import FIGURES
from tests.real_engine.judging import Figure

# Installing a cold engine and the whole act come under the first test.
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(3600)]


@pytest.mark.parametrize("name", FIGURES)
def test_claim_holds_of_an_overloaded_engine(engine_figures: dict[str, Figure], name: str) -> None:
    figure = engine_figures[name]
    assert figure.holds, f"{figure.measured} against {figure.truth} ({figure.allowed}): {figure.note}"
