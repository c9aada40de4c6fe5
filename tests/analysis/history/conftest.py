"""The servers that these tests read, and a cache of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.analysis.history.two_days import fill, raw, series
from tests.support.prometheus import Prometheus, serving


@pytest.fixture(scope="session")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Two days of two engines, with half an hour missing around midnight."""
    folder = tmp_path_factory.mktemp("prometheus")
    with serving(None, folder, "--web.enable-remote-write-receiver", "--query.max-samples=4000") as server:
        fill(server, series())
        yield server


@pytest.fixture(scope="session")
def raw_prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """The same days of a server without sidecars."""
    with serving(None, tmp_path_factory.mktemp("raw"), "--web.enable-remote-write-receiver") as server:
        fill(server, raw())
        yield server


@pytest.fixture(scope="module", autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test keeps anything in the cache of whoever runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
