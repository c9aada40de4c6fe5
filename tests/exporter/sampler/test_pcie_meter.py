"""The meter on the fake's GPUs: which source it takes, and that what it counts is what flowed."""

from __future__ import annotations

from random import Random

import pytest

from drill.fake_nvml import A100, H100, T4, VGPU_GUEST, Feature, Flow, Presence
from exporter.gpu_sample import PcieLink, PcieTraffic
from exporter.sampler.backend import ReadError, Remedy
from exporter.sampler.pcie_meter import PcieMeter
from tests.exporter.sampler.conftest import Make
from tests.exporter.sampler.machine import Machine

DRIVE_SECONDS = 60
BURST = 40e9
QUIET_AT_THE_END = 3


class Drive:
    """A GPU, its meter, and the bytes that have truly flowed since the first poll."""

    def __init__(self, machine: Machine, *, window: bool = False) -> None:
        self.machine, self.control = machine, machine.control
        self.meter = PcieMeter(machine.gpu(), window=window, clock=machine.clock)
        self.meter.poll()
        self.began = self.moved()
        self.doubtful = 0

    def moved(self) -> tuple[float, float]:
        return self.control.moved(0, Flow.PCIE_TX), self.control.moved(0, Flow.PCIE_RX)

    def truth(self) -> tuple[float, float]:
        now = self.moved()
        return now[0] - self.began[0], now[1] - self.began[1]

    def traffic(self) -> PcieTraffic:
        traffic = self.meter.traffic()
        assert traffic is not None
        return traffic

    def burst_and_idle(self, poll_seconds: float, seed: int) -> None:
        """40 GB/s in bursts of up to a second, now this way, now that, then quiet."""
        random = Random(seed)  # noqa: S311 - a drive, no secret
        change_at = poll_at = 0.0
        now = 0.0
        while now < DRIVE_SECONDS + QUIET_AT_THE_END:
            if now >= change_at:
                is_over = now >= DRIVE_SECONDS
                rates = [352e3 if is_over else random.choice((352e3, BURST, 2e9)) for _ in range(2)]
                self.control.traffic(0, transmit=rates[0], receive=rates[1])
                change_at = now + random.uniform(0.02, 1)
            if now >= poll_at:
                self.meter.poll()
                poll_at += poll_seconds
            step = min(change_at, poll_at) - now
            self.control.advance(step)
            now += step
        self.meter.poll()

    def assert_exact_to(self, share: float) -> None:
        traffic, truth = self.traffic(), self.truth()
        assert sum(truth) > 5e11, "the drive moved too little to show anything"
        assert (traffic.out_bytes_total, traffic.in_bytes_total) == pytest.approx(truth, rel=share)


@pytest.mark.parametrize("lag_us", [0, 42_000, 70_000, 109_000])
@pytest.mark.parametrize("poll_seconds", [1.0, 0.25])
def test_gpm_counts_bursts_with_wraps(machine: Make, poll_seconds: float, lag_us: int) -> None:
    made = machine(H100)
    made.control.device(0).gpm_lag_us = lag_us
    drive = Drive(made)
    drive.burst_and_idle(poll_seconds, seed=1)
    drive.assert_exact_to(0.005)
    assert (drive.traffic().source, drive.traffic().ambiguous_intervals_total) == ("gpm", 0)
    assert drive.meter.interval_seconds is None


def test_counters_at_20_hz_count_bursts_with_wraps_to_the_byte(machine: Make) -> None:
    made = machine(H100)
    made.control.device(0).features &= ~Feature.GPM
    drive = Drive(made)
    assert drive.meter.interval_seconds == 0.05
    drive.burst_and_idle(0.05, seed=2)
    assert (drive.traffic().source, drive.traffic().ambiguous_intervals_total) == ("counter", 0)
    assert (drive.traffic().out_bytes_total, drive.traffic().in_bytes_total) == pytest.approx(
        drive.truth(), abs=10
    )


def test_counters_at_1_hz_say_that_they_cannot_tell(machine: Make) -> None:
    made = machine(H100)
    made.control.device(0).features &= ~Feature.GPM
    drive = Drive(made)
    drive.burst_and_idle(1.0, seed=3)
    traffic = drive.traffic()
    assert (traffic.out_bytes_total, traffic.in_bytes_total) == (0, 0)
    assert traffic.ambiguous_intervals_total == DRIVE_SECONDS + QUIET_AT_THE_END


def test_intervals_that_gpm_drops_are_marked_and_the_rest_is_counted(machine: Make) -> None:
    made = machine(H100)
    drive = Drive(made)
    board = made.control.device(0)
    random = Random(4)  # noqa: S311 - a drive, no secret
    dropped = set(random.sample(range(168), 18))  # as many as were seen in 168 intervals of bursts
    lost = [0.0, 0.0]
    for interval in range(168):
        transmit, receive = random.choice((352e3, 8e9)), random.choice((352e3, 40e9))
        made.control.traffic(0, transmit=transmit, receive=receive)
        made.control.advance(0.25)
        if interval in dropped:
            made.control.metric(0, 20, 0)
            made.control.metric(0, 21, 0)
            lost = [lost[0] + 0.25 * transmit, lost[1] + 0.25 * receive]
        drive.meter.poll()
        board.metric_count = 0
    traffic, truth = drive.traffic(), drive.truth()
    assert (traffic.ambiguous_intervals_total, traffic.disagreements_total) == (18, 18)
    counted = (truth[0] - lost[0], truth[1] - lost[1])
    assert (traffic.out_bytes_total, traffic.in_bytes_total) == pytest.approx(counted, rel=0.005)


def test_out_is_from_the_gpu_and_in_is_towards_it(machine: Make) -> None:
    made = machine(A100)
    drive = Drive(made)
    made.control.traffic(0, transmit=3e9, receive=1e9)
    made.control.advance(0.06)
    drive.meter.poll()
    traffic = drive.traffic()
    assert (traffic.out_bytes_total, traffic.in_bytes_total) == (pytest.approx(18e7, abs=2), 6e7)


def test_gpm_is_asked_at_most_five_times_a_second(machine: Make) -> None:
    made = machine(H100)
    drive = Drive(made)
    samples = made.control.watch("nvmlGpmSampleGet")
    for _ in range(40):
        made.control.advance(0.05)
        drive.meter.poll()
    assert 5 <= samples.hits <= 10


def test_gpm_that_fails_is_replaced_and_tried_again_later(machine: Make) -> None:
    made = machine(H100)
    drive = Drive(made)
    rule = made.control.fail("nvmlGpmSampleGet", 999)
    for _ in range(3):
        made.control.advance(1)
        with pytest.raises(ReadError, match="nvmlGpmSampleGet"):
            drive.meter.poll()
    assert (drive.traffic().source, drive.meter.interval_seconds) == ("counter", 0.05)
    made.control.advance(0.05)
    drive.meter.poll()
    made.control.release(rule)
    made.control.advance(60)
    drive.meter.poll()
    assert drive.traffic().source == "gpm"


def test_gpm_that_always_says_0_gives_way_to_counters(machine: Make) -> None:
    made = machine(H100)
    drive = Drive(made)
    made.control.metric(0, 20, 0)
    made.control.metric(0, 21, 0)
    made.control.traffic(0, transmit=1e9)
    for _ in range(3):
        made.control.advance(1)
        drive.meter.poll()
    assert drive.traffic().source == "counter"
    assert drive.traffic().disagreements_total == 3


def test_counters_that_fail_are_asked_again_at_once(machine: Make) -> None:
    made = machine(A100)
    drive = Drive(made)
    made.control.traffic(0, transmit=1e9)
    rule = made.control.fail("nvmlDeviceGetFieldValues", 10, times=5)
    for _ in range(5):
        made.control.advance(0.01)
        with pytest.raises(ReadError) as caught:
            drive.meter.poll()
        assert caught.value.remedy == Remedy.RETRY
    made.control.advance(0.01)
    drive.meter.poll()
    # the reading before the failures still holds: 60 ms are less than a wrap of this link
    assert drive.traffic().out_bytes_total == pytest.approx(6e7, abs=2)
    assert rule.hits == 6


def test_a_gpu_that_was_lost_goes_on_from_where_it_comes_back(machine: Make) -> None:
    made = machine(H100, A100)
    drive = Drive(made)
    made.control.traffic(0, transmit=1e9, receive=0)
    made.control.advance(1)
    drive.meter.poll()
    assert drive.traffic().out_bytes_total == pytest.approx(1e9)
    made.control.lose(0)
    made.control.advance(1)
    with pytest.raises(ReadError) as caught:
        drive.meter.poll()
    assert caught.value.remedy == Remedy.DEVICE_DOWN
    made.control.device(0).presence = Presence.PRESENT
    made.control.set_moved(0, Flow.PCIE_TX, 0)
    for _ in range(3):
        made.control.advance(1)
        drive.meter.poll()
    traffic = drive.traffic()
    assert traffic.ambiguous_intervals_total == 1
    assert traffic.out_bytes_total == pytest.approx(3e9)


def test_a_reset_counts_as_an_interval_that_cannot_be_told(machine: Make) -> None:
    made = machine(A100)
    drive = Drive(made)
    made.control.traffic(0, transmit=1e9, receive=0)
    for _ in range(10):
        made.control.advance(0.06)
        drive.meter.poll()
    made.control.set_moved(0, Flow.PCIE_TX, 0)
    for _ in range(2):
        made.control.advance(0.06)
        drive.meter.poll()
    assert drive.traffic().out_bytes_total == pytest.approx(11 * 6e7, abs=20)
    assert drive.traffic().ambiguous_intervals_total == 1


def test_the_fastest_link_ever_told_holds(machine: Make) -> None:
    made = machine(A100)
    drive = Drive(made)
    fast = drive.meter.interval_seconds
    drive.meter.told(PcieLink(1, 16, 1, 16))
    drive.meter.told(None)
    assert drive.meter.interval_seconds == fast == pytest.approx(0.0682, abs=1e-4)


def test_a_link_that_cannot_be_read_leaves_all_in_doubt(machine: Make) -> None:
    made = machine(A100)
    made.control.device(0).features &= ~Feature.PCIE_LINK
    drive = Drive(made)
    made.control.traffic(0, transmit=1e6)
    made.control.advance(1)
    drive.meter.poll()
    assert drive.meter.interval_seconds is None
    assert (drive.traffic().out_bytes_total, drive.traffic().ambiguous_intervals_total) == (0, 1)


def test_what_an_idle_link_runs_at_bounds_nothing(machine: Make) -> None:
    made = machine(A100)
    made.control.device(0).generation_idle = 1
    for maximum in ("nvmlDeviceGetMaxPcieLinkGeneration", "nvmlDeviceGetGpuMaxPcieLinkGeneration"):
        made.control.fail(maximum, 3)
    drive = Drive(made)
    assert made.gpu().link().max_bytes_per_second == 4e9
    made.control.traffic(0, transmit=31e9)
    made.control.advance(0.5)
    drive.meter.poll()
    assert (drive.traffic().out_bytes_total, drive.traffic().ambiguous_intervals_total) == (0, 1)


def test_the_window_is_used_only_when_asked_for(machine: Make) -> None:
    made = machine(T4)
    meter = PcieMeter(made.gpu(), window=False, clock=made.clock)
    with pytest.raises(ReadError) as caught:
        meter.poll()
    assert (caught.value.reason, caught.value.remedy) == ("not_supported", Remedy.DROP)
    assert Drive(made, window=True).traffic().source == "window"


def test_a_guest_has_no_source(machine: Make) -> None:
    meter = PcieMeter((made := machine(VGPU_GUEST)).gpu(), window=True, clock=made.clock)
    for _ in range(2):
        with pytest.raises(ReadError) as caught:
            meter.poll()
        assert caught.value.remedy == Remedy.DROP
    assert meter.traffic() is None
