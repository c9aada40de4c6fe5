"""Which sources read GPUs: the one place that decides it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from exporter.gpu_settings import GpuSettings
from exporter.sources.linker import can_be_linked
from exporter.sources.source import Source

NVML_LIBRARY = "libnvidia-ml.so.1"

logger = logging.getLogger(__name__)


def gpu_sources(settings: GpuSettings, clock: Callable[[], float], interval_seconds: float) -> list[Source]:
    """The sources that ``settings`` ask for. Where several tell of a GPU, the first goes first."""
    sources: list[Source] = []
    if settings.nvml == "always" or (settings.nvml == "auto" and can_be_linked(NVML_LIBRARY)):
        from exporter.sources.nvml import NvmlSource  # noqa: PLC0415 - not on every machine

        sources.append(NvmlSource(settings, clock))
    if settings.dcgm is not None:
        from exporter.sources.dcgm import DcgmSource  # noqa: PLC0415 - where it is asked for

        sources.append(DcgmSource(settings.dcgm, clock, interval_seconds))
    if not sources and settings.nvml == "auto":
        logger.info("no GPUs are read: %s is not on this machine", NVML_LIBRARY)
    return sources
