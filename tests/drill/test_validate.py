"""The model beside public runs of real engines, which it was not fitted to but for one constant (docs/drill.md)."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest

from drill import validate
from drill.validate import compare_public, compare_recorded, misses, misses_recorded, table
from drill.validation.public_runs import PublicRun, RunError, read_runs
from drill.validation.recorded_run import read_recorded
from drill.validation.small_engine import CONFIG

PAGE = Path(__file__).parent.parent.parent / "docs" / "drill.md"
FIXTURES = Path(__file__).parent.parent / "fixtures"
ARCHIVE = FIXTURES / "public_runs" / "llmservingsim-vllm.tar.xz"
RECORDING = FIXTURES / "captures" / "vllm-0.32.0-oracle.tar.xz"
RUNS = read_runs(ARCHIVE)


def test_the_runs_are_read_whole() -> None:
    assert [(each.run.name, each.replicas, len(each.run.observed)) for each in RUNS] == [
        ("RTX4090/Llama-3.1-8B", 1, 300),
        ("RTXPRO6000/Llama-3.1-8B", 1, 300),
        ("RTXPRO6000/Qwen3-30B-A3B-Instruct-2507", 2, 300),
        ("RTXPRO6000/Qwen3-32B", 1, 300),
    ]
    overload = RUNS[0]
    assert overload.config.total_blocks == 2588
    assert max(each.waiting for each in overload.run.readings) == 234
    assert max(each.usage_ratio or 0.0 for each in overload.run.readings) == 1.0
    assert all(each.usage_ratio is None for each in RUNS[1].run.readings)


@pytest.mark.parametrize("public", RUNS, ids=lambda each: each.run.name)
def test_means_and_curves_are_within_a_tenth_of_the_real_engine(public: PublicRun) -> None:
    assert misses(compare_public(public)) == []


def test_the_engine_that_runs_here_is_read_with_its_truth() -> None:
    recorded = read_recorded(RECORDING, seed=0)
    assert len(recorded.run.observed) == 395
    assert sum(each.last_token_seconds is None for each in recorded.run.observed) == 72  # clients that left
    assert recorded.run.preemptions == 156
    assert max(each.usage_ratio or 0.0 for each in recorded.run.readings) == 1.0
    assert 3e-3 < recorded.times.fixed_seconds < 5e-3


@pytest.mark.parametrize("seed", range(3))
def test_cache_usage_and_preemptions_are_those_of_the_engine_that_runs_here(seed: int) -> None:
    comparison = compare_recorded(read_recorded(RECORDING, seed))
    assert misses_recorded(comparison) == []
    assert abs(comparison.end_to_end.error) < 0.1
    assert abs(comparison.time_per_output_token.error) < 0.1


def test_a_recording_without_an_oracle_is_refused() -> None:
    path = FIXTURES / "captures" / "vllm-0.32.0.tar.xz"
    with pytest.raises(RunError, match=r"vllm-0\.32\.0\.tar\.xz: not a recording with an oracle"):
        read_recorded(path, seed=0)


def test_the_recordings_engine_is_the_one_that_make_real_starts() -> None:
    assert CONFIG.usable_blocks == 255
    assert CONFIG.block_bytes == 32 * 512


def test_the_pages_table_is_what_the_command_prints() -> None:
    # not the recording's: its times are fitted by a library whose last digits differ between machines
    assert table(map(compare_public, RUNS)) in PAGE.read_text()


def test_the_pages_example_runs() -> None:
    names: dict[str, Any] = {}
    exec(PAGE.read_text().split("```python")[1].split("```")[0], names)  # noqa: S102 -- our own page
    assert names["gauges"].running == 0
    assert names["engine"].totals.outcomes


def test_only_the_run_that_filled_the_cache_preempts() -> None:
    assert [compare_public(each).preemptions > 0 for each in RUNS] == [True, False, False, False]


def test_the_command_prints_a_row_for_each_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["validate", str(ARCHIVE)])
    assert validate.main() == 0
    out = capsys.readouterr().out
    assert out == table(map(compare_public, RUNS)) + "\n"
    assert out.count("\n") == 2 + len(RUNS)


def test_what_is_no_archive_of_runs_is_told_with_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken.tar.xz"
    broken.write_bytes(ARCHIVE.read_bytes()[:2000])
    for path, said in ((broken, "not an archive of runs"), (tmp_path / "missing", "No such file")):
        monkeypatch.setattr("sys.argv", ["validate", str(path)])
        assert validate.main() == 2
        error = capsys.readouterr().err
        assert said in error
        assert str(path) in error
        assert error.count("\n") == 1


def test_a_run_with_a_hole_says_which_file_of_which_run(tmp_path: Path) -> None:
    path = tmp_path / "hole.tar.xz"
    with tarfile.open(ARCHIVE) as whole, tarfile.open(path, "w:xz") as holed:
        for member in whole:
            if not member.name.endswith("RTX4090/Llama-3.1-8B/requests.jsonl"):
                holed.addfile(member, whole.extractfile(member) if member.isfile() else None)
    with pytest.raises(RunError, match=r"hole\.tar\.xz: RTX4090/Llama-3\.1-8B: KeyError: 'requests\.jsonl'"):
        read_runs(path)
