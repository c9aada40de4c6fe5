from __future__ import annotations

import tarfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from drill.serving.content import Segment
from drill.workload import azure as azure_files
from drill.workload import mooncake as mooncake_files
from drill.workload import servegen as servegen_files
from drill.workload.arrivals import Stream
from drill.workload.azure import azure
from drill.workload.mooncake import mooncake
from drill.workload.servegen import clients, servegen
from drill.workload.trace_files import TraceError

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
"""Beside the checkout, where it is at hand."""
HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"


def whole(archive: str, folder: Path) -> Path:
    """A full trace, where it is at hand."""
    source = DATA / f"trace-{archive}.tar.xz"
    if not source.exists():
        pytest.skip(f"{source} is not here")
    with tarfile.open(source) as tar:
        tar.extractall(folder, filter="data")
    return folder / archive


def rising(stream: Stream) -> bool:
    return all(before.seconds <= after.seconds for before, after in pairwise(stream))


def test_azures_excerpts_are_read_as_they_were_published() -> None:
    code, conversation = list(azure(azure_files.CODE)), list(azure(azure_files.CONVERSATION))
    assert (len(code), len(conversation)) == (2598, 4424)
    assert [(each.prompt_tokens, each.output_tokens) for each in code[:2]] == [(4808, 10), (3180, 8)]
    assert [each.seconds for each in conversation[:2]] == [0.0, 4.314579]
    contents = {part.content for each in (*code, *conversation) for part in each.content}
    assert len(contents) == 2598 + 4424


def test_azures_full_traces_are_read(tmp_path: Path) -> None:
    folder = whole("azure-llm-2023", tmp_path)
    for name, requests in (("code", 8819), ("conv", 19366)):
        stream = azure(folder / f"AzureLLMInferenceTrace_{name}.csv")
        assert sum(1 for _ in stream) == requests
        assert rising(stream)


def test_mooncakes_excerpt_keeps_which_blocks_are_the_same() -> None:
    first, second, *rest = mooncake(mooncake_files.CONVERSATION)
    assert len(rest) == 1748
    assert (first.prompt_tokens, first.output_tokens, len(first.content)) == (6758, 500, 14)
    assert first.content[0] == second.content[0]
    assert first.content[1] != second.content[1]
    assert {part.tokens for part in first.content[:-1]} == {512}
    assert first.content[-1].tokens == 6758 - 13 * 512


def test_mooncakes_full_traces_are_read(tmp_path: Path) -> None:
    folder = whole("mooncake", tmp_path)
    for name, requests in (("conversation", 12031), ("synthetic", 3993)):
        assert sum(1 for _ in mooncake(folder / f"{name}_trace.jsonl")) == requests


def test_mooncakes_bunches_are_laid_over_the_seconds_that_follow() -> None:
    spread = mooncake(mooncake_files.CONVERSATION, spread_seconds=3.0)
    rounded = [each.seconds for each in mooncake(mooncake_files.CONVERSATION)]
    assert rising(spread)
    assert all(0 <= each.seconds - at < 3.0 for each, at in zip(spread, rounded, strict=True))
    assert max(rounded.count(at) for at in set(rounded)) > 3
    assert len({each.seconds for each in spread}) == len(rounded)


@pytest.mark.parametrize(
    "folder",
    [servegen_files.M_LARGE, servegen_files.M_MID, servegen_files.M_SMALL, servegen_files.DEEPSEEK_R1],
    ids=lambda folder: folder.name,
)
def test_servegens_excerpts_have_rates_of_a_day_and_lengths(folder: Path) -> None:
    model = clients(folder)
    assert len(model) == 8
    assert {len(client.windows) for client in model} == {144}
    assert {client.window_seconds for client in model} == {600.0}
    wanted = sum(window.rate * 600.0 for client in model for window in client.windows if window.start < 7200)
    scale = 2000 / wanted
    arrivals = list(servegen(model, 1, scale).between(0.0, 7200.0))
    assert len(arrivals) == pytest.approx(2000, rel=0.2)
    assert arrivals == list(servegen(model, 1, scale).between(0.0, 7200.0))


def test_servegens_requests_follow_the_windows_and_the_lengths_of_each_client() -> None:
    client = max(clients(servegen_files.DEEPSEEK_R1), key=lambda each: sum(one.rate for one in each.windows))
    arrivals = list(servegen([client], 3, 0.2).between(0.0, 64_800.0))
    times = np.array([each.seconds for each in arrivals])
    for window in client.windows[60:66]:
        found = np.sum((times >= window.start) & (times < window.start + 600.0))
        assert found == pytest.approx(window.rate * 0.2 * 600.0, rel=0.25)
    noon = [each for each in arrivals if 43_200 <= each.seconds < 64_800]
    prompts, outputs = client.lengths(43_200.0)
    for lengths, drawn in (
        (prompts, [e.prompt_tokens for e in noon]),
        (outputs, [e.output_tokens for e in noon]),
    ):
        mean = np.average(lengths.values, weights=lengths.weights)
        assert np.mean(drawn) == pytest.approx(mean, rel=0.05)


def test_servegen_begins_at_the_asked_time_of_the_day() -> None:
    model = clients(servegen_files.DEEPSEEK_R1)
    late = list(servegen(model, 1, 0.05, start=72_000.0))
    assert 0 <= late[0].seconds < 60
    assert late[-1].seconds < 86_400 - 72_000


def test_servegens_saved_folders_are_read(tmp_path: Path) -> None:
    folder = whole("servegen", tmp_path)
    assert len(clients(folder / "reason" / "deepseek-r1")) == 73
    assert len(clients(folder / "language" / "m-small")) == 4


BAD_AZURE = [
    ("time,in,out\n", 1, "columns are 'time,in,out': TIMESTAMP,ContextTokens,GeneratedTokens are expected"),
    (f"{HEADER}\n2023-11-16 18:17:03,5\n", 2, "2 columns"),
    (f"{HEADER}\nyesterday,5,5\n", 2, "TIMESTAMP is 'yesterday'"),
    (
        f"{HEADER}\n2023-11-16 18:17:03,5,5\n2023-11-16 18:17:02,5,5\n",
        3,
        "a time before the first one's, by 1 s",
    ),
    (
        f"{HEADER}\n2023-11-16 18:17:03,5,5\n2023-11-16 18:17:09,5,5\n2023-11-16 18:17:08,5,5\n",
        4,
        "a time of 5 s after one of 6 s: sort the file by time",
    ),
    (f"{HEADER}\n2023-11-16 18:17:03,5,5\n2023-11-16 19:17:03,5,5\n", 3, "nobody comes for 3600 s before it"),
    (f"{HEADER}\n2023-11-16 18:17:03,-5,5\n", 2, "ContextTokens is -5: at least 1 token"),
    (f"{HEADER}\n2023-11-16 18:17:03,5,many\n", 2, "GeneratedTokens is 'many': a whole number of tokens"),
    (f"{HEADER}\n", None, "holds no request"),
    ("", 1, "columns are ''"),
]
GOOD = '{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [1, 2]}\n'
BAD_MOONCAKE = [
    ("", None, "holds no request"),
    (GOOD + "{\n", 2, "is no JSON"),
    (GOOD + '{"timestamp": 0}\n', 2, "has no input_length, output_length, hash_ids"),
    (GOOD.replace("0,", "-3000,", 1), 1, "a time of -3 s: times begin at 0"),
    (GOOD.replace("0,", "3000,", 1) + GOOD, 2, "a time of 0 s after one of 3 s"),
    (GOOD + GOOD.replace("0,", "3600000,", 1), 2, "nobody comes for 3600 s"),
    (GOOD.replace("0,", '"now",', 1), 1, "timestamp is 'now'"),
    (GOOD.replace("[1, 2]", "[1]"), 1, "hash_ids: 1 of them, where 600 tokens have 2 blocks of 512"),
    (GOOD.replace("[1, 2]", "7"), 1, "hash_ids: 7, where"),
    (GOOD.replace("600", "0.5"), 1, "input_length is 0.5: a whole number"),
]


@pytest.mark.parametrize(
    ("read", "text", "line", "what"),
    [(azure, *case) for case in BAD_AZURE] + [(mooncake, *case) for case in BAD_MOONCAKE],
)
def test_a_bad_trace_is_told_with_its_file_its_line_and_what_is_wrong(
    read: Callable[[Path], Stream], text: str, line: int | None, what: str, tmp_path: Path
) -> None:
    path = tmp_path / "trace.txt"
    path.write_text(text)
    with pytest.raises(TraceError) as raised:
        list(read(path))
    message = str(raised.value)
    assert message.startswith(f"{path}: " if line is None else f"{path}, line {line}: ")
    assert what in message
    assert "\n" not in message


@pytest.mark.parametrize("read", [azure, mooncake])
def test_a_missing_or_broken_file_is_told(read: Callable[[Path], Stream], tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="No such file"):
        list(read(tmp_path / "none.csv"))
    broken = tmp_path / "broken.csv.xz"
    broken.write_bytes(b"no xz at all")
    with pytest.raises(TraceError, match=r"broken\.csv\.xz, line 1: can't be read"):
        list(read(broken))


def test_holes_are_allowed_where_asked(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(f"{HEADER}\n2023-11-16 18:17:03,5,5\n2023-11-16 19:17:03,5,5\n")
    assert [each.seconds for each in azure(path, longest_gap_seconds=None)] == [0.0, 3600.0]


ROW = "0,0.5,1.0,Gamma,1.0,2.0\n"
BAD_SERVEGEN = [
    ("0,0.5\n", "line 1: 2 columns"),
    ("0,fast,1.0,Gamma,1.0,2.0\n", "line 1: '0,fast"),
    ("-600,0.5,1.0,Gamma,1.0,2.0\n", "line 1: a window from -600 s on"),
    (ROW + ROW, "line 2: a window from 0 s on: windows begin at 0 and rise"),
    (ROW + "600" + ROW[1:] + "1800" + ROW[1:], "line 3: a window from 1800 s on: one is missing"),
    ("0,0.5,1.0,Pareto,1.0,2.0\n", "Gamma or Weibull"),
    ("", "holds no window"),
]


@pytest.mark.parametrize(("text", "what"), BAD_SERVEGEN)
def test_a_bad_trace_of_servegen_is_told(text: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "chunk-0-trace.csv").write_text(text)
    (tmp_path / "chunk-0-dataset.json").write_text(
        '{"0": {"input_tokens": "{5: 1.0}", "output_tokens": "{7: 1.0}"}}'
    )
    with pytest.raises(TraceError) as raised:
        clients(tmp_path)
    assert what in str(raised.value)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{", "is no JSON"),
        ("[]", "is no table of windows"),
        ('{"0": {"text_tokens": "{5: 1.0}"}}', "a model of images"),
        (
            '{"0": {"input_tokens": "{five: 1.0}", "output_tokens": "{}"}}',
            "window 0: input_tokens is no table",
        ),
    ],
)
def test_bad_lengths_of_servegen_are_told(text: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "chunk-0-trace.csv").write_text(ROW)
    (tmp_path / "chunk-0-dataset.json").write_text(text)
    with pytest.raises(TraceError, match=what):
        clients(tmp_path)


def test_a_folder_that_is_no_model_is_told(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"has no chunk-N-trace\.csv"):
        clients(tmp_path)


def test_contents_of_two_traces_differ() -> None:
    one, other = mooncake(mooncake_files.CONVERSATION, "a"), mooncake(mooncake_files.CONVERSATION, "b")
    shared = {part for each in one for part in each.content} & {
        part for each in other for part in each.content
    }
    assert shared == set()
    assert isinstance(next(iter(one)).content[0], Segment)
