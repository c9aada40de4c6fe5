from __future__ import annotations

import pytest

from tests.evaluation.petshop import ARCHIVE, BARS, issues, reached


@pytest.mark.skipif(not ARCHIVE.is_file(), reason="the shared data isn't beside this checkout")
def test_services_to_blame_are_found_as_often_as_by_the_best_that_is_published() -> None:
    found = list(issues(ARCHIVE))
    assert len(found) == 52
    for first, bar in BARS.items():
        assert reached(found, first) >= bar
