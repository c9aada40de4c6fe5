"""A recorded engine that offloads, on eight made-up GPUs whose PCIe carries just that and something else."""

from __future__ import annotations

import json

import pytest

from tests.exporter.golden import FOLDER, GPU_FILE, GPU_RECORDING, said_of_gpus
from tests.support.gpu_replay import GPUS, OTHER_IN, OTHER_OUT, replayed_with_gpus
from tests.support.gpus import identity

LEFT = {"in": GPUS * OTHER_IN, "out": GPUS * OTHER_OUT}


def test_every_signal_of_gpus_is_what_it_was() -> None:
    golden = json.loads((FOLDER / f"{GPU_FILE}.json").read_text(encoding="utf-8"))
    now = said_of_gpus()
    assert now.keys() == golden.keys()
    for index, values in golden.items():
        assert now[index] == pytest.approx(values, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("direction", ["in", "out"])
def test_share_and_residual_are_right_within_three_percent(direction: str) -> None:
    judged = 0
    for cycle in replayed_with_gpus(GPU_RECORDING):
        values = cycle.named()
        share = values.get(f"pcie_swap_share_ratio{{direction={direction}}}")
        if share is None:
            continue
        left = values[f"pcie_unexplained_bytes_per_second{{direction={direction}}}"]
        everything = left / (1 - share)
        true_share = 1 - LEFT[direction] / everything
        assert share == pytest.approx(true_share, rel=0.03)
        assert abs(left - LEFT[direction]) <= 0.03 * everything
        judged += 1
    assert judged > 50


def test_what_the_gpus_carried_is_in_their_totals() -> None:
    cycles = replayed_with_gpus(GPU_RECORDING)
    ours = cycles[-1].named()
    uuid = identity().uuid
    swapped = ours["swap_bytes_total{rank=0,direction=out}"]
    seconds = cycles[-1].at - cycles[0].at
    told = ours[f"pcie_bytes_total{{uuid={uuid},direction=out}}"]
    assert told == pytest.approx(swapped / GPUS * 1.09 + OTHER_OUT * seconds, rel=0.001)


def test_the_engine_is_joined_with_all_gpus_of_the_machine() -> None:
    values = replayed_with_gpus(GPU_RECORDING)[-1].named()
    assert sum(name.startswith("engine_gpu_info") for name in values) == GPUS
    assert sum(name.startswith("gpu_starved_ratio") for name in values) == GPUS
    assert values["collective_bytes_per_second"] == pytest.approx(GPUS * 1e6)
