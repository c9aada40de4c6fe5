from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from analysis.analyze import JSON, MARKDOWN, PAGE, POSTMORTEM
from tests.evaluation.playing import Case, play
from thrashold import main


def _called(*args: str) -> Result:
    return CliRunner().invoke(main, ["analyze", *args])


@pytest.fixture(scope="module")
def recording() -> str:
    return str(play(Case("incident")).recording)


def test_a_recording_becomes_files_and_a_summary(recording: str, tmp_path: Path) -> None:
    result = _called(recording, "-o", str(tmp_path / "out"))
    assert result.exit_code == 0
    assert result.stdout.startswith("swap-thrash on engine-0 and engine-1")
    assert {each.name for each in (tmp_path / "out").iterdir()} == {PAGE, MARKDOWN, JSON, POSTMORTEM}
    assert all(str(tmp_path / "out" / name) in result.stdout for name in (PAGE, JSON))
    assert json.loads((tmp_path / "out" / JSON).read_text())["causes"][0]["cause"] == "swap-thrash"


def test_json_is_all_that_comes_on_standard_output_and_no_file_is_made(
    recording: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = _called(recording, "--json", "--end", "2026-09-29T14:20:00Z", "--start", "-8m")
    told = json.loads(result.stdout)
    assert told["start"] == 1790691120.0
    assert told["episodes"][0]["end"] is None
    assert list(tmp_path.iterdir()) == []


def test_notes_come_from_a_file(recording: str, tmp_path: Path) -> None:
    notes = tmp_path / "notes.yaml"
    notes.write_text("- {at: 2026-09-29T14:20:30Z, text: clamped, action: true}\n")
    result = _called(recording, "--json", "--annotations", str(notes))
    assert any(each["words"] == "clamped" for each in json.loads(result.stdout)["episodes"][0]["timeline"])


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["{gone}"], 1, "no such file or folder"),
        (["{here}"], 1, "without recording.db"),
        (["{recording}", "--start", "yesterday"], 2, "--start: 'yesterday'"),
        (["{recording}", "--start", "-2h"], 2, "--start: "),
        (["{recording}", "--start", "20", "--end", "10"], 2, "--start must be before --end"),
        (["{recording}", "--annotations", "{gone}"], 2, "can't be read"),
        (["{recording}", "--start", "1000", "--end", "2000"], 1, "holds nothing in that range"),
        (["{recording}", "-o", "{recording}"], 2, "is a file"),
    ],
)
def test_what_cant_be_done_is_said_in_a_line(
    recording: str, tmp_path: Path, args: list[str], code: int, words: str
) -> None:
    names = {"recording": recording, "here": str(tmp_path), "gone": str(tmp_path / "gone")}
    result = _called(*(each.format(**names) for each in args))
    assert result.exit_code == code
    assert words in result.output
    assert "Traceback" not in result.output
