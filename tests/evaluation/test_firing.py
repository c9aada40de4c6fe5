"""The state machine beside a Prometheus that runs, and that is started anew: some of what the command does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluation.firing_live import live

pytestmark = pytest.mark.long


def test_a_live_prometheus_does_the_same_also_over_a_restart(tmp_path: Path) -> None:
    found = live(60, 20, seed=7, folder=tmp_path, starts=2)
    assert found.differ == ()
    assert found.starts == 2
    assert found.states > 100
    assert found.restored > 0
