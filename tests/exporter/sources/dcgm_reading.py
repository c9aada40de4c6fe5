"""What the tests of the dcgm-exporter source share: a source on a server, read again and again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from exporter.gpu_settings import DcgmSettings
from exporter.observation import Observation
from exporter.sources.dcgm import DcgmSource
from tests.exporter.dialects.dcgm_text import fixture
from tests.exporter.sources.reading import HANGING_SECONDS, run
from tests.support.http_servers import Behaviour, hang, page, serving

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
