"""Which GPUs there are, looked at again and again: who comes, who goes, and what a failed look costs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from exporter.sampler.backend import ReadError, Remedy
from exporter.sampler.crew import Crew
from exporter.sampler.nvml_errors import error_of_code
from exporter.sampler.options import Options
from exporter.sampler.pace import Pace
from exporter.sampler.reasons import advice
from tests.exporter.sampler.sampling import gpus, until
from tests.exporter.sampler.scripted import FOLDER_VARIABLE

BACKEND = "tests.exporter.sampler.scripted:ScriptedBackend"
ONE, OTHER = "MIG-1-of-GPU-a", "MIG-2-of-GPU-a"


@pytest.fixture
def crew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Crew]:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setattr("exporter.sampler.crew.SCAN_SECONDS", 0.02)
    monkeypatch.setattr("exporter.sampler.crew._FIRST_PAUSE_SECONDS", 0.02)
    crew = Crew(Options(BACKEND), Pace(), lambda: None)
    yield crew
    crew.close(30)


def started(crew: Crew, folder: Path, *names: str) -> None:
    gpus(folder, *names)
    crew.start()
    until(lambda: named(crew) == set(names))


def named(crew: Crew) -> set[str]:
    return {reader.identity.uuid for reader in crew.readers}


def reading_threads() -> int:
    return sum(thread.name == "reading" for thread in threading.enumerate())


def test_a_gpu_that_is_new_is_read_and_one_that_was_known_goes_on(crew: Crew, tmp_path: Path) -> None:
    started(crew, tmp_path, "GPU-a")
    (known,) = crew.readers
    gpus(tmp_path, "GPU-b")
    until(lambda: named(crew) == {"GPU-a", "GPU-b"})
    assert crew.readers[0] is known
    until(lambda: all(reader.has_read for reader in crew.readers))
    until(lambda: crew.expected == 2)
    assert reading_threads() == 2, "one reads, one stands by"


def test_a_gpu_that_is_no_longer_counted_stays_and_is_no_longer_expected(crew: Crew, tmp_path: Path) -> None:
    started(crew, tmp_path, "GPU-a", "GPU-b")
    (tmp_path / "GPU-b").unlink()
    until(lambda: crew.expected == 1)
    assert named(crew) == {"GPU-a", "GPU-b"}


def test_instances_come_and_go_with_their_gpu(crew: Crew, tmp_path: Path) -> None:
    started(crew, tmp_path, "GPU-a", ONE)
    until(lambda: all(reader.has_read for reader in crew.readers))
    whole, part = crew.readers
    assert whole.sample.pcie is not None
    assert (part.sample.pcie, part.sample.memory is not None) == (None, True), "bytes are the whole GPU's"
    (tmp_path / ONE).unlink()
    gpus(tmp_path, OTHER)
    until(lambda: named(crew) == {"GPU-a", OTHER})
    assert crew.readers[0] is whole
    until(lambda: all(reader.has_read for reader in crew.readers))
    assert reading_threads() == 2


def test_a_look_that_fails_or_hangs_costs_nothing_that_is_read(crew: Crew, tmp_path: Path) -> None:
    started(crew, tmp_path, "GPU-a")
    (tmp_path / "fail-look").write_text("unknown retry")
    until(lambda: crew.errors["unknown"])
    assert crew.trouble(0.0) is None
    (tmp_path / "fail-look").write_text("nonsense")  # a bug: it can't be taken apart
    until(lambda: crew.errors["internal"])
    (tmp_path / "hang-look").touch()
    before = crew.readers[0].sample.at
    until(lambda: crew.readers[0].sample.at > before)
    assert [what for what, _ in crew.inside_calls() if "which" in what] == ["looking which GPUs there are"]
    for file in ("hang-look", "fail-look"):
        (tmp_path / file).unlink()
    gpus(tmp_path, "GPU-b")
    until(lambda: named(crew) == {"GPU-a", "GPU-b"})


def test_the_first_look_that_fails_is_why_there_is_nothing(crew: Crew, tmp_path: Path) -> None:
    (tmp_path / "fail-look").write_text("unknown retry")
    gpus(tmp_path, "GPU-a")
    crew.start()
    until(lambda: crew.trouble(0.0))
    assert crew.trouble(0.0) == ("unknown", "look fails: as the test says")
    (tmp_path / "fail-look").unlink()
    until(lambda: crew.readers)
    assert crew.trouble(0.0) is None


REOPENING = [
    error
    for error in (error_of_code("a call", code) for code in range(1, 29))
    if error.remedy == Remedy.REOPEN
]


@pytest.mark.parametrize("error", REOPENING, ids=str)
def test_whatever_call_meets_a_lost_driver_what_to_do_about_it_is_said_once(
    crew: Crew, error: ReadError
) -> None:
    crew.reopen(error)
    assert crew.end is not None
    assert crew.end.trouble == (error.reason, f"{error}: {advice(error.reason)}")
    assert advice(error.reason)
    told = ReadError(error.reason, error.remedy, crew.end.trouble.line)
    other = Crew(Options(BACKEND), Pace(), lambda: None)
    other.reopen(told)
    assert other.end is not None
    assert other.end.trouble.line == crew.end.trouble.line
