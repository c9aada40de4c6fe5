from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from analysis.rolling_median import rolling_median

pytest.importorskip("numba")
VALUES = arrays(
    np.float64,
    st.integers(1, 120),
    elements=st.one_of(
        st.just(np.nan), st.integers(-3, 3).map(float), st.floats(-1e9, 1e9), st.floats(-1, 1, width=16)
    ),
)


@settings(max_examples=150)
@given(VALUES, st.integers(1, 150))
def test_both_ways_give_the_same_bits(values: np.ndarray, window: int) -> None:
    ours = rolling_median(values, window, compiled=True)
    theirs = rolling_median(values, window, compiled=False)
    assert ours.tobytes() == theirs.tobytes() or np.array_equal(ours, theirs, equal_nan=True)


@settings(max_examples=150)
@given(VALUES, st.integers(1, 150))
def test_it_is_the_median_of_what_is_known_to_within_half_a_bin(values: np.ndarray, window: int) -> None:
    found = rolling_median(values, window)
    half = window // 2
    known = values[~np.isnan(values)]
    if not len(known):
        assert np.isnan(found).all()
        return
    first, last = np.quantile(known, (0.01, 0.99))
    for place, each in enumerate(found):
        inside = values[max(0, place - half) : place + half + 1]
        inside = inside[~np.isnan(inside)]
        if not len(inside):
            assert np.isnan(each)
            continue
        # of two middles the median may be between bins of two parts: the wider half is the bound then
        low, high = np.sort(inside)[[(len(inside) - 1) // 2, len(inside) // 2]]
        bound = (last - first) / 460
        bound += (first - known.min()) / 26 if low < first else 0.0
        bound += (known.max() - last) / 26 if high > last else 0.0
        assert abs(each - np.median(inside)) <= bound + 1e-9 * np.abs(known).max()


def test_a_column_is_a_series() -> None:
    columns = np.random.default_rng(3).normal(size=(500, 3))
    found = rolling_median(columns, 21)
    for place in range(3):
        assert np.array_equal(found[:, place], rolling_median(columns[:, place], 21))
    assert rolling_median(np.empty((5, 0)), 3).shape == (5, 0)
    assert rolling_median(np.empty(0), 3).shape == (0,)


def test_a_constant_stays_what_it_is_and_a_step_keeps_its_edge() -> None:
    assert (rolling_median(np.full(40, 7.3), 9) == 7.3).all()
    step = np.repeat([0.0, 10.0], 100)
    assert np.abs(rolling_median(step, 51) - step).max() <= 10 / 459


@pytest.mark.parametrize("least", [5e-324, 1e-310])
def test_numbers_too_near_to_each_other_to_be_told_apart_are_one(least: float) -> None:
    values = np.array([0.0, least, 2 * least] * 40)
    for compiled in (True, False):
        found = rolling_median(values, 5, compiled=compiled)
        assert ((found >= 0) & (found <= 2 * least)).all()


@pytest.mark.parametrize(
    ("values", "window", "problem"),
    [
        (np.zeros(3), 0, "a window of 0"),
        (np.zeros((2, 2, 2)), 3, "values of shape"),
        (np.array([0.0, np.inf]), 3, "infinite"),
        (np.array([-1e308, 1e308]), 3, "largest number"),
    ],
)
def test_what_has_no_median_is_refused(values: np.ndarray, window: int, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        rolling_median(values, window)


def test_it_compiles_where_the_package_and_the_home_cannot_be_written(tmp_path: Path) -> None:
    package = tmp_path / "analysis"
    package.mkdir()
    root = Path(__file__).resolve().parents[2]
    for name in ("__init__", "compiling", "rolling_median", "rolling_median_kernel"):
        shutil.copy(root / "analysis" / f"{name}.py", package)
    # a file where the folder of what is compiled would be: that holds for root too
    (package / "__pycache__").write_text("")
    home = tmp_path / "home"
    home.write_text("")
    code = (
        "import numpy as np, analysis, analysis.rolling_median as m;"
        "print(analysis.__file__, m.rolling_median(np.arange(9.0), 3, compiled=True).sum())"
    )
    variables = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "PYTHONPATH": ""}
    variables.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert str(package) in done.stdout
