"""What holds for every test."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.fake_library import Without, built_in, need_parts

# in CI too it goes on searching; how long an example takes to draw or to run is the machine's, not the code's
settings.register_profile(
    "searching",
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("searching")

# a shell starts what it puts into the background with SIGINT ignored, and what tests start would ignore it too; what is
# ignored by a function isn't handed on
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, lambda *_: None)


@pytest.hookimpl(optionalhook=True)  # nobody asks where tests run in one process
def pytest_xdist_auto_num_workers() -> int:
    """Three on two cores: a quarter of the time is waiting. Not more than 8, since each collects all tests first."""
    cores = len(os.sched_getaffinity(0))
    return min(8, cores + (cores + 1) // 2)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(autouse=True)
def no_logger_is_left_quieter() -> Iterator[None]:
    """What runs in the process of others leaves their log as it was: a command called here is one of them."""
    names = ("exporter", "exporter.sources", "alerts", "analysis", "drill", "dashboards")
    before = {name: logging.getLogger(name).level for name in names}
    yield
    assert {name: logging.getLogger(name).level for name in names} == before


@pytest.fixture(scope="session")
def fake_library(tmp_path_factory: pytest.TempPathFactory) -> Without:
    """The fake NVML library without some functions, built once a run for each set of them."""
    need_parts()
    own = tmp_path_factory.getbasetemp()
    # each of several processes has a folder of its own in that of the run
    return built_in((own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "fake-nvml")
