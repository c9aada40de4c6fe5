"""Late answers are as late as those of the recorded servers, and come again with their seed."""

from __future__ import annotations

import pytest

from drill.expose.stalls import Stalls
from tests.support.captures import recording


def recorded(phase: str) -> list[float]:
    return sorted(
        entry["ms"] / 1000
        for name in ("vllm-0.32.0", "vllm-0.32.0-offload")
        for entry in recording(name).lines("index.jsonl")
        if entry["phase"] == phase
    )


@pytest.mark.parametrize("phase", ["overload", "idle"])
def test_quantiles_are_the_recorded_ones(phase: str) -> None:
    stalls = Stalls(seed=1)
    drawn = sorted(stalls.seconds(busy=phase == "overload") for _ in range(20_000))
    real = recorded(phase)
    for share in (0.5, 0.75, 0.9):
        assert drawn[int(share * len(drawn))] == pytest.approx(real[int(share * len(real))], rel=0.35)
    assert drawn[-1] <= real[-1] + 1e-9
    # the few that take seconds make most of the mean
    assert sum(drawn) / len(drawn) == pytest.approx(sum(real) / len(real), rel=0.5)


def test_a_seed_repeats_its_answers() -> None:
    one, other = Stalls(7), Stalls(7)
    assert [one.seconds(busy=True) for _ in range(50)] == [other.seconds(busy=True) for _ in range(50)]
