"""The drill's model of an engine beside the engine of this run, under the same arrivals."""

from __future__ import annotations

import pytest

from tests.real_engine import judge_model
from tests.real_engine.judging import Figure

pytestmark = [pytest.mark.real, pytest.mark.timeout(2400)]


@pytest.mark.parametrize("name", judge_model.NAMES)
def test_the_model_does_as_the_engine_did(figures: dict[str, Figure], name: str) -> None:
    figure = figures[name]
    assert figure.holds, f"{figure.measured} against {figure.truth} ({figure.allowed}): {figure.note}"
