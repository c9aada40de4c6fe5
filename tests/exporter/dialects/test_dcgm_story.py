"""What dcgm-exporter's pages become over time: collections, XIDs, restarts."""

from __future__ import annotations

import pytest

from exporter.derive.gpu_health import HEALTH
from exporter.gpu_sample import GpuSample, NvLink, PcieTraffic
from tests.exporter.dialects.dcgm_text import AT, Story, one, rates, text, traffic
from tests.support.derive import run

GB = 1e9


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
    samples = slow_exporter(400)
    # until something moves nobody knows what an interval is
    assert [traffic(each).out_bytes_total for each in samples[:6]] == [1e12] * 6
    assert [traffic(each)[1:5] for each in samples[6:31]] == [(None, None, None, None)] * 25
    assert [traffic(each)[1:5] for each in samples[31:]] == [(None, None, 3 * GB, 6 * GB)] * 369
    assert [each.nvlink for each in samples[31:]] == [
        NvLink(out_bytes_per_second=1.5 * GB, source="dcgm")
    ] * 369


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


def test_totals_of_a_slow_exporter_that_begin_anew_are_no_rate_for_one_collection() -> None:
    story = Story()
    shown = [
        story.read(float(second), PROF_PCIE_TX_BYTES_TOTAL=[90 * GB, 120 * GB, 3 * GB, 33 * GB][second // 30])
        for second in range(120)
    ]
    assert [rates(each)[0] for each in shown[31:61]] == [GB] * 30
    assert [rates(each)[0] for each in shown[61:91]] == [None] * 30
    assert [rates(each)[0] for each in shown[91:]] == [GB] * 29


def test_an_xid_is_not_counted_again_because_totals_begin_anew() -> None:
    """After a reset, or a new DCGM, energy and bytes count from 0; the XID that it was for stays one event."""
    story = Story()
    energy = [100, 200, 300, 5, 10, 2, 9]
    xids = [0, 79, 79, 79, 79, 79, 48]
    shown = [
        story.read(float(second), DEV_TOTAL_ENERGY_CONSUMPTION=joules, DEV_XID_ERRORS=xid)
        for second, (joules, xid) in enumerate(zip(energy, xids, strict=True))
    ]
    said = run(HEALTH, shown)
    assert [values.get("gpu_xid_errors_total{79}") for values in said] == [None, 1, 1, 1, 1, 1, 1]
    assert said[-1]["gpu_xid_errors_total{48}"] == 1


def test_an_xid_is_not_seen_twice_because_its_gpu_was_away() -> None:
    story = Story()
    story.read(0.0, DEV_XID_ERRORS=0)
    story.read(1.0, DEV_XID_ERRORS=79)
    assert story.reads(text(uuid="GPU-1", DEV_GPU_TEMP=40), 2.0)[0].xids_total == ()
    assert story.read(3.0, DEV_XID_ERRORS=79).xids_total == ((79, 1.0),)


def test_a_gpu_that_nobody_knows_any_more_begins_anew() -> None:
    story = Story()
    story.read(0.0, DEV_XID_ERRORS=0)
    story.read(1.0, DEV_XID_ERRORS=79)
    story.memory = story.memory.only({"GPU-1"})
    again = story.read(2.0, DEV_XID_ERRORS=79, DEV_GPU_TEMP=40)
    assert (again.xids_total, again.reader_started_at) == (((79, 0.0),), AT + 2)


def test_numbers_that_never_moved_are_old_after_five_minutes() -> None:
    story = Story()
    fields = {"DEV_TOTAL_ENERGY_CONSUMPTION": 5000, "PROF_PCIE_TX_BYTES": 15e9, "DEV_GPU_TEMP": 40}
    shown = [story.read(float(second), **fields) for second in range(0, 480, 10)]
    assert [each.up for each in shown] == [True] * 31 + [False] * 17
    assert shown[-1].down_because == "stale"
    back = [
        story.read(480.0 + second, **{**fields, "DEV_TOTAL_ENERGY_CONSUMPTION": 9000}) for second in range(3)
    ]
    assert back[-1].up


@pytest.mark.parametrize("energy", [{}, {"DEV_TOTAL_ENERGY_CONSUMPTION": 0}], ids=["none", "zero"])
def test_without_an_energy_counter_numbers_that_stand_still_are_those_of_an_idle_gpu(
    energy: dict[str, int],
) -> None:
    story = Story()
    shown = [story.read(float(second), DEV_GPU_TEMP=40, **energy) for second in range(0, 480, 10)]
    assert all(each.up for each in shown)
