"""The sampler as a process: it never blocks, never hides what hangs, and never outlives its parent."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from exporter.sampler.frame import HUNG_SECONDS, REOPEN_EXIT
from tests.exporter.running import ROOT
from tests.exporter.sampler.sampling import gpus, is_alive, orphaned, sampling, until

pytestmark = pytest.mark.long

MOST_BYTES = 20e6
NEVER_LOADED = {"dataclasses", "msgspec", "logging", "asyncio", "inspect", "pathlib", "socket"}
"""Each costs memory that the sampler is not to take; measured 1.5 to 3 MB for the first four."""


def test_the_first_frame_has_every_gpu_and_so_has_each_second_after_it(tmp_path: Path) -> None:
    before = time.monotonic()
    with sampling(gpus(tmp_path, "GPU-a", "GPU-b")) as sampler:
        first, second = sampler.frame(), sampler.frame()
    assert [gpu.identity.uuid for gpu in first.gpus] == ["GPU-a", "GPU-b"]
    assert (first.gpus_expected, first.library, first.trouble) == (2, "scripted 1", None)
    for gpu in first.gpus:
        assert gpu.up
        assert gpu.memory is not None
        assert gpu.memory.used_bytes == 5e9
        assert gpu.link is not None
        assert before < gpu.at <= first.at
        assert (gpu.nvlink, gpu.health, gpu.processes) == (None, None, None)
        assert gpu.errors_total == (("health", "internal", 1.0),), "what a GPU has not is no error"
    assert (first.sequence, second.sequence) == (1, 2)
    assert second.started_at == first.started_at
    for one, other in zip(first.gpus, second.gpus, strict=True):
        assert one.at < other.at <= second.at


def test_numbers_that_are_none_never_get_out(tmp_path: Path) -> None:
    gpus(tmp_path, "GPU-a")
    (tmp_path / "GPU-a").write_text("inf")
    with sampling(tmp_path) as sampler:
        (gpu,) = sampler.frame().gpus
    assert gpu.memory is None
    assert ("memory", "bad_value", 1.0) in gpu.errors_total
    assert gpu.utilisation is not None, "one that isn't needed goes alone"
    assert (gpu.utilisation.busy_ratio, gpu.utilisation.sm_active_ratio) == (0.5, None)


def test_a_gpu_that_hangs_ages_and_is_named_while_the_others_stay_fresh(tmp_path: Path) -> None:
    with sampling(gpus(tmp_path, "GPU-a", "GPU-b")) as sampler:
        sampler.frame()
        (tmp_path / "hang-GPU-a").touch()
        frame = sampler.frame_where(lambda frame: frame.hung)
        sick, well = frame.gpus
        assert [hung.uuid for hung in frame.hung] == ["GPU-a"]
        assert frame.at - sick.at > HUNG_SECONDS > frame.at - well.at
        assert (frame.hung[0].group, "hung", 1.0) in sick.errors_total
        assert not any(reason == "hung" for _, reason, _ in well.errors_total)
        (tmp_path / "hang-GPU-a").unlink()
        frame = sampler.frame_where(lambda frame: not frame.hung)
        frame = sampler.frame_where(lambda frame: frame.at - frame.gpus[0].at < HUNG_SECONDS)
        assert sum(count for _, reason, count in frame.gpus[0].errors_total if reason == "hung") == 1


def test_a_library_that_does_not_come_back_from_being_opened_leaves_the_heart_beating(tmp_path: Path) -> None:
    (tmp_path / "hang-open").touch()
    with sampling(gpus(tmp_path, "GPU-a")) as sampler:
        first = sampler.frame()
        assert (first.trouble, first.gpus, first.gpus_expected) == (None, (), None)
        frame = sampler.frame_where(lambda frame: frame.trouble)
        assert frame.trouble is not None
        assert frame.trouble.reason == "hung"
        (tmp_path / "hang-open").unlink()
        frame = sampler.frame_where(lambda frame: frame.gpus)
        assert frame.trouble is None
        assert ("hung", 1.0) in frame.errors_total


def test_a_library_that_can_not_be_opened_is_said_and_tried_again(tmp_path: Path) -> None:
    (tmp_path / "fail-open").write_text("no_driver retry")
    with sampling(gpus(tmp_path, "GPU-a")) as sampler:
        trouble = sampler.frame().trouble
        assert trouble is not None
        assert trouble == ("no_driver", "open fails: as the test says")
        (tmp_path / "fail-open").unlink()
        frame = sampler.frame_where(lambda frame: frame.gpus)
        assert dict(frame.errors_total)["no_driver"] >= 1
        assert frame.trouble is None


def test_a_library_that_a_fresh_process_has_to_load_ends_this_one(tmp_path: Path) -> None:
    (tmp_path / "fail-open").write_text("version_mismatch reopen")
    with sampling(gpus(tmp_path, "GPU-a")) as sampler:
        frame = sampler.frame_where(lambda frame: frame.trouble)
        assert frame.trouble is not None
        assert frame.trouble.line.startswith("open fails: as the test says: the driver was upgraded")
        assert sampler.ended() == REOPEN_EXIT
        assert sampler.said() == ""


def test_a_gpu_that_has_lost_its_driver_ends_the_process_too(tmp_path: Path) -> None:
    with sampling(gpus(tmp_path, "GPU-a")) as sampler:
        sampler.frame()
        (tmp_path / "fail-GPU-a").write_text("driver_lost reopen")
        frame = sampler.frame_where(lambda frame: frame.trouble)
        assert frame.trouble is not None
        assert frame.trouble.line.startswith("GPU-a fails: as the test says: the driver was unloaded")
        lost = [count for _, reason, count in frame.gpus[0].errors_total if reason == "driver_lost"]
        assert lost == [1.0], "no group asks again"
        assert sampler.ended() == REOPEN_EXIT


def test_xids_are_counted_by_gpu(tmp_path: Path) -> None:
    with sampling(gpus(tmp_path, "GPU-a", "GPU-b")) as sampler:
        before = sampler.frame()
        (tmp_path / "xid-GPU-b").write_text("79")
        frame = sampler.frame_where(lambda frame: frame.gpus[1].xids_total)
        (tmp_path / "xid-GPU-b").write_text("79")
        frame = sampler.frame_where(lambda frame: frame.gpus[1].xids_total == ((79, 2.0),))
    assert frame.gpus[0].xids_total == ()
    assert frame.gpus[1].xid_last_at is not None
    assert before.at < frame.gpus[1].xid_last_at <= frame.at


def test_it_ends_on_sigterm_and_closes_the_library(tmp_path: Path) -> None:
    with sampling(gpus(tmp_path, "GPU-a")) as sampler:
        sampler.frame()
        sampler.process.terminate()
        assert sampler.ended() == 0
    assert (tmp_path / "closed").exists()


def test_it_ends_on_sigterm_while_a_call_hangs_and_leaves_the_library_alone(tmp_path: Path) -> None:
    with sampling(gpus(tmp_path, "GPU-a")) as sampler:
        sampler.frame()
        (tmp_path / "hang-GPU-a").touch()
        sampler.frame()
        sampler.frame()
        sampler.process.terminate()
        assert sampler.ended() == 0
    assert not (tmp_path / "closed").exists()


def test_it_ends_when_its_standard_input_does(tmp_path: Path) -> None:
    with sampling(gpus(tmp_path, "GPU-a")) as sampler:
        sampler.frame()
        assert sampler.process.stdin is not None
        sampler.process.stdin.close()
        assert sampler.ended() == 0


def test_it_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    pid = orphaned(gpus(tmp_path, "GPU-a"))
    until(lambda: not is_alive(pid), "the sampler has outlived its parent")


def test_nobody_reading_holds_nothing_up(tmp_path: Path) -> None:
    many = [f"GPU-{'x' * 200}-{number}" for number in range(200)]  # a frame fills the pipe
    with sampling(gpus(tmp_path, *many)) as sampler:
        until(lambda: sampler.waiting_bytes() > 50_000)
        for pause_seconds in (3, 10, 30):  # on a busy machine it makes fewer frames
            time.sleep(pause_seconds)
            frames = [sampler.frame() for _ in range(3)]
            assert all(len(frame.gpus) == 200 for frame in frames), "lines are whole"
            if left_out := frames[1].sequence > frames[0].sequence + 1:
                break
        assert left_out, "frames for which there was no room are left out"
        assert frames[2].at - frames[2].gpus[0].at < HUNG_SECONDS, "the reading went on"
        sampler.process.terminate()
        assert sampler.ended() == 0


def test_a_backend_that_is_none_is_one_line(tmp_path: Path) -> None:
    for name, said in (
        ("nonsense", "is not MODULE:CALLABLE"),
        ("exporter.nothing:Backend", "--backend exporter.nothing:Backend: can't be loaded: No module named"),
        ("exporter.pcie:Backend", "can't be loaded: module 'exporter.pcie' has no attribute 'Backend'"),
    ):
        with sampling(tmp_path, "--backend", name) as sampler:
            assert sampler.ended() == 2
            line = sampler.said()
        assert said in line
        assert "Traceback" not in line


def test_it_takes_less_than_20_mb_and_loads_nothing_that_costs_memory() -> None:
    script = (
        "import sys\n"
        "import exporter.sampler.__main__, exporter.sampler.nvml, pynvml\n"
        "from exporter.sampler.frames import resident_bytes\n"
        "print(resident_bytes(), *sys.modules)\n"
    )
    # without site, which loads more for a checkout that is installed in place than for an installed package
    folders = os.pathsep.join((str(ROOT), *(each for each in sys.path if each.endswith("site-packages"))))
    done = subprocess.run(
        [sys.executable, "-S", "-c", script],
        env={**os.environ, "PYTHONPATH": folders},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    size, *modules = done.stdout.split()
    assert not NEVER_LOADED & set(modules)
    assert float(size) < MOST_BYTES
