"""Which sources the settings ask for. What nobody asked for is not loaded: it would take memory from everyone."""
# ruff: noqa: PLC0415 - loaded where it is asked for

from __future__ import annotations

from collections.abc import Callable

from exporter.sidecar_settings import SidecarSettings
from exporter.sources.engine import EngineSource
from exporter.sources.gpus import gpu_sources
from exporter.sources.source import Source


def configured_sources(settings: SidecarSettings, clock: Callable[[], float]) -> list[Source]:
    """All of them, engines first."""
    interval = settings.interval_seconds
    sources: list[Source] = [EngineSource(engine, clock, interval) for engine in settings.engines]
    sources += gpu_sources(settings.gpus, clock, interval)
    for engine in settings.engines:
        if engine.kv_events:
            from exporter.sources.kv_events import KvEventsSource

            sources.append(KvEventsSource(engine.name, engine.kv_events, clock))
        if engine.probe:
            from exporter.sources.probe import ProbeSource

            sources.append(ProbeSource(engine.name, engine.probe, clock))
    if settings.gateways:
        from exporter.sources.gateway import GatewaySource

        sources += [GatewaySource(gateway, clock, interval) for gateway in settings.gateways]
    return sources
