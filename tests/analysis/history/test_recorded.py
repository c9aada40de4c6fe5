from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from analysis.frame import Key
from analysis.history.history import HistoryError
from analysis.history.recorded import recorded
from exporter.recorder import Recorder
from tests.support.recorder import START, TOKENS, USAGE, second

SECONDS = 200
HOLE = range(90, 120)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of some minutes with a hole of half of one."""
    file = tmp_path_factory.mktemp("recorded") / "recording.db"
    recorder = Recorder(file)
    recorder.start()
    places = [place for place in range(SECONDS) if place not in HOLE]
    for written, place in enumerate(places):
        recorder.put(second(place))
        while recorder.status.written <= written and not recorder.status.failed:
            time.sleep(0.001)
    assert recorder.close(10.0)
    return file


def test_each_cycle_stands_at_its_second_and_a_hole_is_a_hole(path: Path) -> None:
    frame = recorded(path).frame
    usage, tokens = frame.column(Key(USAGE.full_name)), frame.column(Key(TOKENS.full_name))
    places = np.arange(SECONDS)
    assert frame.times.tolist() == (START + places).tolist()
    there = ~np.isin(places, HOLE)
    assert np.isnan(usage).tolist() == (~there).tolist()
    assert usage[there] == pytest.approx((places % 97 / 97)[there], rel=1e-6)
    assert tokens[there].tolist() == (places * 1_000_003.0)[there].tolist()


def test_a_range_and_names_and_a_longer_step(path: Path) -> None:
    history = recorded(path, START + 30, START + 90, step_seconds=15.0, names={TOKENS.full_name})
    assert history.frame.keys == (Key(TOKENS.full_name),)
    assert history.frame.times.tolist() == [START + 30, START + 45, START + 60, START + 75]
    assert history.frame.values[:, 0].tolist() == [1_000_003.0 * each for each in (30, 45, 60, 75)]
    assert history.source == str(path)


def test_what_is_no_history_says_so(path: Path, tmp_path: Path) -> None:
    with pytest.raises(
        HistoryError,
        match="holds nothing in that range; it holds 2027-01-15T08:00:00Z to 2027-01-15T08:03:19Z",
    ):
        recorded(path, START + 1e6)
    with pytest.raises(HistoryError, match="no whole 3600 s lie in that range"):
        recorded(path, START + 10, START + 90, step_seconds=3600.0)
    with pytest.raises(HistoryError, match=r"instants of \d+ series don't fit into memory"):
        recorded(path, step_seconds=1e-7)
    with pytest.raises(HistoryError, match="nothing"):
        recorded(tmp_path / "nothing.db")
    (tmp_path / "text.db").write_text("not a database" * 100)
    with pytest.raises(HistoryError, match=r"text\.db"):
        recorded(tmp_path / "text.db")
