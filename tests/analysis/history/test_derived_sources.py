"""Engine, dcgm-exporter and gateway together: the sidecar's own sources over HTTP against history without one."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis.frame import Key
from analysis.history.reading import read
from exporter.cycle import CycleSettings, initial, step
from exporter.derive.inventory import ENGINE_GPU_INFO
from exporter.derive.orphans import ORPHANS
from exporter.derive.phenomenon import EngineFacts
from exporter.engine_settings import EngineSettings
from exporter.gateway_settings import GatewaySettings
from exporter.gpu_settings import DcgmSettings
from exporter.signal import Scope
from exporter.snapshot import Snapshot
from exporter.source_signals import BUILD_INFO, SIGNAL_INFO
from exporter.sources.dcgm import DcgmSource
from exporter.sources.engine import EngineSource
from exporter.sources.gateway import GatewaySource
from tests.exporter.dialects.dcgm_text import fixture
from tests.support.dumps import Scrape, Scraped, dump, scrapes_of
from tests.support.gateways import envoy_names, envoy_page
from tests.support.http_servers import page, serving
from tests.support.pages import advanced

ENGINE, GPUS, GATEWAY = "10.0.0.1:8000", "10.0.0.9:9400", "envoy:9901"
FIRST_GPU = "GPU-5a1f0c3e-1111-4a5b-9c6d-000000000000"
START = 1_796_000_000.0


@dataclass(slots=True)
class Clock:
    now: float = START

    def __call__(self) -> float:
        return self.now


def seconds() -> list[tuple[bytes, bytes, bytes]]:
    """What the three showed, second by second; the gateway stays at each of its pages for some of them."""
    engine = [scrape.body or b"" for scrape in scrapes_of("vllm-0.32.0-oracle")]
    gateway = [name for name in envoy_names() if name.startswith("whole/")]
    return [
        (
            body,
            advanced(fixture("h100.prom"), place),
            envoy_page(gateway[place * len(gateway) // len(engine)]),
        )
        for place, body in enumerate(engine)
    ]


async def lived() -> list[Snapshot]:
    """A sidecar's cycles over them, read as a sidecar reads."""
    clock = Clock()
    snapshots = []
    async with contextlib.AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(serving(page(b""))) for _ in range(3)]
        sources = (
            EngineSource(EngineSettings(servers[0].url, name=ENGINE), clock, 1.0),
            DcgmSource(DcgmSettings(servers[1].url), clock, 1.0),
            GatewaySource(GatewaySettings(servers[2].url, name=GATEWAY), clock, 1.0),
        )
        state = initial(CycleSettings({ENGINE: EngineFacts(gpus=(FIRST_GPU,))}))
        for place, bodies in enumerate(seconds()):
            clock.now = START + place
            for server, source, body in zip(servers, sources, bodies, strict=True):
                server.behaviour = page(body)
                await source.read_once()
            state, snapshot = step(state, clock.now, [source.observe() for source in sources])
            assert not snapshot.failures
            snapshots.append(snapshot)
    return snapshots


def test_all_sources_together_give_what_a_sidecar_that_read_them_said(tmp_path: Path) -> None:
    whole = seconds()

    def scraped(place: int, **labels: str) -> Scraped:
        return Scraped(
            labels, [Scrape(START + second, 0.0, bodies[place]) for second, bodies in enumerate(whole)]
        )

    file = tmp_path / "raw.om"
    file.write_text(
        dump(
            # the pod that dcgm-exporter says uses the first GPU
            scraped(0, instance=ENGINE, job="vllm", namespace="serving", pod="worker-0"),
            scraped(1, instance=GPUS, job="dcgm", namespace="gpu-operator", pod="dcgm-exporter-x"),
            scraped(2, instance=GATEWAY, job="envoy"),
        )
    )
    frame = read(str(file)).frame
    snapshots = asyncio.run(lived())
    assert frame.times.tolist() == [snapshot.at for snapshot in snapshots]
    told = set()
    for snapshot, row in zip(snapshots, frame.values, strict=True):
        live = {
            Key.of(
                value.signal.full_name, dict(zip(value.signal.label_names, value.labels, strict=True))
            ): value.value
            for value in snapshot.values
            if not value.is_peak and value.signal not in {SIGNAL_INFO, BUILD_INFO}
        }
        ours = {key: float(value) for key, value in zip(frame.keys, row, strict=True) if not np.isnan(value)}
        assert ours == live
        told |= {value.signal for value in snapshot.values}
    assert {signal.scope for signal in told} == set(Scope)
    assert {ENGINE_GPU_INFO, ORPHANS} <= told  # what needs two of the three
