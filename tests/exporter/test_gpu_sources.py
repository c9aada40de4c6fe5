"""NVML and dcgm-exporter both tell of the GPUs: what becomes one sample, through the cycle."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.cycle import CycleSettings, initial, step
from exporter.gpu_sample import (
    GpuHealth,
    GpuIdentity,
    GpuMemory,
    GpuSample,
    GpuUtilisation,
    NvLink,
    PcieTraffic,
)
from exporter.observation import Observation, SourceStatus
from tests.exporter.dialects.dcgm_text import AT, Story, first, fixture, text
from tests.exporter.running import PAGE, call, engine

UUID = "GPU-5a1f0c3e-1111-4a5b-9c6d-000000000000"


def observation(name: str, *gpus: GpuSample) -> Observation:
    status = SourceStatus(name, name, answering=True, last_at=gpus[0].at, read_seconds=0.01)
    return Observation(status, gpus=gpus)


def newest(*observations: Observation, now: float = AT) -> dict[str, GpuSample]:
    """Each GPU's newest sample after one cycle."""
    state, _ = step(initial(CycleSettings()), now, observations)
    return {uuid: gpu.window.newest for uuid, gpu in state.gpus.items()}


def nvml(uuid: str = UUID, at: float = AT, **groups: object) -> GpuSample:
    sample = GpuSample(at, GpuIdentity(uuid, 4, "NVIDIA H100", driver="570"), reader_started_at=5.0)
    return sample._replace(**groups)  # type: ignore[arg-type]


def test_what_nvml_cannot_tell_is_filled_in_by_dcgm() -> None:
    pcie = PcieTraffic("gpm", 5.0, 6.0)
    one = nvml(pcie=pcie, utilisation=GpuUtilisation(0.9))
    found = newest(observation("nvml", one), observation("dcgm", *first(fixture("h100.prom"))))
    assert len(found) == 2
    gpu = found[UUID]
    assert (gpu.identity, gpu.at, gpu.reader_started_at) == (one.identity, AT, 5.0)
    # its own groups as they were, those that it lacks from the page
    assert (gpu.pcie, gpu.utilisation) == (pcie, GpuUtilisation(0.9))
    assert gpu.memory == GpuMemory(81559.0 * (1 << 20), 72079.0 * (1 << 20), 479.0 * (1 << 20))
    assert gpu.nvlink == NvLink(bytes_per_second=202000 * 1024e3, source="dcgm")
    assert gpu.health is not None


def test_a_gpu_that_nvml_has_lost_and_dcgm_still_reads_is_up() -> None:
    lost = nvml(up=False, down_because="hung")
    gpu = newest(observation("nvml", lost), observation("dcgm", *first(fixture("h100.prom"))))[UUID]
    assert gpu.up
    assert gpu.utilisation == GpuUtilisation(0.97, None, 0.61125)


@pytest.mark.parametrize(
    "lost",
    [
        nvml(up=False, down_because="gpu_lost"),
        nvml(up=False, down_because="hung", xids_total=((79, 1.0),), xid_last_at=AT - 3),
    ],
    ids=["by its code", "by its XID"],
)
def test_a_gpu_that_nvml_knows_to_have_fallen_off_the_bus_is_down_whatever_a_page_still_shows(
    lost: GpuSample,
) -> None:
    gpu = newest(observation("nvml", lost), observation("dcgm", *first(fixture("h100.prom"))))[UUID]
    assert (gpu.up, gpu.down_because, gpu.memory) == (False, lost.down_because, None)


def test_a_gpu_that_is_back_after_its_xid_is_up() -> None:
    back = nvml(xids_total=((79, 1.0),), xid_last_at=AT - 3)
    assert newest(observation("nvml", back), observation("dcgm", *first(fixture("h100.prom"))))[UUID].up


def test_a_gpu_that_dcgm_has_lost_and_nvml_still_reads_is_up() -> None:
    gone = GpuSample(AT, GpuIdentity(UUID), up=False, down_because="gone")
    one = nvml(health=GpuHealth(40.0))
    assert newest(observation("nvml", one), observation("dcgm", gone))[UUID] == one


def test_old_numbers_of_one_source_do_not_pass_as_new_beside_the_other() -> None:
    page = first(fixture("h100.prom"))[0]
    one = nvml(at=AT + 20, health=GpuHealth(40.0))
    assert newest(observation("nvml", one), observation("dcgm", page), now=AT + 20)[UUID] == one
    one = nvml(at=AT - 20, health=GpuHealth(40.0))
    assert newest(observation("nvml", one), observation("dcgm", page))[UUID] == page
    # while both are fresh, however far apart within that, they are one
    one = nvml(at=AT + 15, health=GpuHealth(40.0))
    assert newest(observation("nvml", one), observation("dcgm", page))[UUID].memory == page.memory


def test_a_mig_instance_is_shown_once_by_its_uuid_where_that_is_known() -> None:
    pages = first(fixture("a30-mig.prom"))
    parent = pages[0].identity.uuid
    instance = GpuSample(
        AT, GpuIdentity("MIG-1", 0, parent_uuid=parent, gpu_instance=4), memory=GpuMemory(9.0, 1.0)
    )
    found = newest(observation("nvml", instance), observation("dcgm", *pages))
    assert set(found) == {parent, "MIG-1", f"{parent}/3", f"{parent}/5", f"{parent}/6"}
    assert found["MIG-1"] == instance


def test_the_cycle_shows_gpus_of_a_slow_exporter_all_the_time() -> None:
    story, state = Story(), initial(CycleSettings())
    for second in range(100):
        page = text(DEV_POWER_USAGE=100 + second // 30)
        state, snapshot = step(state, AT + second, [observation("dcgm", *story.reads(page, float(second)))])
        assert snapshot.failures == ()
        ups = [value.value for value in snapshot.values if value.signal.name == "gpu_up"]
        assert ups == [1.0]


def test_the_command_reads_the_dcgm_exporter_that_settings_name() -> None:
    with engine(PAGE) as url, engine(fixture("h100.prom")) as dcgm:
        environ = {"THRASHOLD_GPUS_DCGM_URL": dcgm, "THRASHOLD_GPUS_NVML": "never"}
        done = call("--engine", url, "--once", environ=environ)
    assert done.returncode == 0, done.stderr
    assert 'thrashold_source_up{source="dcgm"} 1.0' in done.stdout
    name = url.removeprefix("http://")
    for number in (0, 1):
        uuid = f"GPU-5a1f0c3e-1111-4a5b-9c6d-00000000000{number}"
        assert f'thrashold_gpu_up{{uuid="{uuid}"}} 1.0' in done.stdout
        assert f'thrashold_engine_gpu_info{{engine="{name}",uuid="{uuid}"}} 1.0' in done.stdout


def bytes_told(
    failing: frozenset[int], *, dcgm: bool, seconds: int = 40
) -> list[tuple[float | None, str | None]]:
    """Of each second: the GPU's PCIe bytes so far and who counts them, with NVML's read of them failing in some."""
    state, told = initial(CycleSettings()), []
    for second in range(seconds):
        at = AT + second
        moved = 2e9 * second
        one = nvml(at=at, pcie=None if second in failing else PcieTraffic("gpm", moved, moved))
        page = GpuSample(
            at - 0.4,
            GpuIdentity(UUID),
            reader_started_at=7.0,
            pcie=PcieTraffic("dcgm", 5e12 + moved, 5e12 + moved),
        )
        seen = [observation("nvml", one), *([observation("dcgm", page)] if dcgm else [])]
        state, snapshot = step(state, at + 0.25, seen)
        assert snapshot.failures == ()
        values = {
            (each.signal.name, each.labels[1:]): each.value for each in snapshot.values if not each.is_peak
        }
        source = next((labels[0] for name, labels in values if name == "pcie_source_info"), None)
        told.append((values.get(("pcie_bytes_total", ("in",))), source))
    return told


@settings(deadline=None, max_examples=40)
@given(st.sets(st.integers(3, 38), max_size=6))
def test_a_read_that_fails_hands_no_bytes_to_dcgm_unless_many_fail_on_end(drawn: set[int]) -> None:
    # of any four seconds in a row one is read
    failing = frozenset(each for each in drawn if not {each - 1, each - 2, each - 3} <= drawn)
    beside, alone = bytes_told(failing, dcgm=True), bytes_told(failing, dcgm=False)
    assert beside == alone
    assert beside[-1] == ((2e9 * 39, "gpm"))


def test_bytes_that_nvml_can_no_longer_read_are_dcgms_after_three_seconds() -> None:
    told = bytes_told(frozenset(range(10, 30)), dcgm=True)
    assert [source for _, source in told[8:16]] == ["gpm", "gpm", None, None, None, "dcgm", "dcgm", "dcgm"]
    assert [source for _, source in told[28:32]] == ["dcgm", "dcgm", "gpm", "gpm"], (
        "who is back goes first at once"
    )
    totals = [total for total, _ in told if total is not None]
    assert totals == sorted(totals)
    # read by either, all but the seconds of the two changes
    assert totals[-1] == pytest.approx(2e9 * (39 - 1 - 4), abs=1e9)
