"""The sampler's supervisor on real processes: it starts, listens, starts again, and never waits."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from exporter import sampler_signals as signals
from exporter.clock import anchored_clock
from exporter.gpu_settings import GpuSettings
from exporter.observation import Observation
from exporter.sampler.frame import ENDING_NAME, HUNG_SECONDS
from exporter.signal import Signal
from exporter.sources.nvml import NvmlSource
from exporter.sources.sampler_process import SAMPLER, SamplerProcess
from exporter.sources.source import Source
from tests.exporter.sampler.sampling import BACKEND, SECONDS, gpus, is_alive, orphaned, until
from tests.exporter.sampler.scripted import FOLDER_VARIABLE

pytestmark = pytest.mark.long

PAUSES = (0.05, 0.2)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    return tmp_path


def source(*command: str, settings: GpuSettings | None = None) -> NvmlSource:
    return NvmlSource(
        settings or GpuSettings(),
        anchored_clock(),
        command=command or (*SAMPLER, *BACKEND),
        pauses_seconds=PAUSES,
    )


def script(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text)


async def seen(source: NvmlSource, holds: Callable[[Observation], object]) -> Observation:
    """What the source shows once that holds."""
    deadline = time.monotonic() + SECONDS
    while not holds(observation := source.observe()):
        assert time.monotonic() < deadline, observation
        await asyncio.sleep(0.02)
    return observation


def run(source: NvmlSource, work: Callable[[], Awaitable[None]]) -> None:
    """Do ``work`` while the source runs, then see the sampler end."""

    async def both() -> None:
        task = asyncio.create_task(source.run())
        try:
            await work()
        finally:
            task.cancel()
            await asyncio.wait({task})

    asyncio.run(both())
    until(lambda: source.pid is None, "the sampler was not told to end")


def own(observation: Observation, signal: Signal) -> float | None:
    return next((value.value for value in observation.own if value.signal is signal), None)


def test_before_the_first_frame_nothing_is_known() -> None:
    nvml: Source = source()
    observation = nvml.observe()
    status = observation.status
    assert (status.name, status.kind, status.answering, status.last_at) == ("nvml", "nvml", False, None)
    assert observation.gpus == ()
    assert own(observation, signals.SAMPLER_RESTARTS) == 0
    assert own(observation, signals.GPUS_EXPECTED) is None


def test_one_read_waits_for_every_gpu_and_leaves_nothing_behind(folder: Path) -> None:
    gpus(folder, "GPU-a", "GPU-b")
    nvml = source(settings=GpuSettings(processes=True))
    before = time.time()
    asyncio.run(nvml.read_once())
    observation = nvml.observe()
    until(lambda: nvml.pid is None)
    assert observation.status.answering
    assert observation.status.last_error == ""
    assert [sample.identity.uuid for sample in observation.gpus] == ["GPU-a", "GPU-b"]
    for sample in observation.gpus:
        assert sample.memory is not None
        assert before - 1 < sample.at < time.time() + 1, "by the sidecar's clock"
        assert len(sample.processes or ()) == 1, "the scripted GPU names the sampler"
    assert own(observation, signals.GPUS_EXPECTED) == 2
    assert 5e6 < (own(observation, signals.SAMPLER_RESIDENT) or 0) < 20e6
    assert 0 < (own(observation, signals.SAMPLER_FAST_INTERVAL) or 0) < 1


def test_one_read_of_what_does_not_answer_says_so(folder: Path) -> None:
    (folder / "hang-open").touch()
    nvml = source()
    asyncio.run(nvml.read_once())
    status = nvml.observe().status
    assert not status.answering
    assert status.last_error.startswith("the GPUs were not read within 3 s; ")
    assert status.last_error.endswith(", or this machine is short of CPU")
    assert status.errors == (("timeout", 1),)
    until(lambda: nvml.pid is None)


def test_samples_get_on_from_frame_to_frame_and_numbers_change(folder: Path) -> None:
    gpus(folder, "GPU-a")
    nvml = source()

    async def work() -> None:
        first = (await seen(nvml, lambda shown: shown.gpus)).gpus[0]
        (folder / "GPU-a").write_text("6e9")
        later = (await seen(nvml, lambda shown: shown.gpus[0].at > first.at + 1)).gpus[0]
        assert later.memory is not None
        assert later.memory.used_bytes == 6e9
        assert nvml.observe().gpus[0].at - first.at < 60

    run(nvml, work)


def test_a_sampler_that_dies_is_started_again_and_counted(folder: Path) -> None:
    gpus(folder, "GPU-a")
    nvml = source()

    async def work() -> None:
        await seen(nvml, lambda shown: shown.status.answering)
        first = nvml.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        shown = await seen(nvml, lambda shown: ("exited", 1) in shown.status.errors)
        assert "the sampler was ended by SIGKILL" in shown.status.last_error
        assert "out of memory" in shown.status.last_error
        shown = await seen(nvml, lambda shown: not shown.status.last_error)
        assert nvml.pid not in {None, first}
        assert own(shown, signals.SAMPLER_RESTARTS) == 1
        assert shown.gpus[0].up

    run(nvml, work)


def test_what_a_sampler_said_last_is_in_the_line_and_the_log(caplog: pytest.LogCaptureFixture) -> None:
    nvml = source(*script("import sys; sys.exit('no such thing\\nas luck')"))

    async def work() -> None:
        shown = await seen(nvml, lambda shown: ("exited", 3) in shown.status.errors)
        assert shown.status.last_error.startswith("the sampler ended with code 1 (as luck): ")

    run(nvml, work)
    assert "sampler: no such thing" in caplog.text
    assert caplog.text.count("GPUs: the sampler ended with code 1") == 1, "the same failure is said once"


def test_of_a_sampler_that_dies_without_a_word_none_is_said_to_stand_in_the_log() -> None:
    nvml = source(*script("import os; os.kill(os.getpid(), 9)"))
    asyncio.run(nvml.read_once())
    line = nvml.observe().status.last_error
    until(lambda: nvml.pid is None)
    assert line.startswith("the sampler was ended by SIGKILL and has said nothing: it is started again; ")
    assert "the log" not in line.replace("the kernel's log", "")


def test_pauses_between_starts_grow_up_to_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    enough = asyncio.Event()

    async def noted(process: SamplerProcess) -> None:
        if process.restarts == 8:
            enough.set()
            await asyncio.Event().wait()

    async def at_once(seconds: float) -> None:
        waited.append(seconds)

    nvml = NvmlSource(GpuSettings(), anchored_clock(), pauses_seconds=(1.0, 60.0))
    monkeypatch.setattr(SamplerProcess, "_run_one", noted)
    monkeypatch.setattr("exporter.sources.sampler_process.asyncio.sleep", at_once)

    async def work() -> None:
        await asyncio.wait_for(enough.wait(), SECONDS)

    run(nvml, work)
    assert waited == [1, 2, 4, 8, 16, 32, 60, 60]


def test_a_sampler_that_can_not_be_started_is_one_line() -> None:
    nvml = source("/nowhere/python")
    asyncio.run(nvml.read_once())
    status = nvml.observe().status
    assert status.errors == (("not_started", 1),)
    assert status.last_error.startswith("the sampler can't be started: No such file or directory; ")


def test_a_line_that_is_no_frame_is_counted_and_the_next_one_taken() -> None:
    frame = '[1,1.0,0.5,[],0,null,"590",null,[],[],[]]'
    nvml = source(*script(f"print('[1,'); print('null'); print('{frame}', flush=True); input()"))

    async def work() -> None:
        shown = await seen(
            nvml, lambda shown: own(shown, signals.SAMPLER_CPU) is not None and shown.status.last_at
        )
        assert shown.status.errors == (("bad_frame", 2),)

    run(nvml, work)


def test_a_lost_driver_takes_a_fresh_process(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    gpus(folder, "GPU-a")
    nvml = source()

    async def work() -> None:
        await seen(nvml, lambda shown: shown.status.answering)
        first = nvml.pid
        (folder / "fail-open").write_text("version_mismatch reopen")
        (folder / "fail-GPU-a").write_text("driver_lost reopen")
        shown = await seen(nvml, lambda shown: not shown.status.answering)
        assert shown.status.last_error.startswith("GPU-a fails: as the test says: the driver was unloaded")
        shown = await seen(nvml, lambda shown: "open fails" in shown.status.last_error)
        assert shown.gpus[0].down_because == "version_mismatch"
        for file in ("fail-open", "fail-GPU-a"):
            (folder / file).unlink()
        shown = await seen(nvml, lambda shown: shown.status.answering)
        assert nvml.pid != first
        errors = dict(shown.status.errors)
        assert errors["driver_lost"] == 1
        assert errors["version_mismatch"] >= 1
        assert "exited" not in errors, "it was asked to"

    run(nvml, work)
    assert "GPUs: all that there are can be read again" in caplog.text


def test_what_is_read_and_by_which_driver_is_said_once(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    gpus(folder, "GPU-a", "GPU-b")
    nvml = source()

    async def work() -> None:
        first = (await seen(nvml, lambda shown: shown.status.answering)).gpus[0].at
        await seen(nvml, lambda shown: shown.gpus[0].at > first + 1)

    run(nvml, work)
    assert [each.getMessage() for each in caplog.records if each.getMessage().startswith("nvml: ")] == [
        "nvml: 2 GPUs, scripted 1"
    ]


def test_an_xid_is_a_line_in_the_log(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    gpus(folder, "GPU-a")
    nvml = source()

    async def work() -> None:
        await seen(nvml, lambda shown: shown.status.answering)
        (folder / "xid-GPU-a").write_text("31")
        await seen(nvml, lambda shown: shown.gpus[0].xids_total)

    run(nvml, work)
    assert caplog.text.count("XID 31 on GPU 0 (GPU-a)") == 1


def test_one_gpu_that_hangs_is_down_and_the_other_goes_on(folder: Path) -> None:
    gpus(folder, "GPU-a", "GPU-b")
    nvml = source()

    async def work() -> None:
        await seen(nvml, lambda shown: len(shown.gpus) == 2)
        (folder / "hang-GPU-a").touch()
        shown = await seen(nvml, lambda shown: not shown.gpus[0].up)
        assert (shown.gpus[0].down_because, shown.gpus[1].up) == ("hung", True)
        assert shown.status.answering
        assert shown.status.last_error.startswith("GPU 0 (GPU-a) can't be read: hung")
        (folder / "hang-GPU-a").unlink()
        shown = await seen(nvml, lambda shown: shown.gpus[0].up)
        assert shown.status.last_error == ""
        assert own(shown, signals.SAMPLER_RESTARTS) == 0

    run(nvml, work)


def test_a_sampler_that_falls_silent_is_told_to_end_and_no_second_one_is_started_while_it_lives(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gpus(folder, "GPU-a")
    nvml = source()

    async def work() -> None:
        await seen(nvml, lambda shown: shown.status.answering)
        held = nvml.pid
        assert held is not None
        os.kill(held, signal.SIGSTOP)  # it hears no SIGTERM, as one that the kernel holds
        try:
            shown = await seen(nvml, lambda shown: (own(shown, signals.SAMPLER_STUCK) or 0) > 0)
            shown = await seen(nvml, lambda shown: ("hung", 1) in shown.status.errors)
            assert "the sampler has said nothing for 5 s and is told to end" in shown.status.last_error
            assert (shown.gpus[0].up, shown.gpus[0].down_because) == (False, "hung")
            assert not shown.status.answering
            while "does not end" not in caplog.text:
                shown = await seen(nvml, lambda _: True)
                await asyncio.sleep(0.05)
            assert f"the sampler (process {held}) does not end: threads: " in caplog.text
            assert "in state T" in caplog.text
            assert (nvml.pid, own(shown, signals.SAMPLER_RESTARTS)) == (held, 0)
            assert is_alive(held), "nobody has killed it"
        finally:
            os.kill(held, signal.SIGCONT)
        shown = await seen(nvml, lambda shown: own(shown, signals.SAMPLER_RESTARTS) == 1)
        shown = await seen(nvml, lambda shown: shown.status.answering)
        assert not is_alive(held)
        assert own(shown, signals.SAMPLER_STUCK) == 0
        assert shown.status.errors[0][0] == "hung"

    run(nvml, work)


def test_a_sidecar_that_is_started_again_starts_no_sampler_beside_one_that_does_not_end(folder: Path) -> None:
    def hang() -> None:
        (folder / "hang-GPU-a").touch()
        time.sleep(3)  # a read has been inside for more than a second

    left = orphaned(gpus(folder, "GPU-a"), hang)
    until(lambda: Path(f"/proc/{left}/comm").read_text().strip() == ENDING_NAME)
    os.kill(left, signal.SIGSTOP)  # it comes to no end, as one that the kernel holds
    nvml = source()

    async def work() -> None:
        shown = await seen(nvml, lambda shown: ("hung", 1) in shown.status.errors)
        assert shown.status.last_error.startswith(f"an earlier sampler (process {left}, threads: ")
        assert "in state T" in shown.status.last_error
        assert (nvml.pid, is_alive(left)) == (None, True), "none is started, and nobody has killed it"
        (folder / "hang-GPU-a").unlink()
        os.kill(left, signal.SIGCONT)
        shown = await seen(nvml, lambda shown: shown.status.answering)
        assert not is_alive(left)
        assert own(shown, signals.SAMPLER_RESTARTS) == 0

    try:
        run(nvml, work)
    finally:
        if is_alive(left):
            os.kill(left, signal.SIGCONT)


def test_a_sampler_that_ends_as_it_should_is_no_failure_of_the_next_one(
    folder: Path,
) -> None:
    orphaned(gpus(folder, "GPU-a"))
    nvml = source()

    async def work() -> None:
        shown = await seen(nvml, lambda shown: shown.status.answering)
        assert not {"hung", "exited", "timeout"} & dict(shown.status.errors).keys()

    run(nvml, work)


def test_a_sidecar_that_did_not_run_for_a_while_blames_neither_driver_nor_sampler(folder: Path) -> None:
    gpus(folder, "GPU-a")
    nvml = source()

    async def work() -> None:
        await seen(nvml, lambda shown: shown.status.answering)
        first = nvml.pid
        time.sleep(HUNG_SECONDS + 2)  # noqa: ASYNC251 - as on a machine that is short of CPU
        shown = nvml.observe()
        assert shown.gpus[0].up
        assert own(shown, signals.SAMPLER_STUCK) == 0
        for _ in range(20):
            await asyncio.sleep(0.1)
            shown = nvml.observe()
            assert (shown.gpus[0].up, "hung" in dict(shown.status.errors)) == (True, False)
        assert nvml.pid == first

    run(nvml, work)


def test_a_source_that_is_run_again_waits_for_the_sampler_of_before(folder: Path) -> None:
    gpus(folder, "GPU-a")
    nvml = source()

    async def work() -> None:
        task = asyncio.create_task(nvml.run())
        await seen(nvml, lambda shown: shown.status.answering)
        first = nvml.pid
        assert first is not None
        os.kill(first, signal.SIGSTOP)
        task.cancel()
        await asyncio.wait({task})
        task = asyncio.create_task(nvml.run())
        await asyncio.sleep(0.2)
        assert nvml.pid == first
        os.kill(first, signal.SIGCONT)
        await seen(nvml, lambda _: nvml.pid not in {None, first})
        task.cancel()
        await asyncio.wait({task})

    asyncio.run(work())
    until(lambda: nvml.pid is None)
