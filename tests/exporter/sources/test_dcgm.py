"""A dcgm-exporter read over HTTP: what is shown of its GPUs, and what of reads that fail."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import pytest

from exporter.gpu_sample import GpuIdentity, GpuMemory, GpuSample
from exporter.gpu_settings import DcgmSettings
from exporter.observation import Observation
from exporter.sources.dcgm import DcgmSource
from exporter.sources.failure import Reason
from exporter.sources.source import Source
from tests.exporter.dialects.dcgm_text import fixture, text
from tests.exporter.sources.reading import HANGING_SECONDS, run, until
from tests.support.captures import fixture as capture
from tests.support.http_servers import Behaviour, hang, page, raw, redirect, serving, slam

PAGE = fixture("h100.prom")


def source(
    url: str,
    *,
    interval: float = 0.03,
    clock: Callable[[], float] = time.time,
    **settings: Any,  # noqa: ANN401 - any setting
) -> DcgmSource:
    return DcgmSource(DcgmSettings(url, **{"deadline_seconds": HANGING_SECONDS, **settings}), clock, interval)


class Story:
    """One source and one server whose page is exchanged from read to read, on a clock of its own."""

    def __init__(self) -> None:
        self.now = 1000.0

    def shown(self, *pages: str | bytes | Behaviour, seconds: float = 1.0) -> list[Observation]:
        async def work() -> list[Observation]:
            found = []
            async with serving(hang) as server:
                dcgm = source(server.url, clock=lambda: self.now)
                for each in pages:
                    body = each.encode() if isinstance(each, str) else each
                    server.behaviour = page(body) if isinstance(body, bytes) else body
                    await dcgm.read_once()
                    found.append(dcgm.observe())
                    self.now += seconds
            return found

        return run(work())


def ups(observation: Observation) -> dict[str, bool | str]:
    return {gpu.identity.uuid: gpu.up or gpu.down_because for gpu in observation.gpus}


def test_before_the_first_read_nothing_is_known() -> None:
    dcgm: Source = source("http://127.0.0.1:1")
    assert dcgm.name == "dcgm"
    observation = dcgm.observe()
    assert (observation.gpus, observation.engine) == ((), None)
    assert (observation.status.kind, observation.status.answering) == ("dcgm", False)


def test_a_page_becomes_gpus_with_the_time_its_read_began() -> None:
    (shown,) = Story().shown(PAGE)
    assert [(gpu.at, gpu.identity.name, gpu.up) for gpu in shown.gpus] == [
        (1000.0, "NVIDIA H100 80GB HBM3", True)
    ] * 2
    status = shown.status
    assert (status.name, status.kind, status.answering, status.last_at, status.last_error) == (
        "dcgm",
        "dcgm",
        True,
        1000.0,
        "",
    )


@pytest.mark.parametrize("name", ["b200-new-names", "a30-mig", "t4-shared", "v100-1x-names"])
def test_every_written_page_can_be_read(name: str) -> None:
    (shown,) = Story().shown(fixture(f"{name}.prom"))
    assert shown.status.answering
    assert all(gpu.up for gpu in shown.gpus)


def test_the_path_is_added_and_credentials_are_sent() -> None:
    async def work() -> None:
        async with serving(page(PAGE)) as server:
            dcgm = source(f"http://127.0.0.1:{server.port}", bearer_token="secret")  # noqa: S106 - made up
            await dcgm.read_once()
            (asked,) = server.requests
            assert (asked.target, asked.headers["authorization"]) == ("/metrics", "Bearer secret")

    run(work())


NVIDIA_GPU_EXPORTER = (
    b'nvidia_smi_utilization_gpu_ratio{uuid="df6e7a7c"} 0.4\nnvidia_smi_gpu_info{uuid="df6e7a7c"} 1\n'
)
NVITOP = b'gpu_utilization{index="0",uuid="GPU-1"} 40\nprocess_cpu_seconds_total 1\nhost_uptime 5\n'
NODE = b'node_load1 0.5\nnode_cpu_seconds_total{cpu="0",mode="idle"} 5\n'
ROOT = b"<html><head><title>GPU Exporter</title></head><body>Metrics</body></html>"


@pytest.mark.parametrize(
    ("behaviour", "reason", "says"),
    [
        (
            page(b"internal server error", "500 Internal Server Error"),
            Reason.HTTP_STATUS,
            "500 Internal Server Error; look into the log of dcgm-exporter: one field that fails there fails",
        ),
        (page(b""), Reason.NO_GPUS, "answers with an empty page, as dcgm-exporter does that sees no GPU"),
        (page(b"# TYPE DCGM_FI_DEV_GPU_TEMP gauge\n"), Reason.NO_GPUS, "empty page"),
        (
            page(b'DCGM_FI_DEV_CPU_UTIL_TOTAL{cpu="0"} 1\n'),
            Reason.NO_GPUS,
            "is dcgm-exporter's page, but lists no GPU that has a value; look into its log",
        ),
        (
            page(text(DEV_GPU_TEMP=9223372036854775794).encode()),
            Reason.NO_GPUS,
            "lists no GPU that has a value",
        ),
        (
            page(ROOT),
            Reason.NOT_DCGM,
            'HTML page called "GPU Exporter"; check the path of the URL: dcgm-exporter has it at /metrics',
        ),
        (page(b'{"a": 1}'), Reason.NOT_DCGM, "is JSON"),
        (page(b"KO\n"), Reason.NOT_DCGM, "is no metrics page (KO)"),
        (
            page(NVIDIA_GPU_EXPORTER),
            Reason.NOT_DCGM,
            "is the page of nvidia_gpu_exporter, not dcgm-exporter's; set gpus.dcgm to dcgm-exporter's own",
        ),
        (page(NVITOP), Reason.NOT_DCGM, "another GPU exporter, such as nvitop-exporter"),
        (page(NODE), Reason.NOT_DCGM, "page of node_exporter"),
        (page(b"thrashold_source_up 1\n"), Reason.NOT_DCGM, "page of a thrashold sidecar"),
        (page(capture("vllm-0.32.0/113.prom")), Reason.NOT_DCGM, "page of an engine (vllm)"),
        (page(b"a_total 1\nb_total 2\n"), Reason.NOT_DCGM, "something else (a_total, b_total)"),
        (page(b"", "404 Not Found"), Reason.HTTP_STATUS, "404 Not Found; check the path"),
        (page(b"", "401 Unauthorized"), Reason.UNAUTHORISED, "set bearer_token_file or basic_auth"),
        (redirect("https://sso.test/?token=secret"), Reason.REDIRECT, "points to https://sso.test/?...;"),
        (slam, Reason.DISCONNECTED, "look whether dcgm-exporter, or a proxy before it, is restarting"),
        (raw(b"220 mail.test\r\n\r\n"), Reason.NOT_TEXT, "does not speak HTTP"),
        (page(b"\x00\x01"), Reason.NOT_TEXT, "sends no text"),
    ],
)
def test_a_read_that_fails_has_a_reason_and_a_line(behaviour: Behaviour, reason: Reason, says: str) -> None:
    (shown,) = Story().shown(behaviour)
    status = shown.status
    assert (status.answering, status.errors, shown.gpus) == (False, ((reason.value, 1),), ())
    assert says in status.last_error
    assert "engine is" not in status.last_error
    assert "secret" not in status.last_error
    assert "\n" not in status.last_error


def test_nothing_listening_is_told_in_words_for_dcgm_exporter() -> None:
    async def work() -> Observation:
        async with serving(hang) as server:
            port = server.port
        dcgm = source(f"http://127.0.0.1:{port}")
        await dcgm.read_once()
        return dcgm.observe()

    status = run(work()).status
    assert status.errors == (("refused", 1),)
    assert (
        "nothing listens there; look whether dcgm-exporter runs, and check host and port" in status.last_error
    )


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


def test_it_reads_on_ticks_and_logs_changes_only(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        async with serving(page(PAGE)) as server:
            dcgm = source(server.url)
            task = asyncio.create_task(dcgm.run())
            await until(lambda: len(server.requests) > 3)
            server.behaviour = page(b"", "500 Internal Server Error")
            await until(lambda: dict(dcgm.observe().status.errors).get("http_status", 0) > 2)
            server.behaviour = page(PAGE)
            await until(lambda: dcgm.observe().status.answering)
            task.cancel()
            await asyncio.wait([task])

    with caplog.at_level(logging.INFO):
        run(work())
    lines = [record.getMessage() for record in caplog.records if record.name == "exporter.sources.dcgm"]
    assert len(lines) == 3
    assert lines[0].startswith("dcgm: reading 2 GPUs of dcgm-exporter at http://127.0.0.1:")
    assert "answered 500" in lines[1]
    assert "failed reads" in lines[2]


def test_a_page_without_pcie_is_spoken_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """dcgm-exporter#167, #354, #357: fields that are deprecated, or not in the file, are missing without a word."""
    with caplog.at_level(logging.INFO):
        shown = Story().shown(text(DEV_GPU_TEMP=40), text(DEV_GPU_TEMP=41))
    assert [gpu.pcie for each in shown for gpu in each.gpus] == [None, None]
    lines = [record.getMessage() for record in caplog.records if "PCIe" in record.getMessage()]
    assert len(lines) == 1
    assert "DCGM_FI_PROF_PCIE_TX_BYTES" in lines[0]


def test_a_page_with_pcie_is_not(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        Story().shown(PAGE)
    assert not any("nothing of PCIe" in record.getMessage() for record in caplog.records)


def test_an_exporter_that_collects_seldom_is_spoken_of_once(caplog: pytest.LogCaptureFixture) -> None:
    pages = [text(DEV_GPU_TEMP=40 + n // 30) for n in range(120)]
    Story().shown(*pages)
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert line.startswith("dcgm: its numbers moved after 30 s: ")
    assert "--collect-interval 1000" in line
