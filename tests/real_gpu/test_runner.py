"""The conformance run itself, on GPUs whose answers are known: so that it works the first time on a real one."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from drill.fake_nvml import (
    DRIVER_470,
    DRIVER_590,
    GB10,
    H200,
    T4,
    VGPU_GUEST,
    Control,
    Driver,
    Feature,
    Flow,
    Profile,
)
from drill.fake_nvml.recorded import Recorded, RecordedField, RecordingError, load
from tests.exporter.sampler.machine import running
from tests.real_gpu import copying
from tests.real_gpu.copying import CHUNK_BYTES, SONAME, CopyError, Copying, CudaCopier
from tests.real_gpu.questions import Answer, Gpu, asked, counters
from tests.support.fake_library import Without, need_parts

ROOT = Path(__file__).resolve().parents[2]
SLOW_H200 = replace(H200, generation=3, width=8)
"""A link whose counters wrap after half a second: a machine that is busy with other things still polls in time."""
PAYLOAD, HEADERS = 3e9, 1.08


class FakeCopier:
    """Lets bytes flow in the fake instead of copying, without a break until it is to finish."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._flow = Flow.PCIE_RX
        self._is_flowing, self._told = False, 0.0

    def to_gpu(self) -> int:
        return self._copied(Flow.PCIE_RX, transmit=1e6, receive=PAYLOAD * HEADERS)

    def to_host(self) -> int:
        return self._copied(Flow.PCIE_TX, transmit=PAYLOAD * HEADERS, receive=1e6)

    def finish(self) -> int:
        self._control.traffic(0, transmit=0, receive=0)
        payload, self._is_flowing = self._payload(), False
        return payload

    def _copied(self, flow: Flow, *, transmit: float, receive: float) -> int:
        if not self._is_flowing:
            self._flow, self._is_flowing, self._told = flow, True, self._control.moved(0, flow)
            self._control.traffic(0, transmit=transmit, receive=receive)
        time.sleep(0.02)
        return self._payload()

    def _payload(self) -> int:
        before, self._told = self._told, self._control.moved(0, self._flow)
        return round((self._told - before) / HEADERS)


@pytest.fixture
def on(fake_library: Without, tmp_path: Path) -> Iterator[Callable[..., dict[str, str]]]:
    """A machine with this GPU by the real clock, as the environment of whoever runs on it."""
    with ExitStack() as stack:

        def start(profile: Profile, driver: Driver, recorded: Recorded | None = None) -> dict[str, str]:
            control = stack.enter_context(Control(tmp_path / "control", [profile], driver))
            if recorded is not None:
                recorded.give(control, 0)
            return {**os.environ, **control.environment(fake_library(*driver.hidden))}

        yield start


def run(environment: dict[str, str], out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.real_gpu.run", "--seconds", "0.05", "--out", str(out), *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("profile", "driver"),
    [(H200, DRIVER_590), (H200, DRIVER_470), (T4, DRIVER_590), (VGPU_GUEST, DRIVER_590), (GB10, DRIVER_590)],
    ids=lambda given: given.name if isinstance(given, Profile) else given.version,
)
def test_a_run_is_written_and_can_be_played(
    profile: Profile, driver: Driver, on: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    done = run(on(profile, driver), tmp_path / "first")
    assert done.returncode == 0, done.stderr
    for number in range(1, 9):
        assert f"\n{number}. " in done.stdout
    (file,) = (tmp_path / "first").iterdir()
    assert "GPU-0000" not in file.read_text(), "a recording names no card"
    first = load(file)
    assert first.driver == replace(driver, hidden=tuple(sorted(driver.hidden)))
    absent = driver.hidden and Feature.GPM in profile.features
    assert first.profile.features == profile.features & ~(Feature.GPM if absent else Feature(0))
    known = {"name", "temperature", "nvlinks", "ecc", "virtualization", "architecture"}
    known |= {"generation", "width"} if Feature.PCIE_LINK in profile.features else set()
    known |= {"power_mw"} if Feature.POWER in profile.features else set()
    known |= {"memory_mib"} if Feature.MEMORY in profile.features else set()
    for name in known:
        assert getattr(first.profile, name) == getattr(profile, name), name
    done = run(on(first.profile, first.driver, first), tmp_path / "again")
    assert done.returncode == 0, done.stderr
    again = load(next((tmp_path / "again").iterdir()))
    # what flows is measured, to the nearest KB/s
    measured = {"source": "", "idle_transmit": 0.0, "idle_receive": 0.0}
    assert replace(again.profile, **measured) == replace(first.profile, **measured)
    assert again.profile.idle_transmit == pytest.approx(first.profile.idle_transmit, abs=2000)
    assert [_said(field) for field in again.fields] == [_said(field) for field in first.fields]


def _said(field: RecordedField) -> tuple[int, int, int, float | None]:
    return field.id, field.scope, field.code, None if field.code else field.value


def test_without_a_gpu_it_says_so(on: Callable[..., dict[str, str]], tmp_path: Path) -> None:
    environment = on(T4, DRIVER_590)
    done = run({**environment, "LD_LIBRARY_PATH": str(tmp_path)}, tmp_path / "out")
    assert done.returncode == 1
    assert done.stderr.startswith("no GPU to ask: nvmlInit failed with library not found")
    done = run(environment, tmp_path / "out", "--gpu", "3")
    assert (done.returncode, done.stderr) == (1, "no GPU to ask: no GPU 3 of 1\n")
    assert not (tmp_path / "out").exists()


@pytest.fixture
def answers(fake_library: Without, tmp_path: Path) -> Iterator[dict[int, Answer]]:
    """What is answered of a GPU whose traffic is known, by question."""
    with running(tmp_path, fake_library(), [SLOW_H200], DRIVER_590, own_clock=False) as machine:
        machine.control.device(0).energy_mj = 1
        for field in (251, 252, 253):
            machine.control.field(0, field, 1)
        gpu = Gpu(importlib.import_module("pynvml"), machine.gpu(), FakeCopier(machine.control), 0.5)
        yield {answer.number: answer for answer in asked(gpu)}


def test_the_answers_are_those_of_the_fake(answers: dict[int, Answer]) -> None:
    assert list(answers) == list(range(1, 9))
    assert answers[1].figures["types"] == ["uint32", "uint32"]
    assert answers[1].figures["bogus_field_code"] == 3
    assert answers[1].figures["timestamp_is"] == "another clock"
    assert answers[2].found.startswith("complete from a spacing of")
    assert answers[3].found == "1000"
    assert answers[5].found == "no: used, free and reserved add up to total"
    assert answers[7].found == "answered: 251, 252, 253"
    assert answers[8].found.startswith("TX is GPU to host")
    for way, main in (("to_gpu", "in"), ("to_host", "out")):
        figures = answers[8].figures[way]
        if not figures["intervals_not_told"]:
            assert figures[main] / figures["payload"] == pytest.approx(HEADERS, rel=0.001)


def test_a_wrap_is_seen_where_there_is_one(fake_library: Without, tmp_path: Path) -> None:
    with running(tmp_path, fake_library(), [SLOW_H200], DRIVER_590, own_clock=False) as machine:
        machine.control.set_moved(0, Flow.PCIE_RX, (1 << 32) - 1e8)
        gpu = Gpu(importlib.import_module("pynvml"), machine.gpu(), FakeCopier(machine.control), 0.5)
        found = counters(gpu)
    assert found.found.startswith("uint32, wraps at 2^32, timestamp another clock")


@pytest.fixture
def cuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA's library as far as the copier calls it."""
    need_parts()
    source = Path(__file__).with_name("cuda_stand_in.c")
    library = tmp_path / SONAME
    flags = ("-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
    subprocess.run(["gcc", *flags, "-o", str(library), str(source)], check=True)
    monkeypatch.setattr(copying, "SONAME", str(library))


@pytest.mark.usefixtures("cuda")
def test_the_copier_copies_both_ways_in_any_thread() -> None:
    with CudaCopier("00000000:19:00.0") as copier:
        assert copier.to_host() == CHUNK_BYTES
        with Copying(copier, to_gpu=True) as copied:
            pass
        assert copied.payload_bytes % CHUNK_BYTES == 0


@pytest.mark.usefixtures("cuda")
def test_a_gpu_that_cuda_does_not_know_is_named() -> None:
    with pytest.raises(CopyError, match="cuDeviceGetByPCIBusId: CUDA error 101"):
        CudaCopier("00000000:77:00.0")


def test_without_cuda_nothing_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "SONAME", "libno-such-cuda.so.1")
    with pytest.raises(CopyError, match=r"libno-such-cuda\.so\.1"):
        CudaCopier("00000000:19:00.0")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "fields": []}'])
def test_what_is_no_recording_is_refused_with_its_name(text: str, tmp_path: Path) -> None:
    file = tmp_path / "gpu.json"
    file.write_text(text)
    with pytest.raises(RecordingError, match=r"gpu\.json: "):
        load(file)
