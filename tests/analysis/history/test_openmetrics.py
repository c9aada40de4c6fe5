from __future__ import annotations

import gzip
import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from analysis.frame import Key
from analysis.history.history import HistoryError
from analysis.history.openmetrics import read_openmetrics
from analysis.history.samples import Gathered, TooManySeriesError
from tests.support.captures import recording
from tests.support.dumps import Scraped, by_series, dump, scrapes_of
from tests.support.prometheus import add_blocks, tool

AT = 1_790_000_000.0


def read(folder: Path, text: str | bytes, **asked: object) -> Gathered:
    file = folder / "dump.om"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_openmetrics(file, **asked)  # type: ignore[arg-type]


def values(gathered: Gathered) -> dict[str, list[tuple[float, float]]]:
    return {
        str(each.key): list(zip(each.times.tolist(), each.values.tolist(), strict=True))
        for each in gathered.series()
    }


@pytest.fixture(scope="module")
def capture() -> str:
    """A minute of a real engine as Prometheus would have kept it."""
    return dump(Scraped({"instance": "w1:8000", "job": "vllm"}, scrapes_of("vllm-0.32.0-oracle")[30:42]))


def test_a_real_engine_s_series_read_as_the_reference_parser_reads_them(tmp_path: Path, capture: str) -> None:
    told: dict[str, list[tuple[float, float]]] = {}
    for family in text_string_to_metric_families(by_series(capture)):
        for sample in family.samples:
            key = str(Key.of(sample.name, sample.labels))
            told.setdefault(key, []).append((float(sample.timestamp), sample.value))
    assert values(read(tmp_path, capture)) == told


def test_the_order_of_lines_and_where_blocks_end_change_nothing(
    tmp_path: Path, capture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scraped = values(read(tmp_path, capture))
    assert values(read(tmp_path, by_series(capture))) == scraped
    monkeypatch.setattr("analysis.history.openmetrics._BLOCK_BYTES", 1_001)
    assert values(read(tmp_path, capture)) == scraped
    assert values(read(tmp_path, gzip.compress(capture.encode()))) == scraped


def test_what_promtool_writes_of_a_real_tsdb(tmp_path: Path, capture: str) -> None:
    promtool = tool("promtool")
    source = tmp_path / "source.om"
    source.write_text(by_series(capture))
    add_blocks(source, tmp_path)
    (tmp_path / "data" / "wal").mkdir(exist_ok=True)
    expected = values(read_openmetrics(source))
    dumped = subprocess.run([promtool, "tsdb", "dump", tmp_path / "data"], check=True, capture_output=True)
    assert dumped.stdout.startswith(b"{__name__=")
    assert values(read(tmp_path, dumped.stdout)) == expected
    newer = subprocess.run(
        [promtool, "tsdb", "dump-openmetrics", tmp_path / "data"], capture_output=True, check=False
    )
    if newer.returncode == 0:
        assert values(read(tmp_path, newer.stdout)) == expected


LABELS = st.dictionaries(
    st.sampled_from(["le", "engine", "path", "model_name"]),
    st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=12),
    max_size=3,
)
SAMPLES = st.lists(
    st.tuples(
        st.sampled_from(["up", "vllm:prompt_tokens_total"]),
        LABELS,
        st.floats(),
        st.integers(0, 40),
    ),
    min_size=1,
    max_size=30,
    unique_by=lambda sample: (sample[0], tuple(sorted(sample[1].items())), sample[3]),
)


@given(SAMPLES)
@settings(max_examples=60, deadline=None)
def test_any_labels_and_numbers_come_back(
    tmp_path_factory: pytest.TempPathFactory, samples: list[tuple[str, dict[str, str], float, int]]
) -> None:
    expected: dict[Key, dict[float, float]] = {}
    lines = []
    for name, labels, value, second in samples:
        text = ",".join(
            '{}="{}"'.format(label, each.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n"))
            for label, each in labels.items()
        )
        number = (
            repr(value) if math.isfinite(value) else {"inf": "+Inf", "-inf": "-Inf"}.get(str(value), "NaN")
        )
        lines.append(
            f"{name}{{{text}}} {number} {AT + second}\n" if text else f"{name} {number} {AT + second}\n"
        )
        expected.setdefault(Key.of(name, labels), {})[AT + second] = value
    found = read(tmp_path_factory.mktemp("any"), "".join(lines))
    assert {each.key for each in found.series()} == set(expected)
    for each in found.series():
        told = expected[each.key]
        assert each.times.tolist() == sorted(told)
        assert np.array_equal(each.values, [told[at] for at in sorted(told)], equal_nan=True)


def test_lines_that_are_written_otherwise(tmp_path: Path) -> None:
    text = (
        "# TYPE up gauge\n"
        "up 1 1790000000\n"
        'up{path="a } b"} 2 1790000001.5 \n'
        'up{le="1"}  3\t1790000002\n'
        'up{le="1"} 4 1790000003 # {trace_id="x y"} 0.5 1790000003.1\n'
        'up{le="2"} 5 1790000004000\r\n'
        '{"vllm:odd.name",a="b"} 6 1790000005\n'
        "# EOF\n"
    )
    found = read(tmp_path, text)
    assert values(found) == {
        "up": [(AT, 1.0)],
        'up{path="a } b"}': [(AT + 1.5, 2.0)],
        'up{le="1"}': [(AT + 2, 3.0), (AT + 3, 4.0)],
        'up{le="2"}': [(AT + 4, 5.0)],
        'vllm:odd.name{a="b"}': [(AT + 5, 6.0)],
    }
    assert not found.notes


def test_exemplars_on_some_of_the_lines_put_nothing_out_of_order(tmp_path: Path) -> None:
    lines = [
        f'a_bucket{{le="1"}} {place} {AT + place}' + (' # {id="x"} 1 1' if place % 3 == 0 else "") + "\n"
        for place in range(30)
    ]
    found = read(tmp_path, "".join(lines))
    assert values(found) == {'a_bucket{le="1"}': [(AT + place, float(place)) for place in range(30)]}
    assert not found.notes


def test_what_can_not_be_read_is_said_and_the_rest_is_kept(tmp_path: Path) -> None:
    found = read(tmp_path, f"up 1 {AT}\nup one {AT + 1}\nup 2\nup 3 {AT + 2}\nwhat is this\n")
    assert values(found) == {"up": [(AT, 1.0), (AT + 2, 3.0)]}
    assert found.notes == [
        "2 lines could not be read, the first of them 'up one 1790000001.0'",
        "1 samples bear no time and were left out",
    ]


def test_a_file_that_is_cut_off_is_read_as_far_as_it_goes(tmp_path: Path, capture: str) -> None:
    cut = capture[: len(capture) // 2]
    assert not cut.endswith("\n")
    found = read(tmp_path, cut)
    whole = values(read(tmp_path, cut.rpartition("\n")[0] + "\n"))
    assert values(found) == whole
    assert found.notes == ["the file is cut off in its last line, which was left out"]
    zipped = gzip.compress(capture.encode())
    found = read(tmp_path, zipped[: len(zipped) * 3 // 4])
    assert found.notes == ["the file is cut off in its last line, which was left out"]
    assert len(found) > len(capture.splitlines()) // 3
    found = read(tmp_path, f"# TYPE up gauge\nup 1 {AT}\n")
    assert found.notes == ["the file ends without # EOF: it may be cut off"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no metrics text but empty"),
        ("<html><title>Login</title></html>\n", "is no metrics text, but begins with '<html>"),
        ("time,value\n1,2\n", "is no metrics text, but begins with 'time,value'"),
        ("# TYPE up gauge\n# EOF\n", "holds no samples"),
        ("\x00\x01\x02\n\xff", "is no text; a dump, a recording or Parquet is read"),
        ("first\nsecond line is\nthird: a b c\n", "but begins with 'first'"),
    ],
)
def test_what_is_no_dump_says_so(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(HistoryError, match=words):
        read(tmp_path, text)


def test_one_scrape_s_page_is_no_history(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="bear no times"):
        read(tmp_path, recording("vllm-0.32.0-oracle").files["040.prom"])


def test_a_range_before_what_is_held_names_what_is(tmp_path: Path) -> None:
    text = f"up 1 {AT}\nup 1 {AT + 60}\n"
    with pytest.raises(HistoryError, match="holds 2026-09-21T14:13:20Z to 2026-09-21T14:14:20Z"):
        read(tmp_path, text, end=AT - 10)
    assert values(read(tmp_path, text, start=AT + 1)) == {"up": [(AT + 60, 1.0)]}


def test_times_that_are_neither_seconds_nor_milliseconds_are_said(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match=r"holds 1\.79e\+15 s since the epoch to"):
        read(tmp_path, f"up 1 {AT * 1e9}\nup 1 {(AT + 60) * 1e9}\n")


def test_too_many_series_are_a_named_limit_and_unwanted_ones_do_not_count(tmp_path: Path) -> None:
    text = "".join(f'up{{instance="{place}"}} 1 {AT}\n' for place in range(50)) + f"down 1 {AT}\n"
    with pytest.raises(TooManySeriesError, match=r"more than 20 series.*larger max_series"):
        read(tmp_path, text, max_series=20)
    assert values(read(tmp_path, text, max_series=1, wanted=lambda key: key.name == "down")) == {
        "down": [(AT, 1.0)]
    }


def test_a_folder_that_can_not_be_read(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="can't be read"):
        read_openmetrics(tmp_path)
    shutil.rmtree(tmp_path)
    with pytest.raises(HistoryError, match="can't be read"):
        read_openmetrics(tmp_path / "none")
