"""A drill's GPUs as dcgm-exporter shows them: what the sidecar reads there is what they are."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from drill.expose.dcgm import Dcgm
from drill.gpu import Gpus
from exporter.gpu_sample import GpuSample
from tests.drill.test_gpu import SWAPPING, loaded, ticks
from tests.exporter.dialects.dcgm_text import Story, fixture

_TYPE = re.compile(r"(?m)^# TYPE (\S+) (\w+)$")


def played(interval_seconds: float, seconds: int) -> tuple[str, Gpus, list[tuple[GpuSample, ...]]]:
    """The page after so many seconds, the GPUs, and what they were each second."""
    engine, gpus = loaded(SWAPPING), Gpus(replace(SWAPPING), epoch=1_790_000_000.0)
    dcgm = Dcgm("node-a", interval_seconds)
    history = []
    for _ in ticks(engine, gpus, seconds):
        history.append(gpus.samples())
        dcgm.see(history[-1])
    return dcgm.page(), gpus, history


def test_the_sidecar_reads_the_gpus_in_it() -> None:
    page, gpus, history = played(1.0, 40)
    (read, *others) = Story().reads(page)
    handed = history[-1][0]
    assert len(others) == 7
    assert read.identity == handed.identity
    assert read.link == handed.link
    assert read.memory is not None
    assert handed.memory is not None
    for name in ("total_bytes", "used_bytes", "reserved_bytes"):
        # whole MiB, each of the three parts rounded
        assert getattr(read.memory, name) == pytest.approx(getattr(handed.memory, name), abs=2 * 2**20)
    assert read.utilisation is not None
    assert read.utilisation.sm_active_ratio == pytest.approx(gpus.rates[0].sm_active_ratio, abs=1e-6)
    assert read.pcie is not None
    assert read.pcie.out_bytes_per_second == pytest.approx(gpus.rates[0].out_bytes_per_second, abs=1)
    assert read.pcie.in_bytes_per_second == pytest.approx(gpus.rates[0].in_bytes_per_second, abs=1)
    assert read.nvlink is not None


def test_names_types_and_labels_are_those_of_the_written_pages() -> None:
    page, _, _ = played(1.0, 2)
    known = dict(
        _TYPE.findall(fixture("h100.prom").decode()) + _TYPE.findall(fixture("b200-new-names.prom").decode())
    )
    told = dict(_TYPE.findall(page))
    assert {name: kind for name, kind in told.items() if name in known} == {
        name: known[name] for name in told if name in known
    }
    assert len(set(told) & set(known)) > 8
    (labels,) = {tuple(re.findall(r'(\w+)="', line)) for line in page.splitlines() if line[0] != "#"}
    assert labels == (
        "gpu",
        "UUID",
        "pci_bus_id",
        "device",
        "modelName",
        "hostname",
        "DCGM_FI_DRIVER_VERSION",
    )


def test_between_two_collections_the_same_numbers_stand_and_rates_are_means() -> None:
    early, *_ = played(30.0, 45)
    late, _, history = played(30.0, 59)
    assert early == late
    before, now = history[0][0], history[30][0]
    assert before.pcie is not None
    assert now.pcie is not None
    mean = ((now.pcie.out_bytes_total or 0.0) - (before.pcie.out_bytes_total or 0.0)) / 30
    assert f" {mean:.0f}\n" in late


def test_nvlinks_rate_holds_while_its_totals_are_not_read_anew() -> None:
    engine, gpus = loaded(SWAPPING), Gpus(SWAPPING, epoch=1_790_000_000.0)
    dcgm = Dcgm("node-a", 1.0)
    rates = []
    for _ in ticks(engine, gpus, 30):
        dcgm.see(gpus.samples())
        (found, *_) = re.findall(r"(?m)^DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL\{.* (\d+)$", dcgm.page())
        rates.append(int(found))
    assert rates[4] > 0
    # read at 5, 10, ... seconds: five collections in a row tell the mean of the five seconds before
    assert all(len(set(rates[first : first + 5])) == 1 for first in range(4, 25, 5))


def test_a_gpu_that_is_down_is_not_on_the_page() -> None:
    dcgm = Dcgm("node-a", 1.0)
    up, down, *_ = Gpus(SWAPPING).samples()
    dcgm.see((up, down._replace(up=False, memory=None, utilisation=None, pcie=None)))
    assert up.identity.uuid in dcgm.page()
    assert down.identity.uuid not in dcgm.page()
