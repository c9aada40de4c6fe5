from __future__ import annotations

import io
import math
from pathlib import Path

import pytest
from click.testing import CliRunner
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from exporter import recorder_export, recorder_selection
from exporter.recorder_command import recorder as command
from exporter.recorder_export import export_openmetrics
from exporter.recorder_reader import Recording, read
from exporter.recorder_selection import Selection
from exporter.recorder_writer import RecordingWriter, Retention
from exporter.signal import Kind
from tests.exporter.golden import KV_BYTES_PER_TOKEN
from tests.support.recorder import START, TOKENS, second, signal, snapshot
from tests.support.replay import replayed

LABELLED = signal("labelled", Kind.GAUGE, ("text",))
ODD = 'back\\slash, "quotes"\nand a line'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "recording"
    writer = RecordingWriter(path, Retention())
    for place in range(130):
        writer.write(second(place))
    odd = [(LABELLED, (ODD,), value) for value in (math.nan, math.inf, -math.inf, 0.1)]
    for place, values in enumerate(odd, start=200):
        writer.write(snapshot(START + place, values, (TOKENS, (), math.nan)))
    writer.close()
    return path


def parsed(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], list[tuple[float, float]]]:
    found: dict[tuple[str, tuple[tuple[str, str], ...]], list[tuple[float, float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            found.setdefault(key, []).append((float(sample.timestamp), sample.value))
    return found


def exported(file: Path, **limits: float) -> str:
    out = io.BytesIO()
    with Recording(file) as recording:
        written = export_openmetrics(recording, out, Selection(**limits))
    text = out.getvalue().decode()
    assert written == len([line for line in text.splitlines() if not line.startswith("#")])
    return text


def test_an_export_gives_the_values_back(file: Path) -> None:
    found = parsed(exported(file))
    expected = {
        (each.name, tuple(sorted(each.labels.items()))): [
            pair
            for pair in zip(each.times, each.values, strict=True)
            if each.kind is Kind.GAUGE or not math.isnan(pair[1])
        ]
        for each in read(file)
    }
    assert found.keys() == expected.keys()
    for key, pairs in expected.items():
        assert repr(found[key]) == repr(pairs)  # in which one nan is like another
    assert ("thrashold_labelled", (("text", ODD),)) in found


def test_a_range_is_exported(file: Path) -> None:
    found = parsed(exported(file, start=START + 50, end=START + 70))
    assert {len(pairs) for pairs in found.values()} == {20}
    assert exported(file, end=START) == "# EOF\n"


def test_families_stay_whole_however_little_memory_there_is(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = exported(file)
    monkeypatch.setattr(recorder_selection, "_VALUES_AT_ONCE", 1)
    monkeypatch.setattr(recorder_export, "_LINES_AT_ONCE", 7)
    assert exported(file) == at_once


def test_a_replay_of_a_real_engine_is_recorded_and_exported(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    cycles = replayed("vllm-0.32.0", KV_BYTES_PER_TOKEN)
    writer = RecordingWriter(path, Retention())
    for cycle in cycles:
        writer.write(cycle.snapshot)
    writer.close()
    found = parsed(exported(path))
    at = {key: dict(pairs) for key, pairs in found.items()}
    values = 0
    for cycle in cycles:
        for value in cycle.snapshot.values:
            if not value.is_peak:
                labels = tuple(sorted(zip(value.signal.label_names, value.labels, strict=True)))
                told = at[value.signal.full_name, labels][round(cycle.snapshot.at, 3)]
                rel = 0.0 if value.signal.kind is Kind.COUNTER else 6e-8
                assert told == pytest.approx(value.value, rel=rel, abs=0.0)
                values += 1
    assert values == sum(map(len, found.values())) > 5000


def call(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(command, ["export", *map(str, arguments)])
    return result.exit_code, result.stderr


def test_the_command_writes_a_whole_file_or_none(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "metrics.om"
    assert call(file, "-o", out) == (0, "394 values\n")
    assert parsed(out.read_text(encoding="utf-8"))
    missing = tmp_path / "none"
    assert call(missing, "-o", tmp_path / "b") == (1, f"Error: {missing}: no such file\n")
    code, error = call(file, "-o", tmp_path / "none" / "b")
    assert code == 1
    assert "No such file or directory" in error
    assert sorted(each.name for each in tmp_path.iterdir()) == ["metrics.om", "recording"]


def test_the_command_takes_the_signals_that_are_named(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "metrics.om"
    names = ("--signal", "kv_usage_ratio", "--signal", "thrashold_labelled")
    assert call(file, "-o", out, *names) == (0, "134 values\n")
    assert {name for name, _ in parsed(out.read_text(encoding="utf-8"))} == {
        "thrashold_kv_usage_ratio",
        "thrashold_labelled",
    }


def test_the_command_writes_to_standard_output(file: Path) -> None:
    result = CliRunner().invoke(command, ["export", str(file), "-o", "-"])
    assert result.stdout.endswith("# EOF\n")


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("1800000010", "1800000020.0"),
        ("2027-01-15T08:00:10Z", "2027-01-15T08:00:20"),
        ("2027-01-15T09:00:10+01:00", "2027-01-15 08:00:20.000"),
    ],
)
def test_the_command_takes_times_as_people_write_them(
    file: Path, tmp_path: Path, start: str, end: str
) -> None:
    out = tmp_path / "metrics.om"
    assert call(file, "-o", out, "--from", start, "--to", end) == (0, "30 values\n")


@pytest.mark.parametrize("name", ["flight.csv", "flight.JSON", "flight.pq", "flight.om.gz"])
def test_the_command_writes_no_format_under_the_name_of_another(
    file: Path, tmp_path: Path, name: str
) -> None:
    code, error = call(file, "-o", tmp_path / name)
    assert code == 2
    assert "end it in .parquet for Parquet, in .om for OpenMetrics" in " ".join(error.split())
    assert not (tmp_path / name).exists()


def test_the_command_says_when_there_was_nothing(file: Path, tmp_path: Path) -> None:
    _, error = call(file, "-o", tmp_path / "a", "--to", "1000")
    assert error.startswith(
        "0 values: nothing was recorded in that time: the recording is from 2027-01-15T08:00:00Z to "
    )
    assert (tmp_path / "a").read_text(encoding="utf-8") == "# EOF\n"


def test_the_command_says_what_it_can_not_use(file: Path, tmp_path: Path) -> None:
    for arguments, text in (
        (["-o", tmp_path / "a", "--signal", "nothing"], "no signal nothing is recorded\n"),
        (["-o", tmp_path / "a", "--signal", "labeled"], "; did you mean labelled?"),
        (
            ["-o", tmp_path / "a", "--signal", "kv_usage_ratio_peak"],
            ": peaks are left out; take kv_usage_ratio\n",
        ),
        (["-o", tmp_path / "a", "--from", "1800000000000"], "seconds since the epoch are meant"),
        (
            ["-o", tmp_path / "a", "--from", "yesterday"],
            "'yesterday' is neither seconds since the epoch nor a time such as",
        ),
        (["-o", tmp_path / "a", "--from", "nan"], "'nan' is neither"),
        (["-o", tmp_path / "a", "--from", "20", "--to", "10"], "--from must be before --to"),
    ):
        code, error = call(file, *arguments)
        assert code == 2
        assert text in error
    assert not (tmp_path / "a").exists()
