"""A gateway's source: what it reads, and what it says of pages that are no gateway's."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import pytest

from exporter.gateway_settings import GatewaySettings
from exporter.observation import Observation
from exporter.sources.gateway import GatewaySource
from tests.exporter.sources.reading import HANGING_SECONDS, PAGE, run
from tests.support.captures import fixture
from tests.support.gateways import ended, envoy_page, written
from tests.support.http_servers import Behaviour, hang, page, redirect, serving

ENVOY = envoy_page("whole/09-left")


def source(url: str, *, clock: Callable[[], float] = time.time, **settings: Any) -> GatewaySource:  # noqa: ANN401 - any setting
    return GatewaySource(
        GatewaySettings(url, **{"deadline_seconds": HANGING_SECONDS, "name": "g", **settings}), clock, 0.05
    )


def read(*behaviours: Behaviour | bytes, **settings: Any) -> list[Observation]:  # noqa: ANN401 - any setting
    """One source and one server whose page is exchanged from read to read."""

    async def work() -> list[Observation]:
        found = []
        async with serving(hang) as server:
            gateway = source(server.url, **settings)
            for each in behaviours:
                server.behaviour = page(each) if isinstance(each, bytes) else each
                await gateway.read_once()
                found.append(gateway.observe())
        return found

    return run(work())


def refused(*behaviours: Behaviour | bytes, **settings: Any) -> tuple[str, str]:  # noqa: ANN401 - any setting
    """The reason and the line of the last read, which failed."""
    status = read(*behaviours, **settings)[-1].status
    assert not status.answering
    assert len(status.last_error.splitlines()) == 1
    return status.errors[-1][0], status.last_error


def test_reads_envoy_and_litellm_by_what_is_on_the_page() -> None:
    envoy, litellm = read(ENVOY, written("litellm-1.110"))
    assert envoy.gateway is not None
    assert (envoy.gateway.kind, envoy.gateway.gateway, envoy.status.kind) == ("envoy", "g", "gateway")
    assert ended(envoy.gateway)["rejected"] == 4
    assert litellm.gateway is not None
    assert (litellm.gateway.kind, litellm.gateway.inflight) == ("litellm", 7)


def test_a_sample_bears_the_time_its_request_began() -> None:
    (observation,) = read(ENVOY, clock=lambda: 77.0)
    assert observation.gateway is not None
    assert (observation.gateway.at, observation.status.last_at) == (77.0, 77.0)


def test_a_read_that_fails_leaves_the_last_sample() -> None:
    first, second = read(ENVOY, page(b"", "503 Service Unavailable"))
    assert second.gateway is first.gateway is not None
    assert second.status.errors == (("http_status", 1),)
    assert "look into the log of the gateway" in second.status.last_error


def test_one_that_hangs_is_given_up() -> None:
    reason, line = refused(hang, deadline_seconds=0.1)
    assert reason == "timeout"
    assert "look whether the gateway is overloaded or hangs" in line


def test_a_path_that_is_not_there_and_one_that_points_elsewhere() -> None:
    assert refused(page(b"no", "404 Not Found"))[1].endswith(
        "answered 404 Not Found; check the path of the URL: Envoy has it at /stats/prometheus, LiteLLM at /metrics/"
    )
    reason, line = refused(redirect("http://127.0.0.1:4000/metrics/"))
    assert reason == "redirect"
    assert "points to http://127.0.0.1:4000/metrics/" in line


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (PAGE, "auto", "is the page of an engine (vllm); list it under engines"),
        (
            fixture("vllm-0.32.0/000.prom") or PAGE,
            "envoy",
            "is the page of an engine (vllm); list it under engines",
        ),
        (written("litellm-1.110"), "envoy", "is the page of litellm, and the gateway's kind is set to envoy"),
        (ENVOY, "litellm", "is the page of envoy, and the gateway's kind is set to litellm"),
        (b"thrashold_source_up 1\n", "auto", "is the page of a thrashold sidecar"),
        (b'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-1"} 1\n', "auto", "is the page of dcgm-exporter"),
        (b"python_info 1\nprocess_cpu_seconds_total 3\n", "auto", "LiteLLM needs callbacks: [prometheus]"),
        (b"node_load1 1\n", "auto", "is a metrics page of something else (node_load1)"),
        (b"", "auto", "answers with a page without a value"),
        (b"# TYPE envoy_cluster_upstream_rq counter\n", "auto", "answers with a page without a value"),
        (b"<html><title>Envoy Admin</title></html>", "auto", 'is an HTML page called "Envoy Admin"'),
        (b'{"stats": []}', "auto", "is JSON"),
        (b"cluster.engine.upstream_rq_total: 5\n", "auto", "is no metrics page"),
    ],
)
def test_a_foreign_page_is_named(body: bytes, kind: str, said: str) -> None:
    reason, line = refused(body, kind=kind)
    assert reason == "not_a_gateway"
    assert said in line


def test_several_clusters_are_one_clear_line_and_settings_help() -> None:
    both = envoy_page("services/02-both-busy")
    reason, line = refused(both)
    assert reason == "ambiguous"
    assert "sends requests to 2 clusters (engines, index); set the gateway's cluster" in line
    (observation,) = read(both, cluster="engines", listener="chat")
    assert observation.gateway is not None
    assert ended(observation.gateway) == {"ok": 3}


def test_what_stays_absent_for_want_of_a_setting_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    both = envoy_page("services/02-both-busy")
    with caplog.at_level(logging.WARNING, "exporter.sources"):
        read(both, both, cluster="engines")
    assert len(caplog.messages) == 1
    assert "sends requests to other clusters too" in caplog.messages[0]


def test_lines_that_cannot_be_read_are_noted() -> None:
    (observation,) = read(ENVOY + b"envoy_cluster_upstream_rq_total{ 1\n")
    assert observation.gateway is not None
    assert observation.gateway.notes == ("unreadable_lines",)
