"""Which of dcgm-exporter's values are believed: zeros that aren't, counters that stand still, old numbers."""

from __future__ import annotations

import pytest

from exporter.gpu_sample import GpuSample, GpuUtilisation, NvLink, PcieTraffic
from tests.exporter.dialects.dcgm_text import AT, Story, disagreements, one, rates, text, traffic

GB = 1e9


def test_profiling_that_says_0_while_the_gpu_works_is_not_believed() -> None:
    """DCGM#303: after XID 31 the profiling fields read 0 until DCGM starts again."""
    story = Story()
    prof = ("PROF_GR_ENGINE_ACTIVE", "PROF_SM_ACTIVE", "PROF_DRAM_ACTIVE", "PROF_PCIE_TX_BYTES")
    good = story.read(0.0, DEV_GPU_UTIL=100, **dict.fromkeys(prof, 1))
    assert good.utilisation == GpuUtilisation(1.0, 1.0, 1.0)
    for second in range(1, 4):
        stuck = story.read(float(second), DEV_GPU_UTIL=100, DEV_POWER_USAGE=second, **dict.fromkeys(prof, 0))
        assert stuck.utilisation == GpuUtilisation(1.0, None, None)
        assert traffic(stuck) == PcieTraffic("dcgm", disagreements_total=float(second))
    # not for ever: each collection is judged anew
    again = story.read(5.0, DEV_GPU_UTIL=100, **dict.fromkeys(prof, 1))
    assert again.utilisation == GpuUtilisation(1.0, 1.0, 1.0)
    assert rates(again) == (1.0, None)
    assert disagreements(again) == 3.0


def test_a_pcie_0_of_a_working_gpu_is_not_believed() -> None:
    story = Story()
    story.read(0.0, DEV_GPU_UTIL=50, PROF_PCIE_TX_BYTES=5, PROF_PCIE_RX_BYTES=5)
    blip = story.read(1.0, DEV_GPU_UTIL=50, PROF_PCIE_TX_BYTES=0, PROF_PCIE_RX_BYTES=0)
    assert (rates(blip), disagreements(blip)) == ((None, None), 1.0)
    one_way = story.read(2.0, DEV_GPU_UTIL=50, PROF_PCIE_TX_BYTES=5, PROF_PCIE_RX_BYTES=0)
    assert (rates(one_way), disagreements(one_way)) == ((5.0, 0.0), 1.0)
    idle = story.read(3.0, DEV_GPU_UTIL=0, PROF_PCIE_TX_BYTES=0, PROF_PCIE_RX_BYTES=0)
    assert (rates(idle), disagreements(idle)) == ((0.0, 0.0), 1.0)


@pytest.mark.parametrize(
    ("mover", "before", "after"),
    [
        # the values of dcgm-exporter#721, as totals
        ("PROF_PCIE_TX_BYTES_TOTAL", 3020371496, 3893142392),
        ("DEV_NVLINK_COUNT_RX_BYTES", 5, 6),
        ("DEV_NVLINK_BANDWIDTH_TOTAL", 1, 2),
        ("DEV_PCIE_REPLAY_COUNTER", 7, 8),
    ],
)
def test_a_pcie_0_while_another_counter_moves_is_a_disagreement(mover: str, before: int, after: int) -> None:
    story = Story()
    story.read(0.0, PROF_PCIE_TX_BYTES=1, PROF_PCIE_RX_BYTES=1, **{mover: before})
    zero = story.read(1.0, PROF_PCIE_TX_BYTES=0, PROF_PCIE_RX_BYTES=0, **{mover: after})
    assert rates(zero) == (None, None)
    assert disagreements(zero) == 1.0
    assert traffic(zero).out_bytes_total == (after if "PCIE_TX" in mover else None)


def test_a_pcie_0_that_was_never_anything_else_is_absent() -> None:
    """dcgm-exporter#721: always 0 on an L40S, idle or not; nothing there to contradict it."""
    story = Story()
    for second in range(3):
        gpu = story.read(
            float(second), DEV_GPU_UTIL=0, DEV_POWER_USAGE=second, PROF_PCIE_TX_BYTES=0, PROF_PCIE_RX_BYTES=0
        )
        assert traffic(gpu) == PcieTraffic("dcgm", disagreements_total=0.0)


def test_totals_that_stand_still_while_bytes_move_give_way_to_the_rate() -> None:
    story = Story()
    shown = [
        story.read(
            float(second), PROF_PCIE_TX_BYTES=100 + second, PROF_PCIE_TX_BYTES_TOTAL=7, DEV_POWER_USAGE=second
        )
        for second in range(4)
    ]
    # not at the first time: a page may be read while the totals are still to come
    assert [(traffic(each).out_bytes_total, disagreements(each)) for each in shown] == [
        *((7.0, 0.0), (7.0, 0.0)),
        *((None, 1.0), (None, 2.0)),
    ]
    assert rates(shown[-1]) == (103.0, None)


def test_a_disagreement_is_counted_once_a_collection_however_often_it_is_read() -> None:
    story = Story()
    page = {"DEV_GPU_UTIL": 90, "PROF_PCIE_TX_BYTES": 0, "PROF_GR_ENGINE_ACTIVE": 0}
    counts = [disagreements(story.read(float(second), **page)) for second in range(60)]
    assert counts == [1.0] * 60


def test_nvlink_that_never_moved_is_absent_and_one_that_rests_is_0() -> None:
    """DCGM#149: 0 for ever on a DGX A100 under load."""
    story = Story()
    never = story.read(0.0, PROF_NVLINK_TX_BYTES=0, PROF_NVLINK_RX_BYTES=0)
    assert never.nvlink is None
    moving = story.read(1.0, PROF_NVLINK_TX_BYTES=8, PROF_NVLINK_RX_BYTES=9)
    assert moving.nvlink == NvLink(out_bytes_per_second=8.0, in_bytes_per_second=9.0, source="dcgm")
    resting = story.read(2.0, PROF_NVLINK_TX_BYTES=0, PROF_NVLINK_RX_BYTES=0)
    assert resting.nvlink == NvLink(out_bytes_per_second=0.0, in_bytes_per_second=0.0, source="dcgm")


def test_an_nvlink_0_gives_way_to_what_moves() -> None:
    zero = {"PROF_NVLINK_TX_BYTES": 0, "PROF_NVLINK_RX_BYTES": 0}
    assert one(**zero, DEV_NVLINK_BANDWIDTH_TOTAL=3).nvlink == NvLink(
        bytes_per_second=3 * 1024e3, source="dcgm"
    )
    directed = {"DEV_NVLINK_TX_BANDWIDTH_TOTAL": 2, "DEV_NVLINK_RX_BANDWIDTH_TOTAL": 1}
    assert one(**zero, **directed).nvlink == NvLink(
        out_bytes_per_second=2 * 1024e3, in_bytes_per_second=1024e3, source="dcgm"
    )


def test_old_numbers_are_not_shown_as_new_ones() -> None:
    """gpu-monitoring-tools#188: a host engine that hangs leaves its last numbers on the page, for days."""
    story = Story()
    story.read(0.0, DEV_TOTAL_ENERGY_CONSUMPTION=1000, DEV_GPU_TEMP=40)
    story.read(30.0, DEV_TOTAL_ENERGY_CONSUMPTION=2000, DEV_GPU_TEMP=40)
    shown = [
        story.read(float(second), DEV_TOTAL_ENERGY_CONSUMPTION=2000, DEV_GPU_TEMP=40)
        for second in range(31, 200)
    ]
    assert [each.up for each in shown[:119]] == [True] * 119
    assert [(each.up, each.down_because, each.health) for each in shown[121:]] == [
        (False, "stale", None)
    ] * 48
    assert shown[-1].at == AT + 199
    for second in (200, 201):  # once more, as a slow exporter may still be collecting
        back = story.read(float(second), DEV_TOTAL_ENERGY_CONSUMPTION=3000, DEV_GPU_TEMP=41)
    assert (back.up, back.down_because) == (True, "")


def test_a_gpu_that_hangs_alone_is_stale_alone() -> None:
    """dcgm-exporter#164: the others go on."""
    story = Story()
    shown: tuple[GpuSample, ...] = ()
    for second in range(300):
        hung = min(second, 50)
        page = text(uuid="GPU-a", DEV_TOTAL_ENERGY_CONSUMPTION=1000 + hung, DEV_GPU_TEMP=40) + text(
            uuid="GPU-b", DEV_TOTAL_ENERGY_CONSUMPTION=1000 + second, DEV_GPU_TEMP=40
        )
        shown = story.reads(page, float(second))
    assert [(each.identity.uuid, each.up) for each in shown] == [("GPU-a", False), ("GPU-b", True)]


def test_an_energy_counter_that_never_moved_proves_nothing_while_other_numbers_move() -> None:
    story = Story()
    shown = [
        story.read(float(second), DEV_TOTAL_ENERGY_CONSUMPTION=5, DEV_GPU_TEMP=40 + second // 100)
        for second in range(400)
    ]
    assert shown[-1].up


def test_an_nvlink_0_gives_way_to_what_moves_though_it_once_moved_itself() -> None:
    story = Story()
    story.read(0.0, PROF_NVLINK_TX_BYTES=8, PROF_NVLINK_RX_BYTES=9)
    zero = story.read(1.0, PROF_NVLINK_TX_BYTES=0, PROF_NVLINK_RX_BYTES=0, DEV_NVLINK_BANDWIDTH_TOTAL=3)
    assert zero.nvlink == NvLink(bytes_per_second=3 * 1024e3, source="dcgm")


def test_numbers_collected_every_two_minutes_are_not_old_in_between() -> None:
    story = Story()
    for second in range(490):
        gpu = story.read(float(second), DEV_TOTAL_ENERGY_CONSUMPTION=1000 + second // 125, DEV_GPU_TEMP=40)
        assert gpu.up, second
