"""What a source shows the cycle: how the reading goes, and the newest sample."""

from __future__ import annotations

from dataclasses import dataclass

from exporter.gateway_sample import GatewaySample
from exporter.gpu_sample import GpuSample
from exporter.kv_events_sample import KvEventsSample
from exporter.probe_sample import ProbeSample
from exporter.sample import EngineSample
from exporter.snapshot import Value

ENGINE = "engine"
"""The kind of source that a sidecar is there for: it is ready, and exits well, by those alone."""


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """One source at one instant.

    ``answering`` is whether the last read that came to an end succeeded; ``last_at`` the start of
    the newest read that did (seconds since the epoch), None before the first; ``read_seconds`` how
    long that read took; ``errors`` the failures since the sidecar started, by reason;
    ``last_error`` the newest failure in one line, empty while all is well.
    """

    name: str
    kind: str
    answering: bool
    last_at: float | None
    read_seconds: float | None
    errors: tuple[tuple[str, int], ...] = ()
    last_error: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """What one source has to show at one cycle: its status and its newest samples, if any.

    ``gpus`` holds one sample for each GPU the source knows of, those it has lost included; ``kv_events``
    one for each data-parallel rank whose publisher is connected, ``probes`` one for each whose probe is.
    ``own`` is what the source tells of itself beyond its status: values of signals with scope SOURCE, shown as
    they are.
    """

    status: SourceStatus
    engine: EngineSample | None = None
    gpus: tuple[GpuSample, ...] = ()
    kv_events: tuple[KvEventsSample, ...] = ()
    probes: tuple[ProbeSample, ...] = ()
    own: tuple[Value, ...] = ()
    gateway: GatewaySample | None = None
