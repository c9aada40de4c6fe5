"""The sidecar beside a real vLLM: each of its claims against what the engine and its clients know.

Not part of a plain ``pytest``; ``make real`` runs it. One run serves all tests, so that each claim fails alone.
"""

from __future__ import annotations

import pytest

from tests.real_engine.figures import FIGURES
from tests.real_engine.judging import Figure

# Installing a cold engine and running it come under the first test.
pytestmark = [pytest.mark.real, pytest.mark.timeout(2400)]


@pytest.mark.parametrize("name", FIGURES)
def test_claim_holds_beside_a_real_engine(figures: dict[str, Figure], name: str) -> None:
    figure = figures[name]
    assert figure.holds, f"{figure.measured} against {figure.truth} ({figure.allowed}): {figure.note}"
