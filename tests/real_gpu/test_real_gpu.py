"""Claims about a real NVIDIA GPU that nothing but one can show. ``make real-gpu`` runs them and prints the table."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from drill.fake_nvml.recorded import load
from exporter.sampler.backend import ReadError, Remedy
from exporter.sampler.nvml import NvmlBackend
from exporter.sampler.nvml_device import NvmlDevice
from exporter.sampler.pcie_meter import PcieMeter
from tests.real_gpu.copying import Copier, Copying
from tests.real_gpu.run import HOME, SECONDS, NoGpuError, conformance, copier_for, opened

pytestmark = [pytest.mark.real_gpu, pytest.mark.timeout(600)]
HOW = (
    "NOT TESTED: no NVIDIA GPU here. Run `make real-gpu` on a machine with one and its driver: in a container started"
    " with NVIDIA's runtime and NVIDIA_DRIVER_CAPABILITIES=compute,utility."
)
PAYLOAD_SHARE = (0.97, 1.25)
"""Bytes counted for one copied: headers come on top, and some drivers' own traffic."""


@pytest.fixture(scope="module")
def device() -> Iterator[NvmlDevice]:
    backend = NvmlBackend()
    try:
        found = opened(backend)
    except NoGpuError as error:
        pytest.skip(f"{HOW} ({error})")
    yield found
    backend.close()


@pytest.fixture
def copier(device: NvmlDevice) -> Iterator[Copier]:
    with ExitStack() as closing:
        made, why_not = copier_for(device, closing)
        if made is None:
            pytest.skip(f"NOT TESTED: nothing can be copied: {why_not}")
        yield made


def test_it_answers_what_was_not_known(device: NvmlDevice, capsys: pytest.CaptureFixture[str]) -> None:
    lines, file = conformance(NvmlBackend(), device.identity.device_index or 0, SECONDS, HOME)
    with capsys.disabled():
        print("\n" + "\n".join(lines))  # noqa: T201 - the table is what the run is for
    assert load(Path(file)).profile.name == device.identity.name


def test_each_group_answers_or_is_dropped(device: NvmlDevice) -> None:
    for read in (
        device.memory,
        device.utilisation,
        device.link,
        device.nvlink,
        device.health,
        device.processes,
    ):
        try:
            read()
        except ReadError as error:
            assert error.remedy in {Remedy.DROP, Remedy.SKIP}, f"{read.__name__}: {error}"  # noqa: PT017
    assert all(reason != "bad_value" for _, reason, _ in device.left_out()), device.left_out()


@pytest.mark.parametrize("to_gpu", [True, False])
def test_what_is_copied_is_counted_and_the_right_way(
    device: NvmlDevice, copier: Copier, *, to_gpu: bool
) -> None:
    meter = PcieMeter(device, window=False)
    meter.poll()
    with Copying(copier, to_gpu=to_gpu) as copying:
        _poll(meter, 2 * SECONDS)
    _poll(meter, 3)
    traffic = meter.traffic()
    assert traffic is not None
    assert traffic.out_bytes_total is not None
    assert traffic.in_bytes_total is not None
    right, wrong = traffic.in_bytes_total, traffic.out_bytes_total
    if not to_gpu:
        right, wrong = wrong, right
    assert right > wrong
    if not traffic.ambiguous_intervals_total:
        low, high = PAYLOAD_SHARE
        assert low < right / copying.payload_bytes < high, traffic


def _poll(meter: PcieMeter, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(meter.interval_seconds or 0.5)
        meter.poll()
