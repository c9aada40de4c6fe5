"""A dcgm-exporter read over HTTP: what is shown of its GPUs, and what of reads that fail."""

from __future__ import annotations

import asyncio
import logging

import pytest

from exporter.observation import Observation
from exporter.sources.failure import Reason
from exporter.sources.source import Source
from tests.exporter.dialects.dcgm_text import fixture, text
from tests.exporter.sources.dcgm_reading import PAGE, Story, source
from tests.exporter.sources.reading import run, until
from tests.support.captures import fixture as capture
from tests.support.http_servers import Behaviour, hang, page, raw, redirect, serving, slam


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
        (page(b"", "404 Not Found"), Reason.HTTP_STATUS, "path of the URL: dcgm-exporter has it at /metrics"),
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
