"""GPUs of a dcgm-exporter that come, go and stay over reads that fail."""

from __future__ import annotations

import logging

import pytest

from exporter.gpu_sample import GpuIdentity, GpuMemory, GpuSample
from tests.exporter.dialects.dcgm_text import fixture, text
from tests.exporter.sources.dcgm_reading import PAGE, Story, ups
from tests.support.http_servers import page

NODE = b"node_load1 0.5\n"


def test_one_bad_page_leaves_the_gpus_as_they_were() -> None:
    first, failed, back = Story().shown(
        PAGE, page(b"", "500 Internal Server Error"), PAGE.replace(b"52", b"53")
    )
    assert failed.gpus == first.gpus
    assert not failed.status.answering
    assert failed.status.last_at == 1000.0
    assert back.status.answering
    assert [gpu.at for gpu in back.gpus] == [1002.0] * 2


def test_a_gpu_that_fell_off_the_bus_is_down_and_the_others_go_on() -> None:
    """dcgm-exporter#348: its series vanish."""
    both = text(uuid="GPU-a", DEV_XID_ERRORS=0, DEV_GPU_TEMP=40) + text(uuid="GPU-b", DEV_GPU_TEMP=40)
    fallen = text(uuid="GPU-a", DEV_XID_ERRORS=79, DEV_GPU_TEMP=40) + text(uuid="GPU-b", DEV_GPU_TEMP=40)
    last = text(uuid="GPU-b", DEV_GPU_TEMP=41)
    before, told, after = Story().shown(both, fallen, last)
    assert ups(before) == ups(told) == {"GPU-a": True, "GPU-b": True}
    assert ups(after) == {"GPU-a": "gone", "GPU-b": True}
    gone = next(gpu for gpu in after.gpus if not gpu.up)
    # the event that told of it is not lost with it
    assert (gone.at, gone.xids_total, gone.xid_last_at, gone.health) == (1002.0, ((79, 1.0),), 1001.0, None)
    assert after.status.answering


def test_a_gpu_that_a_slow_exporter_no_longer_lists_is_gone_once_the_page_has_settled() -> None:
    both = text(uuid="GPU-a", DEV_GPU_TEMP=40) + text(uuid="GPU-b", DEV_GPU_TEMP=40)
    shown = Story().shown(*[both] * 10, *[text(uuid="GPU-b", DEV_GPU_TEMP=40)] * 3)
    assert [ups(each)["GPU-a"] for each in shown] == [*[True] * 11, "gone", "gone"]
    assert [ups(each)["GPU-b"] for each in shown] == [True] * 13


def test_a_gpu_of_which_all_is_blank_is_gone() -> None:
    before, after = Story().shown(
        text(uuid="GPU-a", DEV_GPU_TEMP=40) + text(uuid="GPU-b", DEV_GPU_TEMP=40),
        text(uuid="GPU-a", DEV_GPU_TEMP=9223372036854775794) + text(uuid="GPU-b", DEV_GPU_TEMP=41),
    )
    assert ups(before) == {"GPU-a": True, "GPU-b": True}
    assert ups(after) == {"GPU-a": "gone", "GPU-b": True}


def test_where_the_page_lists_no_gpu_any_more_all_are_gone_and_the_source_is_down() -> None:
    _, empty, back = Story().shown(PAGE, b"", PAGE)
    assert set(ups(empty).values()) == {"gone"}
    assert (empty.status.answering, empty.status.errors) == (False, (("no_gpus", 1),))
    assert set(ups(back).values()) == {True}


def test_another_page_in_its_place_says_nothing_of_the_gpus() -> None:
    first, other = Story().shown(PAGE, NODE)
    assert other.gpus == first.gpus
    assert not other.status.answering


def test_a_gone_gpu_is_told_of_for_an_hour() -> None:
    pages = [text(uuid="GPU-a", DEV_GPU_TEMP=40) + text(uuid="GPU-b", DEV_GPU_TEMP=40)]
    pages += [text(uuid="GPU-b", DEV_GPU_TEMP=41 + n % 2) for n in range(15)]
    shown = Story().shown(*pages, seconds=300.0)
    assert [len(each.gpus) for each in shown] == [2] * 13 + [1] * 3


def test_a_gpu_that_comes_back_after_that_hour_is_a_new_one() -> None:
    there = text(uuid="GPU-b", DEV_GPU_TEMP=41)
    fell = text(uuid="GPU-a", DEV_XID_ERRORS=79) + there
    pages = [text(uuid="GPU-a", DEV_XID_ERRORS=0) + there, fell, *[there] * 14, fell, fell]
    shown = Story().shown(*pages, seconds=300.0)
    xids = [dict(gpu.xids_total) for each in shown for gpu in each.gpus if gpu.identity.uuid == "GPU-a"]
    assert xids == [{}, *[{79: 1.0}] * 13, {79: 0.0}]


def test_mig_that_is_cut_anew_leaves_no_instance_behind() -> None:
    mig = fixture("a30-mig.prom")
    uuid = "GPU-5a1f0c3e-3333-4a5b-9c6d-000000000002"
    cut = b"\n".join(line for line in mig.splitlines() if b'GPU_I_ID="6"' not in line) + b"\n"
    cut = cut.replace(b'GPU_I_ID="5"', b'GPU_I_ID="2"')
    before, after = Story().shown(mig, cut)
    assert list(ups(before)) == [uuid, *(f"{uuid}/{number}" for number in (3, 4, 5, 6))]
    assert ups(after) == dict.fromkeys([uuid, *(f"{uuid}/{number}" for number in (3, 4, 2))], True)


def test_pods_that_come_and_go_do_not_disturb_a_gpu() -> None:
    alone = text(DEV_FB_USED=10, DEV_FB_FREE=90)
    used = text(more=',pod="a",namespace="n",container="c"', DEV_FB_USED=20, DEV_FB_FREE=80)
    shown = Story().shown(alone, used, alone)
    mib = float(1 << 20)
    assert [each.gpus for each in shown] == [
        (
            GpuSample(
                at,
                GpuIdentity("GPU-0", 0),
                memory=GpuMemory(100 * mib, used_mib * mib),
                reader_started_at=1000.0,
            ),
        )
        for at, used_mib in ((1000.0, 10.0), (1001.0, 20.0), (1002.0, 10.0))
    ]


def test_an_exporter_that_stands_still_is_said_to_once_a_time_and_what_to_do_about_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    energies = [*[5000] * 80, *range(6000, 9000, 1000), *[9000] * 40]
    with caplog.at_level(logging.INFO):
        shown = Story().shown(
            *(text(DEV_TOTAL_ENERGY_CONSUMPTION=each, DEV_GPU_TEMP=40) for each in energies), seconds=5.0
        )
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    still = [line for line in lines if "its host engine hangs" in line]
    assert [line.partition("stood still for ")[2].partition(":")[0] for line in still] == ["5 min", "2 min"]
    assert not any("--collect-interval" in line for line in lines), "that is not what is wrong"
    assert set(ups(shown[79]).values()) == set(ups(shown[-1]).values()) == {"stale"}
    for each in (shown[79], shown[-1]):
        assert not each.status.answering
        assert "restart it" in each.status.last_error
    assert shown[82].status.answering
    assert shown[82].status.last_error == ""
    assert dict(shown[-1].status.errors)["stale"] > dict(shown[82].status.errors)["stale"]


def test_an_exporter_that_stood_still_and_then_collects_seldom_is_told_of_its_interval(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seconds = [*[0] * 400, *(1000 * (1 + second // 30) for second in range(100))]
    Story().shown(*(text(DEV_TOTAL_ENERGY_CONSUMPTION=5000 + each) for each in seconds))
    (line,) = [each.getMessage() for each in caplog.records if "--collect-interval" in each.getMessage()]
    assert "its numbers moved after 30 s" in line


def test_one_gpu_of_several_that_stands_still_is_down_alone() -> None:
    pages = [
        text(uuid="GPU-a", DEV_TOTAL_ENERGY_CONSUMPTION=5000)
        + text(uuid="GPU-b", DEV_TOTAL_ENERGY_CONSUMPTION=5000 + n)
        for n in range(40)
    ]
    last = Story().shown(*pages, seconds=10.0)[-1]
    assert ups(last) == {"GPU-a": "stale", "GPU-b": True}
    assert last.status.answering
