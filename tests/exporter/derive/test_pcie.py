from __future__ import annotations

import pytest

from exporter.derive.pcie import PCIE
from exporter.gpu_sample import GpuSample, PcieLink, PcieTraffic
from tests.support.derive import gpu, last, run
from tests.support.gpus import LINK

GEN5_X16 = 63_015_384_615.384_61
"""32 GT/s x 16 lanes x 128/130 / 8."""


def total(at: float, into: float | None, out: float | None = 0.0, **fields: object) -> GpuSample:
    traffic = PcieTraffic("gpm", out, into, ambiguous_intervals_total=0.0, disagreements_total=0.0)
    return gpu(at, **{"pcie": traffic, "link": LINK, "reader_started_at": 1.0, **fields})


def rates(at: float, into: float | None, out: float | None = 0.0, source: str = "dcgm") -> GpuSample:
    return gpu(at, pcie=PcieTraffic(source, None, None, out, into), link=LINK, reader_started_at=1.0)


def test_totals_begin_at_zero_and_rise_as_the_reader_s() -> None:
    said = run(PCIE, [total(float(at), 5e12 + 2e9 * at, 7e12 + 1e9 * at) for at in range(12)])
    assert [values["pcie_bytes_total{in}"] for values in said] == [2e9 * at for at in range(12)]
    assert said[-1]["pcie_bytes_total{out}"] == 11e9
    assert "pcie_bytes_per_second{in}" not in said[9], "the window is shorter than its time"
    assert said[10]["pcie_bytes_per_second{in}"] == pytest.approx(2e9)
    assert said[10]["pcie_bytes_per_second{out}"] == pytest.approx(1e9)
    assert said[-1]["pcie_source_info{gpm}"] == 1
    assert said[-1]["pcie_ambiguous_intervals_total"] == said[-1]["pcie_disagreements_total"] == 0


def test_what_the_link_can_carry_and_how_full_it_is() -> None:
    said = last(PCIE, [total(float(at), 0.5 * GEN5_X16 * at, 0.98 * GEN5_X16 * at) for at in range(20)])
    assert said["pcie_link_bytes_per_second"] == pytest.approx(GEN5_X16)
    assert said["pcie_saturation_ratio{in}"] == pytest.approx(0.5)
    assert said["pcie_saturation_ratio{out}"] == pytest.approx(0.98)
    assert said["pcie_link_downgraded"] == 0


def test_a_share_a_little_above_one_is_one_and_one_far_above_is_no_share() -> None:
    def share(of_link: float) -> float | None:
        samples = [total(float(at), of_link * GEN5_X16 * at) for at in range(20)]
        return last(PCIE, samples).get("pcie_saturation_ratio{in}")

    assert share(1.05) == 1
    assert share(1.11) is None


def test_a_burst_of_one_second_is_seen_for_a_minute_and_then_no_more() -> None:
    moved = [0.0] * 5 + [40e9] * 70
    said = run(PCIE, [total(float(at), value) for at, value in enumerate(moved)])
    assert said[5]["pcie_bytes_per_second_peak{in}"] == 40e9
    assert said[20]["pcie_bytes_per_second{in}"] == 0
    assert said[64]["pcie_bytes_per_second_peak{in}"] == 40e9
    assert said[64]["pcie_saturation_ratio_peak{in}"] == pytest.approx(40e9 / GEN5_X16)
    assert said[65]["pcie_bytes_per_second_peak{in}"] == 0


def test_a_peak_is_the_largest_of_the_trailing_minute_whatever_came_when() -> None:
    steps = [float(7919 * at % 101) for at in range(150)]
    counter, samples = 0.0, [total(0.0, 0.0)]
    for at, step in enumerate(steps, 1):
        counter += step
        samples.append(total(float(at), counter))
    for at, values in enumerate(run(PCIE, samples)[1:], 1):
        assert values["pcie_bytes_per_second_peak{in}"] == pytest.approx(max(steps[max(0, at - 60) : at]))


def test_the_first_rise_after_a_reader_s_restart_is_dropped() -> None:
    before = [total(float(at), 1e9 * at) for at in range(20)]
    after = [total(float(at), 1e9 * (at - 20), reader_started_at=20.0) for at in range(20, 40)]
    assert last(PCIE, before)["pcie_bytes_total{in}"] == 19e9
    said = run(PCIE, [*before, *after])
    assert said[20]["pcie_bytes_total{in}"] == 19e9
    assert said[-1]["pcie_bytes_total{in}"] == 38e9
    assert all(values["pcie_bytes_per_second{in}"] == pytest.approx(1e9) for values in said[10:])


def test_a_new_reader_that_counts_from_higher_up_is_no_burst() -> None:
    before = [total(float(at), 1e9 * at) for at in range(20)]
    after = [total(float(at), 5e15 + 1e9 * at, reader_started_at=20.0) for at in range(20, 40)]
    said = last(PCIE, [*before, *after])
    assert said["pcie_bytes_total{in}"] == 38e9
    assert said["pcie_bytes_per_second_peak{in}"] == pytest.approx(1e9)


def test_a_reader_that_began_anew_before_it_could_tell_traffic_is_no_burst_either() -> None:
    samples = [
        total(0.0, 1e9),
        total(1.0, 2e9),
        total(2.0, None, None, pcie=None, reader_started_at=2.0),
        total(3.0, 9e15, reader_started_at=2.0),
        total(4.0, 9e15 + 5.0, reader_started_at=2.0),
    ]
    assert last(PCIE, samples)["pcie_bytes_total{in}"] == 1e9 + 5


def test_another_source_counts_from_somewhere_else() -> None:
    gpm = [total(float(at), 1e9 * at) for at in range(15)]
    dcgm = [rates(float(at), 3e9) for at in range(15, 30)]
    said = run(PCIE, [*gpm, *dcgm])
    assert said[15]["pcie_bytes_total{in}"] == 14e9
    assert said[16]["pcie_bytes_total{in}"] == 17e9
    assert said[15]["pcie_source_info{dcgm}"] == 1
    assert said[-1]["pcie_bytes_per_second{in}"] == pytest.approx(3e9)
    assert said[-1]["pcie_bytes_per_second_peak{in}"] == pytest.approx(3e9)


def test_rates_alone_add_up_over_time() -> None:
    told = [5e9, 1e9, 2e9, 2e9]
    said = run(PCIE, [rates(float(at), value) for at, value in enumerate(told)])
    assert [values["pcie_bytes_total{in}"] for values in said] == [0, 1e9, 3e9, 5e9]


def test_a_rate_says_nothing_of_a_time_in_which_nobody_looked() -> None:
    said = last(PCIE, [rates(0.0, 1e9), rates(1.0, 1e9), rates(1000.0, 1e9), rates(1001.0, 1e9)])
    assert said["pcie_bytes_total{in}"] == 2e9


def test_a_total_that_was_not_told_for_a_while_goes_on() -> None:
    samples = [total(0.0, 0.0), total(1.0, 1e9), total(2.0, None), total(3.0, 4e9)]
    said = run(PCIE, samples)
    assert "pcie_bytes_total{in}" not in said[2]
    assert said[2]["pcie_bytes_total{out}"] == 0
    assert said[3]["pcie_bytes_total{in}"] == 4e9
    # its time counts too: 3 GB came in 2 s
    assert said[3]["pcie_bytes_per_second_peak{in}"] == 1.5e9


def test_an_ambiguous_interval_is_in_no_rate() -> None:
    counted = [0.0, 1e9, 2e9, 2.1e9, 3.1e9]
    samples = [
        gpu(float(at), pcie=PcieTraffic("counter", 0.0, value, ambiguous_intervals_total=float(at >= 3)))
        for at, value in enumerate(counted)
    ]
    samples += [
        gpu(float(at), pcie=PcieTraffic("counter", 0.0, 1e9 * at - 0.9e9, ambiguous_intervals_total=1.0))
        for at in range(5, 13)
    ]
    said = last(PCIE, samples)
    assert said["pcie_ambiguous_intervals_total"] == 1
    assert said["pcie_bytes_per_second{in}"] == pytest.approx(1e9)
    assert said["pcie_bytes_total{in}"] == pytest.approx(11.1e9), "what is known of it counts"


def test_where_most_is_ambiguous_no_rate_is_told() -> None:
    samples = [
        gpu(float(at), pcie=PcieTraffic("counter", 0.0, 1e8 * at, ambiguous_intervals_total=float(at)))
        for at in range(20)
    ]
    said = last(PCIE, samples)
    assert "pcie_bytes_per_second{in}" not in said
    assert "pcie_bytes_per_second_peak{in}" not in said
    assert said["pcie_ambiguous_intervals_total"] == 19


def linked(at: float, link: PcieLink | None, gigabytes_a_second: float) -> GpuSample:
    return total(at, 1e9 * gigabytes_a_second * at, link=link)


@pytest.mark.parametrize(
    ("link", "gigabytes", "downgraded"),
    [
        (PcieLink(1, 16, 4, 16), 0.01, 0),  # a card at a desk that rests
        (PcieLink(1, 16, 4, 16), 3.5, 1),
        (PcieLink(4, 16, 4, 16), 3.5, 0),
        (PcieLink(4, 8, 4, 16), 0.0, 1),
        (PcieLink(1, 8, 4, 16), 0.0, 1),
        (PcieLink(None, 16, None, 16), 3.5, None),
        (PcieLink(4, None, 4, None), 3.5, None),
        (PcieLink(4, 16, None, None), 3.5, None),
    ],
)
def test_a_link_that_rests_is_not_downgraded(
    link: PcieLink, gigabytes: float, downgraded: float | None
) -> None:
    said = last(PCIE, [linked(float(at), link, gigabytes) for at in range(50)])
    assert said.get("pcie_link_downgraded") == downgraded


def test_a_link_that_wakes_late_is_not_downgraded() -> None:
    resting, awake = PcieLink(1, 16, 4, 16), PcieLink(4, 16, 4, 16)
    quiet = [total(float(at), 0.0, link=resting) for at in range(40)]
    # the link is read every 10 s
    busy = [total(float(at), 3e9 * (at - 39), link=resting if at < 50 else awake) for at in range(40, 80)]
    assert {values["pcie_link_downgraded"] for values in run(PCIE, [*quiet, *busy])[11:]} == {0}


@pytest.mark.parametrize(
    ("link", "carries"),
    [
        (PcieLink(5, 8, 5, 16), GEN5_X16 / 2),
        (PcieLink(5, 1, 5, 16), GEN5_X16 / 16),
        (PcieLink(4, 16, 5, 16), GEN5_X16 / 2),
        (PcieLink(4, 8, 5, 16), GEN5_X16 / 4),
    ],
)
def test_a_downgraded_link_can_be_full(link: PcieLink, carries: float) -> None:
    said = last(PCIE, [linked(float(at), link, 0.98 * carries / 1e9) for at in range(80)])
    assert said["pcie_link_downgraded"] == 1
    assert said["pcie_saturation_ratio{in}"] == pytest.approx(0.98)
    assert said["pcie_saturation_ratio_peak{in}"] == pytest.approx(0.98)
    assert said["pcie_link_bytes_per_second"] == pytest.approx(GEN5_X16), "what GPU and slot can do stays"


def test_a_link_that_rests_at_fewer_lanes_is_not_taken_to_be_slow_as_well() -> None:
    link = PcieLink(1, 8, 5, 16)
    samples = [total(float(at), 0.1 * GEN5_X16 * max(0, at - 40), link=link) for at in range(60)]
    assert last(PCIE, samples)["pcie_saturation_ratio{in}"] == pytest.approx(0.2), "of 8 lanes, once it wakes"


def test_a_slow_link_of_which_no_traffic_is_known_is_not_judged() -> None:
    samples = [gpu(float(at), link=PcieLink(1, 16, 4, 16)) for at in range(50)]
    said = last(PCIE, samples)
    assert "pcie_link_downgraded" not in said
    assert said["pcie_link_bytes_per_second"] == pytest.approx(31.508e9, rel=1e-4)


def test_a_gpu_that_is_lost_says_nothing_of_pcie_and_goes_on_where_it_was() -> None:
    samples = [total(0.0, 0.0), total(1.0, 3e9), gpu(2.0, up=False, reader_started_at=1.0), total(9.0, 8e9)]
    said = run(PCIE, samples)
    assert said[2] == {}
    assert said[3]["pcie_bytes_total{in}"] == 8e9


def test_a_gpu_that_counts_no_bytes_has_no_series_of_them() -> None:
    assert last(PCIE, [gpu(float(at)) for at in range(20)]) == {}
