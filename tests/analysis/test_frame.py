from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.frame import Frame, Key, grid, on_grid
from exporter.derive.blocks import KV_USAGE

A = Key.of("thrashold_kv_usage_ratio", {"rank": "0", "engine": "a", "model_name": ""})
B = Key.of("thrashold_kv_usage_ratio", {"engine": "b", "rank": "0"})
C = Key.of("thrashold_thrashing", {"engine": "b"})


def frame() -> Frame:
    return Frame(np.array([10.0, 11.0, 12.0]), 1.0, (A, B, C), np.arange(9.0).reshape(3, 3))


def test_a_key_has_its_labels_in_order_and_none_that_is_empty() -> None:
    assert Key("thrashold_kv_usage_ratio", (("engine", "a"), ("rank", "0"))) == A
    assert str(A) == 'thrashold_kv_usage_ratio{engine="a",rank="0"}'
    assert (A.label("engine"), A.label("model_name")) == ("a", "")


def test_series_are_found_by_signal_and_label_and_time() -> None:
    assert frame().select(KV_USAGE).keys == (A, B)
    assert frame().select(KV_USAGE, engine="b").keys == (B,)
    assert frame().column(C).tolist() == [2.0, 5.0, 8.0]
    assert frame().between(11.0, 12.0).values.tolist() == [[3.0, 4.0, 5.0]]
    assert frame().label_values("engine") == ("a", "b")
    assert (frame().start, frame().end) == (10.0, 13.0)
    with pytest.raises(KeyError, match="nowhere"):
        frame().column(Key("nowhere"))


def test_each_column_lies_in_one_piece() -> None:
    assert frame().values.flags.f_contiguous
    assert frame().select(KV_USAGE).values.flags.f_contiguous


def test_pandas_has_the_same_in_utc() -> None:
    table = frame().table()
    assert table[str(B)].tolist() == [1.0, 4.0, 7.0]
    assert str(table.index[0]) == "1970-01-01 00:00:10+00:00"


@pytest.mark.parametrize(
    ("times", "step", "keys", "shape", "problem"),
    [
        ([0.0, 1.0], 1.0, (A,), (2, 2), r"values of shape \(2, 2\) for 2 x 1"),
        ([0.0, 1.5], 1.0, (A,), (2, 1), "times that are not 1 s apart"),
        ([0.0], 0.0, (A,), (1, 1), "a step of 0.0 s"),
        ([0.0], 1.0, (B, B), (1, 2), "is there twice"),
    ],
)
def test_what_is_no_frame_is_refused(
    times: list[float], step: float, keys: tuple[Key, ...], shape: tuple[int, int], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        Frame(np.array(times), step, keys, np.zeros(shape))


@given(
    st.lists(st.integers(0, 100_000), unique=True, max_size=60).map(sorted),
    st.sampled_from([0.5, 1.0, 15.0, 60.0]),
)
def test_a_sample_stands_at_the_first_instant_that_is_not_before_it(
    milliseconds: list[int], step: float
) -> None:
    times = np.array(milliseconds, dtype=np.float64) / 1000
    values = np.arange(len(times), dtype=np.float64)
    instants = grid(0.0, 101.0, step)
    found = on_grid(instants, times, values, step)
    for instant, value in zip(instants, found, strict=True):
        inside = values[(times > instant - step) & (times <= instant)]
        assert (np.isnan(value) and not len(inside)) or value == inside[-1]


def test_a_grid_stands_on_multiples_of_its_step() -> None:
    assert grid(31.0, 61.0, 15.0).tolist() == [45.0, 60.0]
    assert grid(30.0, 60.0, 15.0).tolist() == [30.0, 45.0]
    assert grid(60.0, 30.0, 15.0).tolist() == []
