"""Reports of what went wrong elsewhere, each a case on the fake library."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from exporter.sampler.backend import ReadError
from tests.exporter.sampler.conftest import Make

MIB = 1 << 20
Case = Callable[[Make], None]


class Issues(dict[str, Case]):
    """Cases by the issues that reported them."""

    def __call__(self, *names: str) -> Callable[[Case], Case]:
        """A case that shows what these issues reported."""

        def reported(case: Case) -> Case:
            self[" ".join(names)] = case
            return case

        return reported


def refusal(read: Callable[[], object]) -> tuple[str, str]:
    """Reason and remedy of a read that has to fail."""
    with pytest.raises(ReadError) as caught:
        read()
    return caught.value.reason, caught.value.remedy
