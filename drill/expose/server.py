"""One vLLM server of the drill: it sees what its engines do, and answers as text or as a sample of the same numbers."""

from __future__ import annotations

from collections.abc import Sequence

from drill.expose import vllm_v0, vllm_v1
from drill.expose.front_end import FrontEnd
from drill.expose.observed import Served
from drill.expose.observed_v0 import ObservedV0
from drill.expose.observed_v1 import ObservedV1
from drill.expose.samples import sample_v0, sample_v1
from drill.serving.config import EngineConfigError, Generation
from drill.serving.step_result import Gauges, StepResult
from exporter.sample import EngineSample


class Server:
    """Before one engine, or before several data-parallel ranks of one (V1). ``gauges``: of each rank at its start.

    ``several_servers``: its front end is several processes (``--api-server-count``). V0's always is one of those.
    Raises EngineConfigError.
    """

    def __init__(self, served: Served, gauges: Sequence[Gauges], *, several_servers: bool = False) -> None:
        self.served = served
        self.front = FrontEnd(served.epoch, served.started_at, several_servers=several_servers)
        self._v0: ObservedV0 | None = None
        self._v1: list[ObservedV1] = []
        if served.config.generation is Generation.V1:
            self._v1 = [ObservedV1(served, each) for each in gauges]
        elif len(gauges) == 1:
            self._v0 = ObservedV0(served, gauges[0])
        else:
            raise EngineConfigError(f"{len(gauges)} ranks asked for: V0 has one, take generation v1")

    def see(self, result: StepResult, gauges: Gauges, rank: int = 0) -> None:
        """What an engine came to, and its gauges after it. To be told of every result, in order."""
        (self._v0 or self._v1[rank]).see(result, gauges)
        self.front.see(result)

    def page(self) -> str:
        """What it would answer on ``/metrics`` now."""
        return vllm_v1.page(self._v1, self.front) if self._v0 is None else vllm_v0.page(self._v0)

    def sample(self, engine: str, at: float, read_seconds: float = 0.0) -> EngineSample:
        """What a sidecar reads in that: of a read that began at ``at`` (seconds since the epoch)."""
        if self._v0 is None:
            return sample_v1(self._v1, self.front, engine, at, read_seconds)
        return sample_v0(self._v0, engine, at, read_seconds)
