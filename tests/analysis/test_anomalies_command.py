import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from analysis import fleet
from analysis.page.document import MOST_BYTES
from tests.evaluation.playing import Case, play
from tests.support import chromium
from tests.support.processes import end
from thrashold import main


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An incident and a calm day, by their names, as they are kept for all tests."""
    folder = tmp_path_factory.mktemp("runs")
    for scenario in ("incident", "benign-day"):
        (folder / scenario).symlink_to(play(Case(scenario)).recording.parent)
    return folder


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["anomalies", *map(str, arguments)])


def _json(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_an_incident_is_told_by_place_from_its_onset_on(runs: Path) -> None:
    truth = json.loads((runs / "incident" / "truth.json").read_text(encoding="utf-8"))
    (source,) = _json(_run(runs / "incident", "--json"))["sources"]
    places = source["places"]
    assert set(truth["affected"]) <= {place["place"] for place in places}
    assert [place["since"] for place in places] == sorted(place["since"] for place in places)
    assert truth["onset"] - 5 <= places[0]["since"] <= truth["onset"] + 30
    for place in places:
        starts = [flag["start"] for flag in place["flags"]]
        assert starts == sorted(starts)
        assert place["moved_first"]
        assert all(truth["onset"] - 5 <= start <= truth["end"] + 60 for start in starts)
    engine = next(place for place in places if place["place"] == "engine-0")
    signals = {flag["signal"] for flag in engine["flags"]}
    assert {"thrashold_swapped_sequences", "thrashold_kv_usage_ratio"} <= signals
    assert any(signal.startswith("thrashold_pcie_") for signal in signals), "its GPUs are the engine's"


def test_what_is_said_is_for_people_and_a_calm_day_is_an_answer(runs: Path) -> None:
    told = _run(runs / "incident")
    assert told.exit_code == 0
    assert "moved first:" in told.output
    assert "spreads above" in told.output
    assert "UTC" in told.output
    calm = _run(runs / "benign-day")
    assert calm.exit_code == 0
    assert "Nothing unusual." in calm.output
    assert _json(_run(runs / "benign-day", "--json"))["sources"][0]["places"] == []


def test_a_range_is_looked_at_alone(runs: Path) -> None:
    truth = json.loads((runs / "incident" / "truth.json").read_text(encoding="utf-8"))
    before = _json(_run(runs / "incident", "--end", truth["onset"] - 5, "--start", "-10m", "--json"))
    (source,) = before["sources"]
    assert source["end"] <= truth["onset"]
    assert source["places"] == []


def test_what_could_not_be_judged_is_not_called_usual(runs: Path, tmp_path: Path) -> None:
    page = tmp_path / "unusual.html"
    told = _run(runs / "benign-day", "--step", "300", "--html", page)
    assert told.exit_code == 0
    assert "; 0 of " in told.output
    for text in (told.output, page.read_text(encoding="utf-8")):
        assert "Nothing could be judged" in text
        assert "Nothing unusual" not in text


def test_ranges_and_steps_that_give_nothing_are_said_in_times_and_counts(runs: Path) -> None:
    truth = json.loads((runs / "benign-day" / "truth.json").read_text(encoding="utf-8"))
    later = _run(runs / "benign-day", "--start", truth["seconds"][-1] + 3600)
    assert (later.exit_code, "it holds 2026-09-29T14:00:" in later.output) == (1, True)
    finer = _run(runs / "benign-day", "--step", "1e-9")
    assert (finer.exit_code, "don't fit into memory" in finer.output) == (1, True)


def test_a_page_has_what_is_flagged_with_what_was_expected(runs: Path, tmp_path: Path) -> None:
    page = tmp_path / "unusual.html"
    assert _run(runs / "incident", runs / "benign-day", "--html", page).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert len(text.encode()) < MOST_BYTES
    assert text.count("was usual") >= 10
    assert "Nothing unusual." in text
    if chromium.PROGRAM is not None:
        with chromium.browser() as browser:
            browser.open(page)
            browser.wait("document.documentElement.dataset.drawn === 'yes'")
            assert browser.problems() == []
            assert browser.requests() == []


def test_one_that_cannot_be_read_costs_no_other(runs: Path, tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no metrics here\n", encoding="utf-8")
    told = _run(text, runs / "benign-day", "--json")
    assert told.exit_code == 1
    found = json.loads(told.stdout)
    assert [each["source"] for each in found["failed"]] == [str(text)]
    assert len(found["sources"]) == 1
    assert told.stderr.startswith("Error: ")
    assert "Traceback" not in told.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Missing argument"),
        (("a.db", "--start", "yesterday"), "yesterday"),
        (("a.db", "--start", "-2h"), "counts back from the end"),
        (("a.db", "--start", "1790000000000"), "not milliseconds; a time before the end is written -2h"),
        (("a.db", "--start", "20", "--end", "10"), "nothing lies between"),
        (("a.db", "--step", "nan"), "nan is no number"),
        (("a.db", "--step", "inf"), "inf is no number"),
        (("a.db", "--scheduler", "10.0.0.1:8786"), "tcp://HOST:PORT"),
        (("a.db", "--html", "/no/such/folder/a.html"), "no folder"),
    ],
)
def test_usage_that_makes_no_sense_is_one_line(arguments: tuple[str, ...], words: str) -> None:
    told = _run(*arguments)
    assert told.exit_code == 2
    assert words in told.output


@contextlib.contextmanager
def _cluster(folder: Path, workers: int) -> Iterator[str]:
    """A scheduler and workers in processes of their own, on loopback."""
    place = folder / "scheduler.json"
    environment = {**os.environ, "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False"}
    common = ("--scheduler-file", str(place), "--no-dashboard")
    dask = (sys.executable, "-m", "dask")
    commands = [(*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", *common)]
    commands += [
        (
            *(*dask, "worker", "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny"),
            *("--death-timeout", "60", *common, "--local-directory", str(folder)),
        )
    ] * workers
    running = [
        subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for command in commands
    ]
    try:
        for _ in range(600):
            if place.is_file() and (text := place.read_text(encoding="utf-8")):
                yield json.loads(text)["address"]
                return
            with contextlib.suppress(subprocess.TimeoutExpired):
                assert running[0].wait(0.1) is None, "the scheduler ended"
        pytest.fail("no scheduler in a minute")
    finally:
        for process in reversed(running):
            end(process)


def test_workers_of_a_cluster_find_the_same(runs: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    sources = [runs / "incident", runs / "benign-day", tmp_path / "missing.db"]
    alone = _run(*sources, "--json")
    with _cluster(tmp_path, workers=2) as address:
        together = _run(*sources, "--json", "--scheduler", address)
    assert together.exit_code == alone.exit_code == 1
    assert json.loads(together.stdout) == json.loads(alone.stdout)


def test_a_cluster_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    with pytest.raises(fleet.FleetError, match="no Dask scheduler answers"):
        list(fleet.over("tcp://127.0.0.1:1", str, ["a"], wait_seconds=0.5))
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(fleet.FleetError, match="pip install"):
        list(fleet.over("tcp://127.0.0.1:1", str, ["a"], wait_seconds=0.5))
