"""What pages of dcgm-exporter become: fields, units, labels, MIG and shared GPUs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.dialects.dcgm_names import is_blank, recognises
from exporter.dialects.dcgm_page import MOST_LISTED
from exporter.gpu_sample import (
    GpuHealth,
    GpuIdentity,
    GpuMemory,
    GpuSample,
    GpuUtilisation,
    NvLink,
    PcieLink,
    PcieTraffic,
)
from tests.exporter.dialects.dcgm_text import AT, UUID, Story, first, fixture, one, text

MIB = 1 << 20


def test_a_default_page() -> None:
    busy, idle = first(fixture("h100.prom"))
    assert busy == GpuSample(
        AT,
        GpuIdentity(
            "GPU-5a1f0c3e-1111-4a5b-9c6d-000000000000",
            0,
            "NVIDIA H100 80GB HBM3",
            "00000000:1A:00.0",
            "570.86.15",
        ),
        reader_started_at=AT,
        memory=GpuMemory(81559.0 * MIB, 72079.0 * MIB, 479.0 * MIB),
        utilisation=GpuUtilisation(0.97, None, 0.61125),
        pcie=PcieTraffic("dcgm", None, None, 21474836480.0, 1288490188.0, disagreements_total=0.0),
        nvlink=NvLink(bytes_per_second=202000 * 1024 * 1000.0, source="dcgm"),
        health=GpuHealth(
            52.0,
            487.31,
            (("replay", 3.0),),
            (),
            (("correctable", 0.0), ("uncorrectable", 0.0), ("failed", 0.0)),
        ),
    )
    assert idle.identity.uuid == "GPU-5a1f0c3e-1111-4a5b-9c6d-000000000001"
    assert idle.memory == GpuMemory(81559.0 * MIB, 1.0 * MIB, 479.0 * MIB)
    assert idle.utilisation == GpuUtilisation(0.0, None, 0.0)
    assert idle.pcie is not None
    assert (idle.pcie.out_bytes_per_second, idle.pcie.in_bytes_per_second) == (337641.0, 371204.0)
    # no link has moved a byte under our eyes: not told apart from links that nobody counts (DCGM#149)
    assert idle.nvlink is None
    assert idle.health is not None
    assert idle.health.remapped_rows == (("correctable", 2.0), ("uncorrectable", 1.0), ("failed", 0.0))


def test_all_fields_by_the_names_of_dcgm_4_6() -> None:
    (gpu,) = first(fixture("b200-new-names.prom"))
    assert gpu == GpuSample(
        AT,
        GpuIdentity(
            "GPU-5a1f0c3e-2222-4a5b-9c6d-000000000000", 0, "NVIDIA B200", "00000001:00:00.0", "590.44.01"
        ),
        reader_started_at=AT,
        memory=GpuMemory(183359.0 * MIB, 161674.0 * MIB, 685.0 * MIB),
        utilisation=GpuUtilisation(0.88, 0.743, 0.52),
        pcie=PcieTraffic("dcgm", 7e12, 6e12, disagreements_total=0.0),
        link=PcieLink(5, 16, 6, 16),
        nvlink=NvLink(91e12, 92e12, source="dcgm"),
        health=GpuHealth(
            61.0,
            712.5,
            (("replay", 4.0), ("correctable", 9.0)),
            (("corrected", 17.0), ("uncorrected", 0.0)),
            (("correctable", 1.0), ("uncorrectable", 2.0), ("pending", 1.0), ("failed", 0.0)),
            (("power", 12.5), ("thermal", 0.25), ("hardware_thermal", 0.001)),
            0,
            persistence_mode=True,
        ),
    )


def test_names_and_labels_of_1_x() -> None:
    (gpu,) = first(fixture("v100-1x-names.prom"))
    assert gpu.identity == GpuIdentity("GPU-5a1f0c3e-5555-4a5b-9c6d-000000000000", 0)
    assert gpu.memory == GpuMemory(32510.0 * MIB, 24350.0 * MIB, None)
    assert gpu.utilisation == GpuUtilisation(0.64)
    # rates, though the page calls them counters (dcgm-exporter#87, #88)
    assert gpu.pcie == PcieTraffic("dcgm", None, None, 12e6, 11e6, disagreements_total=0.0)
    assert gpu.health == GpuHealth(56.0, 167.362, (("replay", 0.0),))


def test_mig_instances_have_memory_of_their_own_and_their_gpu_the_rest() -> None:
    gpu, *instances = first(fixture("a30-mig.prom"))
    uuid = "GPU-5a1f0c3e-3333-4a5b-9c6d-000000000002"
    assert gpu.identity == GpuIdentity(uuid, 2, "NVIDIA A30", "00000000:CA:00.0")
    # asked at different moments, each instance says something else of its GPU: the newest is the largest
    assert gpu.health == GpuHealth(34.0, 52.746, (("replay", 2.0),))
    # utilisation that reads 0 on instances (dcgm-exporter#216) and PCIe that has no meaning there (DCGM#88)
    assert (gpu.memory, gpu.utilisation, gpu.pcie, gpu.nvlink) == (None, None, None, None)
    assert [(each.identity, each.memory) for each in instances] == [
        (
            GpuIdentity(
                f"{uuid}/{number}",
                2,
                "NVIDIA A30",
                "00000000:CA:00.0",
                parent_uuid=uuid,
                gpu_instance=number,
            ),
            GpuMemory(5955.0 * MIB, used * MIB, None),
        )
        for number, used in ((3, 3748.0), (4, 3.0), (5, 3.0), (6, 3.0))
    ]
    assert all(each.health is each.pcie is each.utilisation is None for each in instances)


def test_pods_that_share_a_gpu_are_neither_gpus_nor_added_up() -> None:
    (gpu,) = first(fixture("t4-shared.prom"))
    assert gpu.memory == GpuMemory(15360.0 * MIB, 10000.0 * MIB, 430.0 * MIB)
    assert gpu.utilisation == GpuUtilisation(0.71)
    assert gpu.pcie == PcieTraffic("dcgm", None, None, 1e6, 2e6, disagreements_total=0.0)
    assert gpu.health == GpuHealth(66.0, 69.81)


def test_the_gpus_of_several_hosts_are_told_apart_by_uuid() -> None:
    page = text(uuid="GPU-a", more=',Hostname="a"', DEV_GPU_TEMP=40) + text(
        uuid="GPU-b", more=',Hostname="b"', DEV_GPU_TEMP=50
    )
    assert [(each.identity.uuid, each.identity.device_index) for each in first(page)] == [
        ("GPU-a", 0),
        ("GPU-b", 0),
    ]


def test_a_series_that_stands_there_twice_makes_no_second_gpu() -> None:
    (gpu,) = first(text(DEV_GPU_TEMP=40) * 2)
    assert gpu.health == GpuHealth(40.0)


@pytest.mark.parametrize(
    "value",
    [
        *("9223372036854775792", "9223372036854775793", "9223372036854775794", "9223372036854775795"),
        *("9223372036854775808.0", "9.223372036854776e+18", "9.22337203685478e+18", "18446744073709551615"),
        *("140737488355328", "140737488355328.000000", "1.40737488355328e+14", "140737488355331.0"),
        *("2147483632", "2147483633", "2147483634", "2147483635", "2.147483632e+09"),
        *("NaN", "+Inf", "-Inf", "-1"),
    ],
)
def test_blanks_are_absent_whatever_field_they_leak_into(value: str) -> None:
    fields = {
        **dict.fromkeys(("DEV_FB_FREE", "DEV_FB_USED", "DEV_FB_RESERVED", "DEV_GPU_UTIL"), value),
        **dict.fromkeys(("PROF_PCIE_TX_BYTES", "PROF_PCIE_RX_BYTES_TOTAL", "DEV_PCIE_LINK_GEN"), value),
        **dict.fromkeys(("DEV_NVLINK_BANDWIDTH_TOTAL", "DEV_POWER_VIOLATION", "DEV_XID_ERRORS"), value),
        **dict.fromkeys(("DEV_POWER_USAGE", "DEV_TOTAL_ENERGY_CONSUMPTION", "PROF_SM_ACTIVE"), value),
    }
    assert one(**fields, DEV_GPU_TEMP=40) == GpuSample(
        AT, GpuIdentity(UUID, 0), reader_started_at=AT, health=GpuHealth(40.0)
    )


@given(st.floats())
def test_no_blank_is_a_number_that_can_be(value: float) -> None:
    assert is_blank(value) or (0.0 <= value < 9.2e18 and not math.isnan(value))


def test_a_gpu_of_which_everything_is_blank_is_not_told_of() -> None:
    assert first(text(DEV_GPU_TEMP=9223372036854775794, DEV_GPU_UTIL=2147483634)) == ()


@pytest.mark.parametrize("value", [4294967295, 200_000, 1_000, 101])
def test_impossible_utilisation_is_left_out_and_counted(value: int) -> None:
    gpu = one(DEV_GPU_UTIL=value, DEV_GPU_TEMP=40)
    assert gpu.utilisation is None
    assert gpu.errors_total == (("utilisation", "implausible", 1.0),)


def test_more_than_the_link_can_carry_is_left_out_and_counted() -> None:
    link = {"DEV_PCIE_LINK_GEN": 3, "DEV_PCIE_LINK_WIDTH": 8, "DEV_GPU_TEMP": 40}
    possible = one(PROF_PCIE_TX_BYTES=8.5e9, PROF_PCIE_RX_BYTES=1, **link)
    assert possible.pcie == PcieTraffic("dcgm", None, None, 8.5e9, 1.0, disagreements_total=0.0)
    # 11.7 GB/s on a third-generation link of 8 lanes, which carries 7.9
    impossible = one(PROF_PCIE_TX_BYTES=11.7e9, PROF_PCIE_RX_BYTES=1, **link)
    assert impossible.pcie == PcieTraffic("dcgm", None, None, None, 1.0, disagreements_total=0.0)
    assert impossible.errors_total == (("pcie", "implausible", 1.0),)
    # of an unknown link, what no link carries
    assert one(PROF_PCIE_TX_BYTES=2e11, DEV_GPU_TEMP=40).errors_total == (("pcie", "implausible", 1.0),)


def test_memory_needs_what_is_used_and_of_how_much() -> None:
    assert one(DEV_FB_USED=100, DEV_FB_FREE=300).memory == GpuMemory(400.0 * MIB, 100.0 * MIB, None)
    assert one(DEV_FB_USED=100, DEV_FB_TOTAL=500).memory == GpuMemory(500.0 * MIB, 100.0 * MIB, None)
    assert one(DEV_FB_USED=100).memory is None
    assert one(DEV_FB_FREE=100, DEV_FB_RESERVED=3).memory is None
    assert one(DEV_FB_USED=600, DEV_FB_TOTAL=500).memory is None


def test_the_window_of_20_ms_is_a_last_resort_and_says_so() -> None:
    window = {"DEV_PCIE_TX_THROUGHPUT": 259423, "DEV_PCIE_RX_THROUGHPUT": 2012109}
    assert one(**window).pcie == PcieTraffic(
        "window", None, None, 259423e3, 2012109e3, disagreements_total=0.0
    )
    better = one(**window, PROF_PCIE_TX_BYTES=5, PROF_PCIE_RX_BYTES=6).pcie
    assert better == PcieTraffic("dcgm", None, None, 5.0, 6.0, disagreements_total=0.0)


def test_profiled_activity_stands_in_for_utilisation() -> None:
    assert one(PROF_GR_ENGINE_ACTIVE=0.75).utilisation == GpuUtilisation(0.75)
    assert one(PROF_GR_ENGINE_ACTIVE=0.75, DEV_GPU_UTIL=80).utilisation == GpuUtilisation(0.8)


def test_a_link_that_cannot_be_seen_is_absent() -> None:
    assert one(DEV_PCIE_LINK_GEN=0, DEV_PCIE_LINK_WIDTH=0, DEV_GPU_TEMP=40).link is None
    assert one(DEV_PCIE_LINK_GEN=1, DEV_PCIE_MAX_LINK_GEN=4).link == PcieLink(1, None, 4, None)


def test_series_of_parts_or_of_nobody_are_no_gpus() -> None:
    page = (
        'DCGM_FI_DEV_GPU_TEMP{gpu="0"} 40\n'
        'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID=""} 40\n'
        'DCGM_FI_DEV_GPU_TEMP{nvlink="0",gpu="0",UUID="GPU-0"} 40\n'
        'DCGM_FI_DEV_GPU_TEMP{nvswitch="1",UUID="GPU-0"} 40\n'
        'DCGM_FI_DEV_CPU_UTIL_TOTAL{cpu="0",hostname="a"} 1\n'
        'DCGM_EXP_XID_ERRORS_COUNT{gpu="0",UUID="GPU-0",window_size_in_ms="300000",xid="42"} 1\n'
    )
    assert first(page) == ()


def test_a_page_full_of_made_up_gpus_is_taken_in_part() -> None:
    page = "".join(text(uuid=f"GPU-{number}", DEV_GPU_TEMP=40) for number in range(MOST_LISTED + 100))
    assert len(first(page)) == MOST_LISTED


def test_blank_words_in_labels_are_no_names() -> None:
    page = text(more=',modelName="<<<NOT_FOUND>>>",DCGM_FI_DRIVER_VERSION="<<<NULL>>>"', DEV_GPU_TEMP=40)
    assert first(page)[0].identity == GpuIdentity(UUID, 0)


def test_a_page_is_recognised_by_any_of_its_names() -> None:
    assert recognises({"up", "DCGM_FI_DEV_GPU_TEMP"})
    assert recognises({"dcgm_gpu_temp"})
    assert not recognises({"nvidia_smi_temperature_gpu", "my_DCGM_copy"})


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                [
                    *("DEV_GPU_UTIL", "DEV_FB_USED", "DEV_FB_FREE", "PROF_PCIE_TX_BYTES", "DEV_XID_ERRORS"),
                    *("PROF_PCIE_TX_BYTES_TOTAL", "PROF_SM_ACTIVE", "DEV_NVLINK_COUNT_TX_BYTES"),
                    *("DEV_TOTAL_ENERGY_CONSUMPTION", "DEV_PCIE_LINK_GEN", "DEV_PCIE_LINK_WIDTH"),
                ]
            ),
            st.floats() | st.integers(-5, 1 << 64).map(float),
            st.floats(0.1, 40.0),
        ),
        max_size=12,
    )
)
def test_whatever_numbers_come_what_is_shown_can_be(reads: list[tuple[str, float, float]]) -> None:
    story, seconds = Story(), 0.0
    for name, value, step in reads:
        seconds += step
        for gpu in story.reads(text(**{name: value}), seconds):
            assert gpu.at <= AT + seconds
            shares = gpu.utilisation or ()
            assert all(share is None or 0 <= share <= 1 for share in shares)
            moved = (*(gpu.pcie or ())[1:], *(each for each in gpu.nvlink or () if each != "dcgm"))
            assert all(each is None or 0 <= each < math.inf for each in moved)
            assert all(count >= 0 for _, count in gpu.xids_total)
