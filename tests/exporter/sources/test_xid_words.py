"""XIDs in the log: each one that is new, and no storm."""

from __future__ import annotations

import logging

import pytest

from exporter.gpu_sample import OTHER_XID, GpuIdentity, GpuSample
from exporter.sources.xid_words import QUIET_SECONDS, XidWords


def gpu(at: float, *xids: tuple[int, float]) -> GpuSample:
    return GpuSample(at, GpuIdentity("GPU-a", 5), xids_total=xids)


def lines(caplog: pytest.LogCaptureFixture, *samples: GpuSample) -> list[str]:
    words = XidWords(logging.getLogger("test"))
    for sample in samples:
        words.take([sample])
    return [record.getMessage() for record in caplog.records]


def test_each_xid_of_a_gpu_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    found = lines(caplog, gpu(1.0), gpu(2.0, (31, 1.0)), gpu(3.0, (31, 1.0)), gpu(4.0, (31, 1.0), (79, 1.0)))
    assert found == ["XID 31 on GPU 5 (GPU-a)", "XID 79 on GPU 5 (GPU-a)"]


def test_one_from_before_our_time_is_none(caplog: pytest.LogCaptureFixture) -> None:
    assert lines(caplog, gpu(1.0, (79, 0.0))) == []


def test_a_storm_is_a_line_each_ten_minutes_with_its_count(caplog: pytest.LogCaptureFixture) -> None:
    found = lines(
        caplog, *(gpu(1.0 + second, (31, 1.0 + second)) for second in range(round(QUIET_SECONDS) + 5))
    )
    assert found == ["XID 31 on GPU 5 (GPU-a)", "XID 31 on GPU 5 (GPU-a), 601 times by now"]


def test_one_that_is_counted_anew_is_new(caplog: pytest.LogCaptureFixture) -> None:
    found = lines(caplog, gpu(1.0, (31, 3.0)), gpu(700.0), gpu(701.0, (31, 1.0)))
    assert found == ["XID 31 on GPU 5 (GPU-a), 3 times by now", "XID 31 on GPU 5 (GPU-a)"]


def test_those_beyond_all_numbers_that_are_kept_are_said_together(caplog: pytest.LogCaptureFixture) -> None:
    found = lines(caplog, gpu(1.0, (OTHER_XID, 2.0)))
    assert found == ["XID of other numbers on GPU 5 (GPU-a), 2 times by now"]
