import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analysis.page.thinning import kept

SOME = st.lists(st.one_of(st.just(np.nan), st.floats(-1e6, 1e6)), min_size=1, max_size=400)


@given(values=SOME, columns=st.integers(1, 20))
def test_extremes_and_ends_of_every_column_stay(values: list[float], columns: int) -> None:
    of = np.array(values)
    times = np.arange(len(of)) * 7.0 + 1e9
    places = kept(times, of, columns, times[0], times[-1] + 7.0)
    assert np.all(np.diff(places) > 0)
    column = np.floor((times - times[0]) / ((times[-1] + 7.0 - times[0]) / columns)).astype(int)
    for each in range(columns):
        here, drawn = of[column == each], of[places[column[places] == each]]
        known = here[~np.isnan(here)]
        if len(known):
            assert np.nanmin(drawn) == known.min()
            assert np.nanmax(drawn) == known.max()
            left = drawn[~np.isnan(drawn)]
            assert (left[0], left[-1]) == (known[0], known[-1])
    if len(of) > 4 * columns:
        assert np.count_nonzero(~np.isnan(of[places])) <= 4 * columns


@given(gap=st.integers(40, 400), begin=st.integers(1, 500))
def test_a_gap_of_a_column_or_more_is_still_a_gap(gap: int, begin: int) -> None:
    values = np.zeros(1000)
    values[begin : begin + gap] = np.nan
    times = np.arange(1000.0)
    drawn = values[kept(times, values, 25, 0.0, 1000.0)]
    assert np.isnan(drawn).any()
    assert kept(times, values, 250, 0.0, 1000.0).tolist() == list(range(1000))
