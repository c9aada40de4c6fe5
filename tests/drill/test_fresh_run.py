"""The traces of ``make real`` beside the model: a run that was cut to its overload, with the truth from inside."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
import tarfile
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drill import validate
from drill.serving.engine import Engine
from drill.serving.request import Record, Request
from drill.serving.step_time import Batch, MeasuredTimes
from drill.validate import compare_fresh, misses_recorded, table
from drill.validation.comparison import Observed, Reading, Run, compare
from drill.validation.fresh_run import read_fresh
from drill.validation.public_runs import RunError
from drill.validation.small_engine import CONFIG
from drill.validation.step_fit import WINDOW_SECONDS, TimedStep, fit, paced

ARCHIVE = Path(__file__).parent.parent / "fixtures" / "fresh_run" / "vllm-0.32.0-overload.tar.xz"
PREFIX_TOKENS = 256

STEPS = st.lists(
    st.builds(
        TimedStep,
        at=st.floats(0.0, 60.0),
        seconds=st.floats(0.001, 5.0),
        prefill_tokens=st.integers(0, 512),
        decodes=st.integers(1, 32),
    ),
    min_size=1,
    max_size=50,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("fresh")
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(place, filter="data")
    return place / "vllm-0.32.0-overload"


@pytest.fixture
def own(folder: Path, tmp_path: Path) -> Path:
    """A copy to break."""
    return Path(shutil.copytree(folder, tmp_path / "own"))


def test_cache_usage_and_preemptions_are_those_of_the_engine(folder: Path) -> None:
    comparison = compare_fresh(read_fresh(folder))
    assert misses_recorded(comparison) == []
    assert comparison.real_preemptions == 51
    assert abs(comparison.end_to_end.error) < 0.1
    assert abs(comparison.time_per_output_token.error) < 0.1


def test_what_is_beyond_a_bar_is_told_a_run_without_preemptions_included(folder: Path) -> None:
    beside = compare_fresh(read_fresh(folder))
    for real, model, said in (
        (100, 80, []),
        (100, 121, ["preemptions 121 instead of 100"]),
        (100, 79, ["preemptions 79 instead of 100"]),
        (0, 0, []),
        (0, 1, ["preemptions 1 instead of 0"]),
    ):
        changed = dataclasses.replace(beside, name="a run", real_preemptions=real, preemptions=model)
        assert misses_recorded(changed) == [f"a run: {each}" for each in said]
    assert table([dataclasses.replace(beside, real_preemptions=0, preemptions=3)]).endswith("| 0, 3 |")
    off = dataclasses.replace(beside, name="a run", usage_rms=0.101)
    assert misses_recorded(off) == ["a run: KV usage 10.1%"]


def test_the_run_is_read_whole(folder: Path) -> None:
    run = read_fresh(folder).run
    assert len(run.observed) == 127
    arrivals = [each.request.arrival_seconds for each in run.observed]
    assert arrivals == sorted(arrivals)
    assert arrivals[0] == 0.0
    assert max(each.usage_ratio or 0.0 for each in run.readings) == 1.0
    steps = [json.loads(line) for line in (folder / "oracle.jsonl").read_text().splitlines()]
    peak = max(step["running"] for step in steps if step["kind"] == "step")
    assert 0.5 * peak < max(each.running for each in run.readings) <= peak


def test_what_ran_before_the_overload_is_given_to_the_model_and_not_compared(folder: Path) -> None:
    clients = [json.loads(line) for line in (folder / "clients.jsonl").read_text().splitlines()]
    run = read_fresh(folder).run
    compared = [each for each in run.observed if each.last_token_seconds is not None]
    assert len(compared) == sum(row["phase"] == "overload" and row["end"] == "done" for row in clients)
    overload = min(row["begin"] for row in clients if row["phase"] == "overload")
    begin = min(row["begin"] for row in clients)
    assert run.observed[0].request.arrival_seconds < overload - begin <= compared[0].request.arrival_seconds
    assert run.readings[0].at > overload - begin - 1.0


def test_the_same_question_and_the_same_prefix_have_the_same_content(folder: Path) -> None:
    clients = {row["id"]: row for row in map(json.loads, (folder / "clients.jsonl").read_text().splitlines())}
    asked = [
        clients[event["id"].removeprefix("cmpl-").split("-")[0]]
        for event in map(json.loads, (folder / "oracle.jsonl").read_text().splitlines())
        if event["kind"] == "arrive"
    ]
    contents: dict[str, set[object]] = defaultdict(set)
    prefixes: dict[int | None, set[int]] = defaultdict(set)
    for row, each in zip(asked, read_fresh(folder).run.observed, strict=True):
        content = each.request.content
        assert sum(part.tokens for part in content) == row["prompt_tokens"]
        contents[row["question"]].add(content)
        if row["prefix"] is not None:
            assert content[0].tokens == min(PREFIX_TOKENS, row["prompt_tokens"])
            prefixes[row["prefix"]].add(content[0].content)
    assert len(contents) < len(asked)  # who left came back with the same question
    assert all(len(found) == 1 for found in contents.values())
    assert sorted(map(len, prefixes.values())) == [1, 1, 1, 1]
    assert len(set.union(*prefixes.values())) == 4
    assert len(set.union(*contents.values())) > 0.8 * len(contents)


def test_a_client_leaves_when_the_scheduler_heard_of_it_and_all_do_at_the_end(folder: Path) -> None:
    events = [json.loads(line) for line in (folder / "oracle.jsonl").read_text().splitlines()]
    marks = {
        row["what"]: row["t"] for row in map(json.loads, (folder / "marks.jsonl").read_text().splitlines())
    }
    arrived = [event for event in events if event["kind"] == "arrive"]
    start = arrived[0]["t"]
    ends = {event["id"]: event for event in events if event["kind"] == "end"}
    left = []
    for event, each in zip(arrived, read_fresh(folder).run.observed, strict=True):
        end = ends.get(event["id"], {"t": marks["overload_over"], "aborted": True})
        left.append(end["t"] - start if end["aborted"] else None)
        assert each.request.abort_seconds == left[-1]
    assert sum(at is not None for at in left) > 10
    assert None in left


@given(STEPS)
def test_each_window_of_the_model_lasts_as_long_as_the_machines(steps: list[TimedStep]) -> None:
    whole = fit(steps)
    times = paced(steps, whole)
    model: dict[int, float] = defaultdict(float)
    real: dict[int, float] = defaultdict(float)
    for step in steps:
        window = math.floor(step.at / WINDOW_SECONDS)
        batch = Batch(prefill_tokens=step.prefill_tokens, decodes=step.decodes)
        model[window] += times.at(step.at).cost(batch, 0.0).seconds
        real[window] += step.seconds
    assert model == pytest.approx(real)


@given(st.floats(1e-3, 0.1), st.floats(0.0, 1e-3), st.floats(0.0, 1e-3))
def test_the_fit_finds_the_line_that_steps_lie_on(fixed: float, prefill: float, decode: float) -> None:
    shapes = [(0, 1), (512, 0), (100, 20), (3, 32)]
    steps = [
        TimedStep(float(at), fixed + prefill * tokens + decode * decodes, tokens, decodes)
        for at, (tokens, decodes) in enumerate(shapes)
    ]
    times = fit(steps)
    found = (times.fixed_seconds, times.prefill_token_seconds, times.decode_seconds)
    assert found == pytest.approx((fixed, prefill, decode), abs=1e-9)
    assert times.fixed_seconds == pytest.approx(paced(steps, times).at(0.0).fixed_seconds)


def test_the_model_follows_a_machine_whose_speed_changes() -> None:
    quick, slow = MeasuredTimes(0.01, 1e-5, 1e-4), MeasuredTimes(0.03, 3e-5, 3e-4)

    def timer_at(seconds: float) -> MeasuredTimes:
        return quick if seconds < 5.0 else slow

    requests = [Request(number, 0.2 * number, 300, 200) for number in range(60)]
    real = Engine(CONFIG, quick)
    for request in requests:
        real.submit(request)
    records: list[Record] = []
    readings: list[Reading] = []
    for at in range(1, 61):
        real.timer = timer_at(real.now)
        while (result := real.step(at)) is not None:
            records += result.finished
            real.timer = timer_at(real.now)
        gauges = real.gauges()
        readings.append(Reading(at, gauges.running, gauges.waiting, gauges.usage_ratio))
    records.sort(key=lambda record: record.request.request_id)
    observed = [Observed(each.request, each.first_token_seconds, each.last_token_seconds) for each in records]
    run = Run("itself", tuple(observed), tuple(readings), real.totals.preemptions)

    followed = compare(run, lambda: Engine(CONFIG, quick), timer_at=timer_at)
    assert (followed.usage_rms, followed.running_rms, followed.preemptions) == (0, 0, run.preemptions)
    assert followed.end_to_end.error == pytest.approx(0.0, abs=1e-9)
    always_quick = compare(run, lambda: Engine(CONFIG, quick))
    assert (always_quick.usage_rms or 0.0) > 0.1
    assert always_quick.end_to_end.error < -0.3


def test_traces_in_which_nobody_was_served_under_overload_are_refused(own: Path) -> None:
    clients = own / "clients.jsonl"
    clients.write_text(clients.read_text().replace('"done"', '"cut"'))
    with pytest.raises(RunError, match="no request of the overload was served"):
        read_fresh(own)


def test_a_line_that_a_kill_cut_off_is_left_out(own: Path, folder: Path) -> None:
    with (own / "oracle.jsonl").open("a") as sink:
        sink.write('{"t": 1.0, "ki')
    assert read_fresh(own).run.observed == read_fresh(folder).run.observed


def test_traces_of_a_run_without_arrivals_are_refused(own: Path) -> None:
    oracle = own / "oracle.jsonl"
    oracle.write_text(
        "".join(line for line in oracle.read_text().splitlines(keepends=True) if '"arrive"' not in line)
    )
    with pytest.raises(RunError, match=r"own: not the traces of a run of make real: .*no arrival"):
        read_fresh(own)


def test_the_command_prints_a_row_for_each_folder(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["validate", "--fresh", str(folder), "--fresh", str(folder)])
    assert validate.main() == 0
    assert capsys.readouterr().out == table(2 * [compare_fresh(read_fresh(folder))]) + "\n"


def test_a_folder_without_traces_is_told_with_its_name(
    own: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (own / "marks.jsonl").unlink()
    monkeypatch.setattr("sys.argv", ["validate", "--fresh", str(own)])
    assert validate.main() == 2
    error = capsys.readouterr().err
    assert "No such file" in error
    assert str(own) in error


def test_the_command_without_anything_to_compare_says_what_to_give(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["validate"])
    with pytest.raises(SystemExit) as left:
        validate.main()
    assert left.value.code == 2
    assert "--fresh" in capsys.readouterr().err
