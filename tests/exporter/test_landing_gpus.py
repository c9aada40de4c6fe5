"""The GPUs on the landing page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from html import unescape

import pytest

from exporter.cycle import CycleSettings, initial, step
from exporter.derive.inventory import ENGINE_GPU_INFO, GPU_INFO
from exporter.derive.pcie import PCIE_SATURATION
from exporter.derive.starvation import STARVED
from exporter.gpu_sample import GpuIdentity, GpuMemory, GpuSample, PcieLink
from exporter.landing import landing_page
from exporter.landing_gpus import gpu_table, gpus_of
from exporter.landing_strip import verdict
from exporter.observation import Observation, SourceStatus
from exporter.publication import Publication
from exporter.snapshot import Snapshot, Value
from tests.exporter.test_gpu_cycle import engine_at, lived, node
from tests.support.gpus import LINK_BYTES, h100, identity

NOW = 1_800_000_000.0
UP = SourceStatus("e", "engine", answering=True, last_at=NOW, read_seconds=0.01)


def snapshot(*last: GpuSample, seconds: int = 20, gpus: int = 2) -> Snapshot:
    """After 20 s of GPUs whose links are half full towards them; ``last`` replaces the last samples."""
    state = initial(CycleSettings())
    for back in range(seconds - 1, -1, -1):
        at = NOW - back
        samples = {
            index: h100(
                at, index, bytes_in=0.5 * LINK_BYTES * (seconds - back), bytes_out=1e9 * (seconds - back)
            )
            for index in range(gpus)
        }
        if not back:
            samples.update({sample.identity.device_index or 0: sample for sample in last})
        status = SourceStatus("nvml", "nvml", answering=True, last_at=at, read_seconds=0.01)
        state, shown = step(state, at, [Observation(status, gpus=tuple(samples.values()))])
    return shown


def down(reason: str, index: int = 1) -> GpuSample:
    return GpuSample(NOW, identity(index), up=False, down_because=reason, reader_started_at=1.0)


def words(html: str) -> str:
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))).strip()


def rows(shown: Snapshot) -> list[str]:
    table, _, _ = gpu_table(shown.values, NOW).partition("</tbody>")
    return [words("<" + row) for row in table.split("<tr")[2:]]


def test_a_healthy_gpu_is_one_row_without_a_word_of_trouble() -> None:
    first, second = rows(snapshot())
    assert first == (
        "GPU 0 65.2 GiB of 79.6 GiB 29.3 GiB/s peak 29.3 GiB/s 953.7 MiB/s peak 953.7 MiB/s"
        " 50 % peak 50 % 58.7 GiB/s gpm"
    )
    assert second.startswith("GPU 1 65.2")
    table = gpu_table(snapshot().values, NOW)
    assert 'class="bad"' not in table
    assert table.count("NVIDIA H100 80GB HBM3") == 1
    assert f'title="{identity(1).uuid}"' in table
    assert "at 80 %" in words(table), "the notch is explained"


def test_kinds_that_differ_are_said_in_each_row() -> None:
    other = h100(NOW, 1)._replace(identity=identity(1)._replace(name="NVIDIA L40S"))
    table = rows(snapshot(other))
    assert "NVIDIA H100" in table[0]
    assert "NVIDIA L40S" in table[1]


@pytest.mark.parametrize(
    ("sample", "trouble"),
    [
        (down("gpu_lost"), "lost"),
        (down("gpu_ill"), "ill"),
        (down("hung"), "hangs"),
        (down("stale"), "stands still"),
        (down("gone"), "gone"),
        (down("no_permission"), "down: no permission"),
        (down(""), "down"),
        (h100(NOW, 1)._replace(link=PcieLink(5, 8, 5, 16)), "PCIe link downgraded"),
    ],
)
def test_trouble_stands_in_words_beside_the_gpu_and_on_top(sample: GpuSample, trouble: str) -> None:
    shown = snapshot(sample)
    healthy, ill = rows(shown)
    assert ill.startswith(f"GPU 1 {trouble}")
    assert trouble not in healthy
    assert f"{trouble}: GPU 1" in words(verdict(Publication(shown, (UP,))))


def test_a_lost_gpu_still_tells_the_xid_that_took_it() -> None:
    lost = GpuSample(
        NOW,
        identity(1),
        up=False,
        down_because="gpu_lost",
        reader_started_at=1.0,
        xids_total=((79, 1.0),),
        xid_last_at=NOW - 65,
    )
    shown = snapshot(lost)
    assert rows(shown)[1] == "GPU 1 lost · XID 79 last 65.0 s ago — — — — —"
    assert '<b class="bad">XID 79</b>' in gpu_table(shown.values, NOW)


def test_an_xid_of_an_application_is_told_and_not_marked() -> None:
    shown = snapshot(h100(NOW, 1)._replace(xids_total=((13, 2.0), (43, 1.0)), xid_last_at=NOW))
    assert "<b>XID 13, 43</b>" in gpu_table(shown.values, NOW)


def test_an_xid_from_before_our_time_is_not_told_beside_one_that_came() -> None:
    shown = snapshot(h100(NOW, 1)._replace(xids_total=((13, 2.0), (79, 0.0)), xid_last_at=NOW))
    assert "<b>XID 13</b>" in gpu_table(shown.values, NOW)
    assert 'class="bad"' not in gpu_table(shown.values, NOW)


def test_what_the_driver_asks_for_is_told() -> None:
    sample = h100(NOW, 1)
    assert sample.health is not None
    shown = snapshot(sample._replace(health=sample.health._replace(recovery_action=1)))
    assert "the driver says: reset it" in rows(shown)[1]
    assert "the driver says" not in rows(shown)[0]


def test_what_is_not_known_is_a_dash() -> None:
    bare = GpuSample(NOW, identity(0))
    assert rows(snapshot(bare, seconds=1, gpus=1)) == ["GPU 0 — — — — —"]


def test_a_mig_instance_follows_its_parent_and_has_memory_alone() -> None:
    instance = GpuIdentity("MIG-1", 0, "NVIDIA H100 MIG 3g.40gb", parent_uuid=identity().uuid, gpu_instance=1)
    state = initial(CycleSettings())
    status = SourceStatus("nvml", "nvml", answering=True, last_at=NOW, read_seconds=0.01)
    samples = (GpuSample(NOW, instance, memory=GpuMemory(40e9, 30e9)), h100(NOW, 1), h100(NOW, 0))
    _, shown = step(state, NOW, [Observation(status, gpus=samples)])
    table = rows(shown)
    assert [row.split()[0] + row.split()[1] for row in table] == ["GPU0", "MIG-1NVIDIA", "GPU1"]
    assert table[1] == "MIG-1 NVIDIA H100 MIG 3g.40gb 27.9 GiB of 37.3 GiB — — — —"


def test_no_gpu_no_table() -> None:
    assert gpu_table((), NOW) == ""


def test_what_others_wrote_is_escaped() -> None:
    evil = GpuIdentity('"><script>', 0, "<script>alert('1')</script>")
    state = initial(CycleSettings())
    status = SourceStatus("nvml", "nvml", answering=True, last_at=NOW, read_seconds=0.01)
    _, shown = step(state, NOW, [Observation(status, gpus=(GpuSample(NOW, evil),))])
    assert "<script" not in gpu_table(shown.values, NOW)


def test_cards_call_gpus_by_their_index_and_tell_the_uuid_once() -> None:
    page = landing_page(Publication(snapshot(), (UP,))).decode()
    (card,) = (each for each in page.split("<section") if "thrashold_<wbr>gpu_<wbr>busy_<wbr>ratio" in each)
    assert words("<" + card).endswith("uuid value GPU 0 97.0 % GPU 1 97.0 %")
    assert words(page).count(identity(1).uuid) == 1, "in gpu_info"


def shares(shown: Snapshot) -> list[str]:
    table = gpu_table(shown.values, NOW)
    return [words(line) for line in re.findall(r"<p.*?</p>", table) if "explained by swap" in line]


def test_what_swap_explains_stands_beside_the_gpus() -> None:
    _, shown = lived(CycleSettings())
    assert shares(shown) == ["of PCIe, explained by swap of e: in 27.3 %, out 27.3 %"]


def test_what_swap_explains_is_not_known_for_a_reason() -> None:
    _, young = lived(CycleSettings(), 20)
    (said,) = shares(young)
    assert said.startswith("of PCIe, explained by swap of e: not known (a minute is needed")
    state, _ = lived(CycleSettings(), 69)
    lost = GpuSample(69.5, identity(7), up=False, reader_started_at=1.0)
    most = node(69.5)
    _, shown = step(state, 69.6, [engine_at(69.0, 4e9 * 69), replace(most, gpus=(*most.gpus[:7], lost))])
    assert shares(shown) == [
        "of PCIe, explained by swap of e: not known while a GPU of it may be down: GPU 7"
    ]


def test_without_an_engine_on_gpus_nothing_is_said_of_swap() -> None:
    assert shares(snapshot()) == []


def starved(*shares: float) -> tuple[Value, ...]:
    told = (
        Value(STARVED, ("e", identity(index).uuid), share, is_peak=False)
        for index, share in enumerate(shares)
    )
    return (*snapshot(gpus=len(shares)).values, *told)


def test_a_gpu_that_waits_for_pcie_is_trouble_in_its_row_and_on_top() -> None:
    values = starved(0.0, 1.0, 0.49, 0.5)
    shown = Snapshot(NOW, values, ready=True)
    assert "waits for PCIe: GPU 1, GPU 3" in words(verdict(Publication(shown, (UP,))))
    told = ["waits for PCIe" in row for row in rows(shown)]
    assert told == [False, True, False, True]
    assert "waits for PCIe 100.0 % of a minute" in rows(shown)[1]


def test_no_gpu_waits_for_pcie_where_none_does() -> None:
    assert "waits" not in verdict(Publication(Snapshot(NOW, starved(0.0, 0.4), ready=True), (UP,)))


@pytest.mark.parametrize(("share", "marked"), [(0.79, 0), (0.81, 1)])
def test_a_link_counts_as_full_from_the_notch_on(share: float, marked: int) -> None:
    values = [
        each._replace(value=share) if each.signal is PCIE_SATURATION and each.labels[1] == "in" else each
        for each in snapshot(gpus=1).values
    ]
    assert gpu_table(values, NOW).count('class="bar full"') == marked


def test_gpus_that_are_down_are_told_apart_on_top_and_all_of_them_are_not_listed() -> None:
    some = snapshot(down("hung", 0), down("gone", 2), down("hung", 3), gpus=4)
    said = words(verdict(Publication(some, (UP,))))
    assert "hangs: GPU 0, GPU 3" in said
    assert "gone: GPU 2" in said
    every = snapshot(*(down("gpu_lost", index) for index in range(4)), gpus=4)
    assert "lost: all 4 GPUs" in words(verdict(Publication(every, (UP,))))
    assert "GPU 0" not in words(verdict(Publication(every, (UP,))))


def alike(on: Sequence[tuple[str, int]], *last: GpuSample, gpus: int) -> Snapshot:
    """GPUs that all are GPU 0 of some machine; ``on``: engines, each with the place of a GPU of it."""
    values = [
        each._replace(labels=(each.labels[0], "0", *each.labels[2:])) if each.signal is GPU_INFO else each
        for each in snapshot(*last, gpus=gpus).values
    ]
    values += [
        Value(ENGINE_GPU_INFO, (engine, identity(place).uuid), 1.0, is_peak=False) for engine, place in on
    ]
    return Snapshot(NOW, tuple(values), ready=True)


def test_gpus_of_several_machines_with_the_same_index_go_by_their_engine() -> None:
    shown = alike([("west", 0), ("east", 1)], down("gpu_lost", 1), gpus=3)
    assert [gpu.title for gpu in gpus_of(shown.values)] == [
        f"GPU 0 of {identity(2).uuid}",
        "GPU 0 of east",
        "GPU 0 of west",
    ]
    assert [row for row in rows(shown) if "lost" in row] == [
        row for row in rows(shown) if row.startswith("GPU 0 of east lost")
    ]
    assert "lost: GPU 0 of east" in words(verdict(Publication(shown, (UP,))))


def test_where_their_engine_does_not_tell_them_apart_they_go_by_their_uuid() -> None:
    # an engine over two machines, and engines that are joined with all that is read
    for on in ([("e", 0), ("e", 1)], [("a", 0), ("a", 1), ("b", 0), ("b", 1)]):
        titles = {gpu.title for gpu in gpus_of(alike(on, gpus=2).values)}
        assert titles == {f"GPU 0 of {identity(place).uuid}" for place in (0, 1)}
