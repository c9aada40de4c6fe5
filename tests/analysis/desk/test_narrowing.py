"""What of a fleet's store a report reads, on a real Prometheus that knows more sidecars than a report can be of."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from analysis.desk.narrowing import MOST_SIDECARS, narrowed
from analysis.history.reading import read
from exporter.source_signals import SOURCE_UP
from tests.support.prometheus import Prometheus, serving
from tests.support.remote_write import body, samples

pytestmark = pytest.mark.long
FLEET = 2 * MOST_SIDECARS + 10
NOW = time.time() // 15 * 15


def labels(number: int) -> dict[str, str]:
    """Of the source of one engine, the only one of its sidecar; workers of two clusters bear the same names."""
    return {
        "__name__": SOURCE_UP.full_name,
        "source": f"worker.{number // 2}",
        "instance": f"10.0.0.{number}:9807",
        "cluster": "east" if number % 2 else "west",
    }


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with serving(None, tmp_path_factory.mktemp("fleet"), "--web.enable-remote-write-receiver") as server:
        times = (1000 * (NOW - 15 * np.arange(40, -1, -1))).astype(np.int64)
        row = samples(times, np.ones(len(times)))
        server.write(body([(labels(number), row) for number in range(FLEET)]))
        yield server


def _read(server: Prometheus, matchers: tuple[str, ...]) -> set[str]:
    history = read(server.url, NOW - 300, NOW, matchers=matchers)
    return {dict(key.labels)["instance"] for key in history.frame.keys}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_the_sidecars_of_the_engines_that_alerts_name(fleet: Prometheus) -> None:
    found = narrowed(fleet.url, ("worker.3", "worker.10"), {"cluster": "east"}, NOW - 300, NOW)
    assert _read(fleet, found) == {"10.0.0.7:9807", "10.0.0.21:9807"}


def test_where_none_is_named_those_of_the_cluster_and_no_more_than_can_be_read(fleet: Prometheus) -> None:
    found = _read(fleet, narrowed(fleet.url, (), {"cluster": "west"}, NOW - 300, NOW))
    assert len(found) == MOST_SIDECARS
    assert all(int(each.split(":")[0].rsplit(".", 1)[1]) % 2 == 0 for each in found)


def test_labels_that_only_alerts_bear_are_no_reason_to_find_nothing(fleet: Prometheus) -> None:
    found = narrowed(fleet.url, ("worker.3",), {"region": "eu"}, NOW - 300, NOW)
    assert _read(fleet, found) == {"10.0.0.6:9807", "10.0.0.7:9807"}


def test_a_small_store_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    with serving(None, tmp_path / "small", "--web.enable-remote-write-receiver") as server:
        row = samples(np.array([1000 * int(NOW)], np.int64), np.ones(1))
        server.write(body([(labels(number), row) for number in range(MOST_SIDECARS)]))
        assert narrowed(server.url, ("worker.3",), {"cluster": "east"}, NOW - 300, NOW + 15) == ()


def test_a_server_that_is_not_there_is_for_whoever_reads_it_to_tell() -> None:
    assert narrowed("http://127.0.0.1:9", ("worker.3",), {}, NOW - 300, NOW) == ()
