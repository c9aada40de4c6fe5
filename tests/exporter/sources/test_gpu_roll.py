"""What is remembered of GPUs that were there and are missing."""

from __future__ import annotations

from exporter.gpu_sample import GONE_SECONDS, GpuIdentity, GpuMemory, GpuSample
from exporter.sampler.reasons import Reason
from exporter.sources.gpu_roll import MOST_GONE, GpuRoll


def gpu(uuid: str, at: float, parent: str = "") -> GpuSample:
    return GpuSample(
        at,
        GpuIdentity(uuid, 3, "NVIDIA H100", parent_uuid=parent),
        reader_started_at=7.0,
        memory=GpuMemory(80.0, 8.0),
        xids_total=((79, 1.0),),
        xid_last_at=9.0,
        errors_total=(("memory", "timeout", 2.0),),
    )


def test_a_gpu_that_is_missing_is_down_with_its_counts_and_none_of_its_numbers() -> None:
    roll = GpuRoll().after([gpu("a", 10.0), gpu("b", 10.0)], 10.0).after([gpu("a", 11.0)], 11.0)
    there, missing = roll.gpus
    assert there == gpu("a", 11.0)
    assert missing == GpuSample(
        11.0,
        GpuIdentity("b", 3, "NVIDIA H100"),
        up=False,
        down_because=Reason.GONE,
        reader_started_at=7.0,
        xids_total=((79, 1.0),),
        xid_last_at=9.0,
        errors_total=(("memory", "timeout", 2.0),),
    )


def test_a_gpu_that_comes_back_is_up_with_what_it_tells() -> None:
    roll = GpuRoll().after([gpu("a", 10.0)], 10.0).after([], 11.0).after([gpu("a", 12.0)], 12.0)
    assert roll.gpus == (gpu("a", 12.0),)


def test_a_missing_gpu_is_forgotten_an_hour_after_it_was_there() -> None:
    roll = GpuRoll().after([gpu("a", 10.0)], 10.0)
    roll = roll.after([], 11.0).after([], 10.0 + GONE_SECONDS)
    assert [(each.at, each.up) for each in roll.gpus] == [(10.0 + GONE_SECONDS, False)]
    assert roll.after([], 10.5 + GONE_SECONDS).gpus == ()


def test_a_mig_instance_is_missed_only_together_with_its_parent() -> None:
    before = GpuRoll().after([gpu("a", 10.0), gpu("a/1", 10.0, "a"), gpu("a/2", 10.0, "a")], 10.0)
    taken_apart = before.after([gpu("a", 11.0), gpu("a/2", 11.0, "a")], 11.0)
    assert [each.identity.uuid for each in taken_apart.gpus] == ["a", "a/2"]
    lost = before.after([], 11.0)
    assert [(each.identity.uuid, each.up) for each in lost.gpus] == [
        ("a", False),
        ("a/1", False),
        ("a/2", False),
    ]


def test_names_that_never_come_twice_do_not_fill_the_memory() -> None:
    roll = GpuRoll()
    for read in range(1000):
        roll = roll.after([gpu(f"{read}", float(read))], float(read))
    assert [each.identity.uuid for each in roll.gpus] == [str(999 - back) for back in range(MOST_GONE + 1)]
