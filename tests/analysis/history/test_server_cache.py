from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.frame import Key
from analysis.history.samples import Samples
from analysis.history.server_cache import Cache, default_folder
from analysis.history.server_json import Answer
from analysis.history.server_settings import ServerSettings
from exporter.connection_settings import BasicAuthSettings, TlsSettings

URL = "http://prometheus:9090"
SERVER = ServerSettings(URL)
TOKENS = "one", "two"
SAMPLES = st.lists(
    st.tuples(st.integers(0, 4_000_000_000_000), st.floats()), max_size=20, unique_by=lambda each: each[0]
)
KEYS = st.builds(Key.of, st.just("a:b"), st.dictionaries(st.sampled_from("xyz"), st.text(max_size=5)))


def one(*values: float) -> Answer:
    return Answer((Samples(Key("a"), np.arange(float(len(values))), np.array(values)),))


@given(st.dictionaries(KEYS, SAMPLES, max_size=4), st.integers(0, 3), st.integers(0, 3))
def test_what_is_kept_comes_back_to_the_bit(
    tmp_path_factory: pytest.TempPathFactory,
    series: dict[Key, list[tuple[int, float]]],
    histograms: int,
    disordered: int,
) -> None:
    cache = Cache(tmp_path_factory.getbasetemp() / "kept", SERVER)
    kept = Answer(
        tuple(
            Samples(
                key, np.array([at / 1000 for at, _ in sorted(each)]), np.array([v for _, v in sorted(each)])
            )
            for key, each in series.items()
        ),
        histograms=histograms,
        disordered=disordered,
    )
    cache.put('{__name__="a"}', 1, 2, kept)
    found = cache.get('{__name__="a"}', 1, 2)
    assert found is not None
    assert (found.histograms, found.disordered) == (histograms, disordered)
    assert [each.key for each in found.series] == [each.key for each in kept.series]
    for own, other in zip(found.series, kept.series, strict=True):
        assert own.times.tolist() == other.times.tolist()
        assert np.array_equal(own.values, other.values, equal_nan=True)


def test_nobody_else_gets_it(tmp_path: Path) -> None:
    Cache(tmp_path, SERVER).put("{}", 1, 2, one(1.0))
    others = [
        ServerSettings("http://prometheus:9091"),
        ServerSettings(URL, headers={"X-Scope-OrgID": "b"}),
        ServerSettings(URL, basic_auth=BasicAuthSettings("me", "secret")),
        ServerSettings(URL, bearer_token=TOKENS[0]),
        ServerSettings(URL, bearer_token_file=Path("/run/token")),
        ServerSettings(URL, tls=TlsSettings(cert_file=Path("/run/me.pem"), key_file=Path("/run/me.key"))),
    ]
    assert [Cache(tmp_path, other).get("{}", 1, 2) for other in others] == [None] * len(others)
    Cache(tmp_path, ServerSettings(URL, bearer_token=TOKENS[0])).put("{}", 1, 2, one(1.0))
    assert Cache(tmp_path, ServerSettings(URL, bearer_token=TOKENS[1])).get("{}", 1, 2) is None
    assert [Cache(tmp_path, SERVER).get("{}", *span) for span in ((1, 3), (0, 2))] == [None] * 2
    assert Cache(tmp_path, ServerSettings(URL + "/")).get("{}", 1, 2) is not None


def test_a_refusal_holds_for_a_day(tmp_path: Path) -> None:
    cache = Cache(tmp_path, SERVER)
    assert cache.refusal("{}", 1, 2) is None
    cache.put_refusal("{}", 1, 2, "too much")
    assert cache.refusal("{}", 1, 2) == "too much"
    assert not cache.has("{}", 1, 2)
    (file,) = tmp_path.glob("*/*")
    yesterday = time.time() - 90_000
    os.utime(file, (yesterday, yesterday))
    assert cache.refusal("{}", 1, 2) is None


def test_the_oldest_go_when_it_is_full(tmp_path: Path) -> None:
    cache = Cache(tmp_path, SERVER)
    size = 0
    for place in range(4):
        known = set(tmp_path.glob("*/*"))
        cache.put("{}", place, place + 1, one(*range(1000)))
        (file,) = set(tmp_path.glob("*/*")) - known
        os.utime(file, (place, place))
        size = file.stat().st_size
    cache.trim(2 * size + 1)
    assert [cache.has("{}", place, place + 1) for place in range(4)] == [False, False, True, True]


def test_files_of_others_in_a_folder_that_was_named_are_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "measured" / "week.parquet"
    other.parent.mkdir()
    other.write_bytes(b"x" * 1000)
    cache = Cache(tmp_path, SERVER)
    cache.put("{}", 1, 2, one(1.0))
    cache.trim(0)
    assert other.exists()
    assert not cache.has("{}", 1, 2)


def test_it_lies_where_caches_belong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "thrashold" / "history"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert default_folder() == tmp_path / "home" / ".cache" / "thrashold" / "history"
