from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.frame import Key
from analysis.history.server_json import Answer, UnreadableError, read_export, read_matrix

MILLISECONDS = st.integers(0, 4_000_000_000_000)
LABELS = st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), st.text(max_size=12), max_size=4)


def text_of(value: float) -> str:
    """A value as Go writes it with %f's shortest form, near enough: any spelling of it has to be read."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)


SPELLED = st.one_of(
    st.floats().map(text_of),
    st.integers(-(10**20), 10**20).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda value: f"{value:e}"),
    st.sampled_from(["0", "-0", "1e+06", "1e-07", "Inf", "5e-324", "1.7976931348623157e+308", "1e400"]),
)
SAMPLES = st.dictionaries(MILLISECONDS, SPELLED, max_size=8).map(lambda each: sorted(each.items()))


def matrix(series: list[tuple[dict[str, str], list[tuple[int, str]]]], **more: object) -> dict[str, object]:
    result = [
        {"metric": labels, "values": [[at / 1000, text] for at, text in samples]}
        for labels, samples in series
    ]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}, **more}


@given(
    series=st.lists(st.tuples(LABELS, SAMPLES), max_size=4),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 1]),
)
def test_reads_what_a_json_reader_reads(
    series: list[tuple[dict[str, str], list[tuple[int, str]]]], *, ascii_only: bool, indent: int | None
) -> None:
    named = [({**labels, "__name__": f"n{place}"}, samples) for place, (labels, samples) in enumerate(series)]
    body = json.dumps(matrix(named), ensure_ascii=ascii_only, indent=indent).encode()
    answer = read_matrix(body)
    assert len(answer.series) == len(named)
    for read, each in zip(answer.series, json.loads(body)["data"]["result"], strict=True):
        labels = dict(each["metric"])
        assert read.key == Key.of(labels.pop("__name__"), labels)
        assert read.times.tolist() == [at for at, _ in each["values"]]
        assert np.array_equal(read.values, [float(value) for _, value in each["values"]], equal_nan=True)


def one(values: str) -> Answer:
    return read_matrix(
        b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"a"},"values":'
        + values.encode()
        + b"}]}}"
    )


@pytest.mark.parametrize(
    "values",
    [
        '[[1,"2"],[3]]',
        '[[1,"2"],[3,"4","5","6"]]',
        '[[1,"2",3,"4"]]',
        '[["1",2],["3",4]]',
        '[[1,"2",3],["4"]]',
        '[[1,"two"]]',
        '[[1,"2"],3]',
        '[[[1,"2"]]]',
        '{"1":"2"}',
        "7",
        '[[1,"2"]',
    ],
)
def test_what_is_not_made_of_pairs_is_refused(values: str) -> None:
    with pytest.raises(UnreadableError):
        one(values)


def test_numbers_without_quotes_are_read_too() -> None:
    answer = one("[[1, 2], [3.5, 4e0]]")
    assert answer.series[0].times.tolist() == [1, 3.5]
    assert answer.series[0].values.tolist() == [2, 4]


def test_warnings_and_histograms_and_notices_are_told_apart_from_samples() -> None:
    body = matrix([({"__name__": "a"}, [(1000, "1")])], warnings=["a store is down"], infos=["not a counter"])
    body["data"]["result"].append(  # type: ignore[index]
        {
            "metric": {"__name__": "b"},
            "histograms": [[1, {"count": "3", "sum": "1", "buckets": [[0, "1", "2", "3"]]}]],
        }
    )
    answer = read_matrix(json.dumps(body).encode())
    assert answer.warnings == ("a store is down",)
    assert [str(each.key) for each in answer.series] == ["a"]
    assert answer.histograms == 1


def test_samples_out_of_order_are_put_in_order_and_the_last_of_one_time_stays() -> None:
    answer = one('[[3,"30"],[1,"10"],[2,"20"],[2,"21"]]')
    assert answer.disordered == 1
    assert answer.series[0].times.tolist() == [1, 2, 3]
    assert answer.series[0].values.tolist() == [10, 21, 30]


def test_a_series_that_comes_in_two_parts_is_one() -> None:
    labels = {"__name__": "a", "x": "y"}
    answer = read_matrix(json.dumps(matrix([(labels, [(1000, "1")]), (labels, [(2000, "2")])])).encode())
    assert [each.values.tolist() for each in answer.series] == [[1, 2]]
    assert answer.disordered == 0


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<!doctype html><html></html>",
        b"[]",
        b'{"status":"success"}',
        b'{"status":"success","data":{"resultType":"vector","result":[]}}',
        b'{"status":"error","data":{"resultType":"matrix","result":[]}}',
        b'{"status":"success","data":{"resultType":"matrix","result":[]}',
    ],
)
def test_what_is_no_matrix_is_refused(body: bytes) -> None:
    with pytest.raises(UnreadableError):
        read_matrix(body)


@given(st.lists(st.tuples(MILLISECONDS, st.floats()), min_size=1, unique_by=lambda pair: pair[0]))
def test_an_export_reads_as_written(samples: list[tuple[int, float]]) -> None:
    def said(value: float) -> float | str | None:
        return (
            None
            if math.isnan(value)
            else ("Infinity" if value > 0 else "-Infinity")
            if math.isinf(value)
            else value
        )

    ordered = sorted(samples)
    line = {
        "metric": {"__name__": "a", "x": 'q"\\\n'},
        "values": [said(value) for _, value in ordered],
        "timestamps": [at for at, _ in ordered],
    }
    answer = read_export(json.dumps(line).encode() + b"\n")
    assert answer.series[0].key == Key.of("a", {"x": 'q"\\\n'})
    assert answer.series[0].times.tolist() == [at / 1000 for at, _ in ordered]
    assert np.array_equal(answer.series[0].values, [value for _, value in ordered], equal_nan=True)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b'{"metric":{"__name__":"a"},"values":[1],"timestamps":[1,2]}',
        b'{"metric":{"__name__":"a"},"values":["many"],"timestamps":[1]}',
        b'{"metric":{"__name__":"a"},"values":[1]}',
    ],
)
def test_what_is_no_export_is_refused(body: bytes) -> None:
    with pytest.raises(UnreadableError):
        read_export(body)
