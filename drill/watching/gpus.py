"""The GPUs of one engine's machine as a sampler shows them, lost and hidden ones included."""

from __future__ import annotations

from collections.abc import Sequence

from drill.gpu import Gpus
from drill.gpu_work import Work
from drill.scenarios.scene import Blindness
from drill.second import EngineSecond
from drill.serving.config import EngineConfig
from exporter.gpu_sample import GpuSample
from exporter.observation import Observation, SourceStatus
from exporter.pcie import HEADER_FACTOR
from exporter.sampler.reasons import Reason

FALLEN_OFF_THE_BUS = 79
"""The driver's XID for it."""


class WatchedGpus:
    """Of ``engine``; ``shown``: how many of them a sidecar reads, None: all."""

    def __init__(  # noqa: PLR0913, PLR0917 -- where they are, and what hides them
        self,
        engine: str,
        config: EngineConfig,
        epoch: float,
        node: int,
        shown: int | None = None,
        blindness: Sequence[Blindness] = (),
    ) -> None:
        self.name = f"nvml {engine}"
        self.gpus = Gpus(config, epoch, node)
        self._shown = shown
        self._epoch = epoch
        self._blindness = blindness
        self._hangs: tuple[tuple[str, int], ...] = ()
        self._lost: dict[int, float] = {}
        self._samples: tuple[GpuSample, ...] = self.gpus.samples(shown)
        self._last_at = epoch

    @property
    def uuids(self) -> tuple[str, ...]:
        """Of those that are shown."""
        return tuple(sample.identity.uuid for sample in self.gpus.samples(self._shown))

    def see(self, second: EngineSecond, now: float) -> None:
        """What the engine did to them until ``now``."""
        activity = second.activity
        foreign = activity.foreign_bytes * HEADER_FACTOR
        for tenant in self.gpus.tenants:
            tenant.in_bytes_per_second = tenant.out_bytes_per_second = foreign
        self.gpus.config = second.config
        self.gpus.tick(
            Work(
                activity.to_device_bytes,
                activity.to_host_bytes,
                activity.nvlink_bytes,
                activity.sm_busy_seconds + activity.collective_seconds,
                activity.sm_busy_seconds,
                activity.memory_busy_seconds,
            ),
            now,
        )
        for index in second.gpus_lost:
            self._lost.setdefault(index, now)

    def observe(self, now: float) -> Observation:
        """What the source shows at ``now``: samples of a hung driver grow stale."""
        if any(each.start_seconds <= now < each.end_seconds for each in self._blindness):
            begun = sum(each.start_seconds <= now for each in self._blindness)
            self._hangs = ((Reason.HUNG, begun),)
            status = SourceStatus(
                self.name, "nvml", False, self._last_at, 0.0, self._hangs, "a driver call hangs"
            )
            return Observation(status, gpus=self._samples)
        samples = self.gpus.samples(self._shown)
        self._samples = tuple(self._told(index, sample) for index, sample in enumerate(samples))
        self._last_at = self._epoch + now
        return Observation(
            SourceStatus(self.name, "nvml", True, self._last_at, 0.001, self._hangs),
            gpus=self._samples,
        )

    def _told(self, index: int, sample: GpuSample) -> GpuSample:
        since = self._lost.get(index)
        if since is None:
            return sample
        return GpuSample(
            sample.at,
            sample.identity,
            up=False,
            down_because=Reason.GPU_LOST,
            reader_started_at=sample.reader_started_at,
            xids_total=((FALLEN_OFF_THE_BUS, 1.0),),
            xid_last_at=self._epoch + since,
        )
