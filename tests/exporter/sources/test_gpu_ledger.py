"""What is known of the GPUs from frames: who is fresh, who is down and why, and counters that go on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from exporter.gpu_sample import GONE_SECONDS, GpuIdentity, GpuMemory, GpuSample, NvLink
from exporter.sampler.frame import Frame, Own, Trouble, Unopened
from exporter.sources.gpu_ledger import GpuLedger

OFFSET = 1_000_000.0
"""The sidecar's clock less the sampler's."""


def gpu(at: float, uuid: str = "a", index: int = 0, **more: Any) -> GpuSample:  # noqa: ANN401 - any field
    return GpuSample(at, GpuIdentity(uuid, index), reader_started_at=5.0, memory=GpuMemory(8e10, 1e9), **more)


@dataclass
class Sampler:
    """Hands frames to a ledger, one a second."""

    ledger: GpuLedger = field(default_factory=lambda: GpuLedger(OFFSET))
    at: float = 10.0
    started_at: float = 1.0

    def tell(self, *gpus: GpuSample, **more: Any) -> None:  # noqa: ANN401 - any field
        self.at += 1
        frame = Frame(1, self.at, self.started_at, gpus, **{"gpus_expected": len(gpus), **more})
        self.ledger.take(frame)

    def shown(self, later: float = 0.0) -> dict[str, tuple[bool, str]]:
        samples = self.ledger.samples(OFFSET + self.at + later)
        return {each.identity.uuid: (each.up, each.down_because) for each in samples}


UP = (True, "")


def test_times_become_those_of_the_sidecar_and_stay_the_same_from_frame_to_frame() -> None:
    sampler = Sampler()
    for _ in range(2):
        sampler.tell(gpu(10.5, xids_total=((79, 1.0),), xid_last_at=9.0, nvlink=NvLink(7e9, read_at=8.0)))
        (sample,) = sampler.ledger.samples(OFFSET + 12)
        assert (sample.at, sample.reader_started_at, sample.xid_last_at) == (
            OFFSET + 10.5,
            OFFSET + 5,
            OFFSET + 9,
        )
        assert sample.nvlink == NvLink(7e9, read_at=OFFSET + 8)
        assert sample.memory == GpuMemory(8e10, 1e9)
    assert sampler.ledger.newest_at == OFFSET + 12


def test_a_gpu_whose_sample_ages_while_frames_come_hangs() -> None:
    sampler = Sampler()
    for second in range(10):
        sampler.tell(gpu(11.0, "a"), gpu(11.0 + second, "b", 1))
        assert sampler.shown() == {"a": UP if second <= 5 else (False, "hung"), "b": UP}
    sampler.tell(gpu(sampler.at + 1, "a"))
    assert sampler.shown()["a"] == UP


def test_a_down_sample_is_of_now_and_says_nothing_but_what_was_counted() -> None:
    sampler = Sampler()
    sampler.tell(gpu(11.0, xids_total=((79, 1.0),), xid_last_at=9.0, errors_total=(("memory", "hung", 1.0),)))
    (sample,) = sampler.ledger.samples(OFFSET + 100)
    assert (sample.at, sample.up, sample.memory) == (OFFSET + 100, False, None)
    assert (sample.xids_total, sample.xid_last_at) == (((79, 1.0),), OFFSET + 9)
    assert sample.errors_total == (("memory", "hung", 1.0),)


def test_while_no_frames_come_everything_is_down_for_the_reason_given() -> None:
    sampler = Sampler()
    sampler.tell(gpu(11.0))
    assert sampler.ledger.samples(OFFSET + 16, "exited")[0].up
    late = sampler.ledger.samples(OFFSET + 16.5, "exited")[0]
    assert (late.up, late.down_because) == (False, "exited")


def test_a_gpu_that_is_not_counted_any_more_stays_in_sight_for_an_hour() -> None:
    sampler = Sampler()
    both = [gpu(11.0, "a"), gpu(11.0, "b", 1)]
    sampler.tell(*both)
    sampler.tell(both[0]._replace(at=12.0), gpus_expected=1)
    assert sampler.shown() == {"a": UP, "b": (False, "gone")}
    sampler.at = 11.0 + GONE_SECONDS - 1
    sampler.tell(both[0]._replace(at=sampler.at + 1))
    assert sampler.shown() == {"a": UP, "b": (False, "gone")}
    sampler.tell(both[0]._replace(at=sampler.at + 1))
    assert sampler.shown() == {"a": UP}


def test_a_gpu_that_a_new_sampler_can_not_open_is_down_for_that_reason() -> None:
    sampler = Sampler()
    sampler.tell(gpu(11.0, "a"), gpu(11.0, "b", 1))
    sampler.started_at = 11.5
    sampler.tell(gpus_expected=None)
    assert sampler.shown() == {"a": UP, "b": UP}, "it has not looked round yet"
    lost = Unopened(1, "gpu_lost", "GPU is lost")
    sampler.tell(gpu(13.0, "a"), gpus_expected=2, unopened=(lost,))
    assert sampler.shown() == {"a": UP, "b": (False, "gpu_lost")}


def test_a_gpu_that_could_never_be_opened_is_down_by_its_index_until_it_is() -> None:
    sampler = Sampler()
    lost = (Unopened(1, "gpu_lost", "GPU is lost"), Unopened(3, "no_permission", "refused"))
    instances = (Unopened(0, "no_permission", "its MIG instances"),)
    sampler.tell(gpu(11.0), gpus_expected=4, unopened=(*lost, *instances))
    down = {"unopened-1": (False, "gpu_lost"), "unopened-3": (False, "no_permission")}
    assert sampler.shown() == {"a": UP, **down}
    sampler.started_at = 11.5
    sampler.tell(gpu(12.0), gpus_expected=None)
    assert sampler.shown() == {"a": UP, **down}, "a new sampler has not looked round yet"
    sampler.tell(gpu(13.0), gpu(13.0, "b", 1), gpus_expected=4, unopened=lost[1:])
    assert sampler.shown() == {"a": UP, "b": UP, "unopened-3": (False, "no_permission")}
    (named,) = (each.identity for each in sampler.ledger.samples(OFFSET + 13) if not each.up)
    assert named == GpuIdentity("unopened-3", 3)


def test_trouble_is_why_all_are_down() -> None:
    sampler = Sampler()
    sampler.tell(gpu(11.0))
    sampler.tell(gpus_expected=None, trouble=Trouble("no_driver", "load it"))
    assert sampler.shown() == {"a": (False, "no_driver")}
    assert sampler.shown(later=100) == {"a": (False, "no_driver")}, "also between two samplers"


def test_instances_that_were_partitioned_away_are_no_loss() -> None:
    sampler = Sampler()
    instances = [
        GpuSample(11.0, GpuIdentity(f"mig-{number}", 0, parent_uuid="a", gpu_instance=number))
        for number in (1, 2)
    ]
    sampler.tell(gpu(11.0), *instances)
    sampler.tell(gpu(12.0), instances[1]._replace(at=12.0))
    assert sampler.shown() == {"a": UP, "mig-2": UP}
    sampler.tell(gpus_expected=0)
    assert sampler.shown() == {"a": (False, "gone"), "mig-2": (False, "gone")}, "all of it went, which is one"


def test_counters_go_on_when_a_new_sampler_begins_at_0() -> None:
    sampler = Sampler()

    def errors(*counts: tuple[str, str, float], cpu: float, of_none: float = 0.0) -> None:
        sampler.tell(
            gpu(sampler.at + 1, errors_total=counts),
            own=Own(cpu, 2 * cpu, 1e7),
            errors_total=(("unknown", of_none),),
        )

    errors(("memory", "timeout", 2.0), cpu=1.0, of_none=1.0)
    errors(("memory", "timeout", 3.0), ("pcie", "timeout", 1.0), cpu=1.5, of_none=1.0)
    sampler.started_at = 100.0
    errors(("memory", "timeout", 1.0), cpu=0.25, of_none=2.0)
    errors(("memory", "timeout", 1.0), cpu=0.5, of_none=2.0)
    assert dict(sampler.ledger.errors) == {
        ("a", "memory", "timeout"): 4,
        ("a", "pcie", "timeout"): 1,
        ("", "", "unknown"): 3,
    }
    assert sampler.ledger.samples(OFFSET + sampler.at)[0].errors_total == (
        ("memory", "timeout", 4.0),
        ("pcie", "timeout", 1.0),
    )
    assert dict(sampler.ledger.spent) == {"cpu": 2.0, "driver": 4.0}


def test_no_gpu_hangs_over_a_time_in_which_the_sampler_did_not_run() -> None:
    sampler = Sampler()
    sampler.tell(gpu(11.0))
    sampler.at += 60
    for second in range(7):
        sampler.tell(gpu(11.0))
        assert sampler.shown() == {"a": UP if second <= 5 else (False, "hung")}


def test_no_gpu_hangs_over_a_time_in_which_the_sidecar_did_not_run() -> None:
    sampler = Sampler()
    sampler.tell(gpu(11.0))
    now = OFFSET + sampler.at + 60
    for later, is_up in ((0.0, True), (5.0, True), (5.5, False)):
        (sample,) = sampler.ledger.samples(now + later, awake_since=now)
        assert sample.up == is_up
