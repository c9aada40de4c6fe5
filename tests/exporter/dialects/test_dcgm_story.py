"""What dcgm-exporter's pages become over time: collections, XIDs, restarts, and zeros that aren't."""

from __future__ import annotations

import pytest

from exporter.gpu_sample import GpuSample, GpuUtilisation, NvLink, PcieTraffic
from tests.exporter.dialects.dcgm_text import AT, Story, one, text

GB = 1e9


def traffic(gpu: GpuSample) -> PcieTraffic:
    assert gpu.pcie is not None
    return gpu.pcie


def disagreements(gpu: GpuSample) -> float | None:
    return traffic(gpu).disagreements_total


def rates(gpu: GpuSample) -> tuple[float | None, float | None]:
    return traffic(gpu).out_bytes_per_second, traffic(gpu).in_bytes_per_second


def test_numbers_that_stand_still_are_one_sample() -> None:
    story = Story()
    first = story.read(0.0, DEV_POWER_USAGE=100.0)
    assert story.read(1.0, DEV_POWER_USAGE=100.0) is first
    assert story.read(2.0, DEV_POWER_USAGE=100.1).at == AT + 2


def test_totals_of_a_quick_exporter_are_told_as_they_run() -> None:
    story = Story()
    # collected each second, but one read comes just before a collection: no second of 0, none of double
    samples = [
        story.read(float(second), PROF_PCIE_TX_BYTES_TOTAL=total, PROF_PCIE_RX_BYTES_TOTAL=1)
        for second, total in enumerate([1e9, 2e9, 2e9, 4e9, 5e9])
    ]
    assert [(each.at - AT, traffic(each).out_bytes_total) for each in samples] == [
        (0.0, 1e9),
        (1.0, 2e9),
        (1.0, 2e9),
        (3.0, 4e9),
        (4.0, 5e9),
    ]
    assert rates(samples[-1]) == (None, None)


def slow_exporter(seconds: int) -> list[GpuSample]:
    """Read each second, collected each 30 s: 3 GB out and 6 GB in a second, 1.5 GB over NVLink."""
    story, samples = Story(), []
    for second in range(seconds):
        collected = second // 30 * 30
        samples.append(
            story.read(
                float(second),
                DEV_POWER_USAGE=100 + collected,
                PROF_PCIE_TX_BYTES_TOTAL=1e12 + collected * 3 * GB,
                PROF_PCIE_RX_BYTES_TOTAL=1e12 + collected * 6 * GB,
                DEV_NVLINK_COUNT_TX_BYTES=collected * 1.5 * GB,
            )
        )
    return samples


def test_totals_of_a_slow_exporter_become_mean_rates_never_half_a_minutes_bytes_in_a_second() -> None:
    samples = slow_exporter(100)
    # until something moves nobody knows what an interval is
    assert [traffic(each).out_bytes_total for each in samples[:6]] == [1e12] * 6
    assert [traffic(each)[1:5] for each in samples[6:31]] == [(None, None, None, None)] * 25
    assert [traffic(each)[1:5] for each in samples[31:]] == [(None, None, 3 * GB, 6 * GB)] * 69
    assert [each.nvlink for each in samples[31:]] == [NvLink(out_bytes_per_second=1.5 * GB)] * 69


def test_a_slow_exporter_is_shown_at_each_read_though_its_numbers_stand_still() -> None:
    samples = slow_exporter(100)
    assert all(second - (each.at - AT) <= 5 for second, each in enumerate(samples))
    assert samples[29].at == AT + 29


def test_a_page_read_while_a_slow_exporter_collects_makes_no_peak() -> None:
    story = Story()
    shown = []
    for second in range(100):
        collected = second // 30 * 30
        late = (second - 1) // 30 * 30  # the totals are collected a second after the rest
        page = text(
            DEV_POWER_USAGE=100 + collected, PROF_PCIE_TX_BYTES=3 * GB, PROF_PCIE_TX_BYTES_TOTAL=late * 3 * GB
        )
        shown += story.reads(page, float(second))
    told = [traffic(each) for each in shown[32:]]
    assert {each.out_bytes_total for each in told} == {None}
    # the first of all was not waited for, and came a second late
    assert [each.out_bytes_per_second for each in told[:60]] == pytest.approx([3 * GB] * 60, rel=0.04)
    assert [each.out_bytes_per_second for each in told[60:]] == [3 * GB] * 8
    assert {each.disagreements_total for each in told} == {0.0}


def test_an_exporter_that_becomes_quick_is_told_as_such_after_a_while() -> None:
    story = Story()
    shown = [
        story.read(
            float(second), PROF_PCIE_TX_BYTES_TOTAL=(second if second >= 60 else second // 30 * 30) * GB
        )
        for second in range(200)
    ]
    told = [traffic(each) for each in shown]
    assert [each.out_bytes_per_second for each in told[31:90]] == [GB] * 59
    assert told[-1] == PcieTraffic("dcgm", 199 * GB, disagreements_total=0.0)


def test_reads_that_failed_for_a_while_do_not_make_an_exporter_slow() -> None:
    story = Story()
    shown = [
        story.read(float(second), PROF_PCIE_TX_BYTES_TOTAL=second * GB) for second in (0, 1, 2, 22, 23, 24)
    ]
    assert [traffic(each).out_bytes_total for each in shown] == [0.0, GB, 2 * GB, 22 * GB, 23 * GB, 24 * GB]


def test_more_than_a_link_carries_between_two_collections_is_no_rate() -> None:
    story = Story()
    link = {"DEV_PCIE_LINK_GEN": 4, "DEV_PCIE_LINK_WIDTH": 16}
    story.read(0.0, PROF_PCIE_TX_BYTES_TOTAL=0, **link)
    shown = story.read(30.0, PROF_PCIE_TX_BYTES_TOTAL=30 * 36 * GB, **link)
    assert rates(shown) == (None, None)
    assert shown.errors_total == (("pcie", "implausible", 1.0),)


def test_two_pages_at_one_time_make_no_rate() -> None:
    story = Story()
    for second in range(10):
        story.read(float(second), PROF_PCIE_TX_BYTES_TOTAL=5)
    story.read(10.0, PROF_PCIE_TX_BYTES_TOTAL=6)
    story.read(10.0, PROF_PCIE_TX_BYTES_TOTAL=6)
    story.read(10.0, PROF_PCIE_TX_BYTES_TOTAL=7)
    assert rates(story.read(10.0, PROF_PCIE_TX_BYTES_TOTAL=7)) == (None, None)


def test_totals_that_begin_anew_say_so() -> None:
    story = Story()
    started = [
        story.read(float(second), PROF_PCIE_TX_BYTES_TOTAL=total, DEV_POWER_USAGE=second).reader_started_at
        for second, total in enumerate([5e9, 6e9, 1e6, 2e6])
    ]
    assert started == [AT, AT, AT + 2, AT + 2]
    before, after = one(DEV_GPU_TEMP=40), story.memory.samples[0]
    assert after.restarted_since(before)


def test_an_xid_that_stands_there_from_the_start_is_history_and_shown_as_no_event() -> None:
    story = Story()
    for second in range(3):
        gpu = story.read(float(second), DEV_XID_ERRORS=79, DEV_POWER_USAGE=second)
        assert (gpu.xids_total, gpu.xid_last_at) == (((79, 0.0),), None)


def test_an_xid_that_never_goes_away_is_one_event() -> None:
    """dcgm-exporter#500: the last XID stands there until DCGM starts again."""
    story = Story()
    xids = [0, 0, 31, 31, 31, 79, 79, 0, 0, 79, 31]
    shown = [
        story.read(float(second), DEV_XID_ERRORS=xid, DEV_POWER_USAGE=second)
        for second, xid in enumerate(xids)
    ]
    assert [each.xids_total for each in shown] == [
        *((), ()),
        *[((31, 1.0),)] * 3,
        *[((31, 1.0), (79, 1.0))] * 4,
        ((31, 1.0), (79, 2.0)),
        ((31, 2.0), (79, 2.0)),
    ]
    assert [each.xid_last_at and each.xid_last_at - AT for each in shown] == [
        *[None] * 2,
        *[2.0] * 3,
        *[5.0] * 4,
        *(9.0, 10.0),
    ]


def test_an_xid_is_an_event_though_the_field_was_blank_before() -> None:
    """dcgm-exporter#646: newer ones show no series before the first XID."""
    story = Story()
    story.read(0.0, DEV_POWER_USAGE=100)
    assert story.read(1.0, DEV_POWER_USAGE=101, DEV_XID_ERRORS=48).xids_total == ((48, 1.0),)
    # gone for a moment is not over
    story.read(2.0, DEV_POWER_USAGE=102)
    assert story.read(3.0, DEV_POWER_USAGE=103, DEV_XID_ERRORS=48).xids_total == ((48, 1.0),)


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
    assert moving.nvlink == NvLink(out_bytes_per_second=8.0, in_bytes_per_second=9.0)
    resting = story.read(2.0, PROF_NVLINK_TX_BYTES=0, PROF_NVLINK_RX_BYTES=0)
    assert resting.nvlink == NvLink(out_bytes_per_second=0.0, in_bytes_per_second=0.0)


def test_an_nvlink_0_gives_way_to_what_moves() -> None:
    zero = {"PROF_NVLINK_TX_BYTES": 0, "PROF_NVLINK_RX_BYTES": 0}
    assert one(**zero, DEV_NVLINK_BANDWIDTH_TOTAL=3).nvlink == NvLink(bytes_per_second=3 * 1024e3)
    directed = {"DEV_NVLINK_TX_BANDWIDTH_TOTAL": 2, "DEV_NVLINK_RX_BANDWIDTH_TOTAL": 1}
    assert one(**zero, **directed).nvlink == NvLink(
        out_bytes_per_second=2 * 1024e3, in_bytes_per_second=1024e3
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


def test_an_energy_counter_that_never_moved_proves_nothing() -> None:
    story = Story()
    shown = [
        story.read(float(second), DEV_TOTAL_ENERGY_CONSUMPTION=5, DEV_GPU_TEMP=40) for second in range(400)
    ]
    assert shown[-1].up
