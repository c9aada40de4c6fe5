"""What can be set on the sidecar: where it listens, how often it looks, and the engines it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

from msgspec import Meta

from exporter.engine_settings import EngineSettings, probe_source_name
from exporter.gateway_settings import GatewaySettings
from exporter.gpu_settings import GpuSettings
from exporter.kv_events_settings import source_name
from exporter.sample import STALE_AFTER_SECONDS
from exporter.settings import RefusedError

DEFAULT_LISTEN = "127.0.0.1:9807"
TRIAGE_VARIABLES = ("THRASHOLD_SIDECAR_USER", "THRASHOLD_SIDECAR_PASSWORD_FILE")
"""What ``thrashold triage`` reads: set in a sidecar's container, they are none of its own misspelt."""
INTERVALS_SECONDS = (0.5, 5.0)
"""The shortest and the longest time between two reads."""


@dataclass(frozen=True, slots=True)
class RecorderSettings:
    """The flight recorder: every signal of every cycle, in one SQLite file."""

    shorthand: ClassVar[str] = "path"

    path: Annotated[
        Path,
        Meta(description="Where to record; made where it is not there yet, gone on with where it is."),
    ] = field(metadata={"written": True})
    keep_hours: Annotated[
        float, Meta(gt=0, le=10_000, description="What is older goes, minute by minute.")
    ] = 48.0
    max_bytes: Annotated[
        int,
        Meta(
            ge=8 << 20,
            le=1 << 44,
            description="What the recording may take on disk: beyond that the oldest goes, however new it is. A day of"
            " one engine takes some tens of MB.",
        ),
    ] = 256 << 20


@dataclass(frozen=True, slots=True)
class SidecarSettings:
    """The sidecar as a whole."""

    listen: Annotated[
        str,
        Meta(
            description="Where to serve, as HOST:PORT or [IPV6]:PORT. No host means all addresses of this machine,"
            " port 0 one that the system chooses. Loopback unless set: an engine's metrics tell of its users' traffic,"
            " so opening them is a decision."
        ),
    ] = DEFAULT_LISTEN
    interval_seconds: Annotated[
        float,
        Meta(
            description=f"Seconds between two reads, from {INTERVALS_SECONDS[0]:g} to {INTERVALS_SECONDS[1]:g}. Spikes"
            " of preemption last seconds; reading once a second costs an engine some 2 ms each."
        ),
    ] = 1.0
    web_config: Annotated[
        Path | None,
        Meta(
            description="TLS and basic auth of the sidecar's own pages, in [a file of its own](#the-web-config)."
        ),
    ] = None
    recorder: Annotated[
        RecorderSettings | None, Meta(description="Where every signal is recorded, if anywhere.")
    ] = None
    gpus: Annotated[GpuSettings, Meta(description="How the GPUs of this machine are read.")] = GpuSettings()
    gateways: Annotated[
        tuple[GatewaySettings, ...],
        Meta(
            description="The gateways before the engines to read, if any. In the variable, URLs with commas between."
        ),
    ] = field(default=(), metadata={"flag": "--gateway"})
    engines: Annotated[
        tuple[EngineSettings, ...],
        Meta(
            description="The engines to read; at least one is needed, here or otherwise. In the variable, URLs with"
            " commas between."
        ),
    ] = field(default=(), metadata={"flag": "--engine"})

    def __post_init__(self) -> None:
        try:
            parse_address(self.listen)
        except ValueError as error:
            raise RefusedError("listen", str(error)) from error
        least, most = INTERVALS_SECONDS
        if not least <= self.interval_seconds <= most:  # not a number is refused as well
            raise RefusedError(
                "interval_seconds",
                f"{self.interval_seconds:g} is not within {least:g} to {most:g} s: rarer, the windows of 10 s hold"
                f" too few reads, and numbers, which vanish after {STALE_AFTER_SECONDS:g} s, come and go; more often,"
                " the reads load the engine and tell no more",
            )
        first: dict[str, int] = {}
        for place, engine in enumerate(self.engines):
            if engine.name in first:
                raise RefusedError(
                    ("engines", place),
                    f"the name {engine.name} is already that of engines[{first[engine.name]}];"
                    " give one of them another name",
                )
            first[engine.name] = place
        for place, engine in enumerate(self.engines):
            if engine.kv_events and source_name(engine.name) in first:
                raise RefusedError(
                    ("engines", first[source_name(engine.name)]),
                    f"the name {source_name(engine.name)} is that of the KV events of engines[{place}];"
                    " give it another",
                )
        self._refuse_shared_probes(first)
        self._check_gateways(first)

    def _refuse_shared_probes(self, first: dict[str, int]) -> None:
        sockets: dict[Path, int] = {}
        for place, engine in enumerate(self.engines):
            if engine.probe is None:
                continue
            if engine.probe in sockets:
                raise RefusedError(
                    ("engines", place, "probe"),
                    f"{engine.probe} is already that of engines[{sockets[engine.probe]}]; each engine needs its own",
                )
            sockets[engine.probe] = place
            if probe_source_name(engine.name) in first:
                raise RefusedError(
                    ("engines", first[probe_source_name(engine.name)]),
                    f"the name {probe_source_name(engine.name)} is that of the probe of engines[{place}];"
                    " give it another",
                )

    def _check_gateways(self, engines: Mapping[str, int]) -> None:
        taken = {name: f"engines[{place}]" for name, place in engines.items()}
        for place, gateway in enumerate(self.gateways):
            if gateway.name in taken:
                raise RefusedError(
                    ("gateways", place),
                    f"the name {gateway.name} is already that of {taken[gateway.name]};"
                    " give one of them another name",
                )
            taken[gateway.name] = f"gateways[{place}]"
            for at, name in enumerate(gateway.engines or ()):
                if engines and name not in engines:
                    raise RefusedError(
                        ("gateways", place, "engines", at),
                        f"no engine is called {name}; known here: {', '.join(sorted(engines))}",
                    )


def parse_address(text: str) -> tuple[str, int]:
    """Split ``HOST:PORT`` or ``[IPV6]:PORT``. No host means all of them; port 0 lets the system choose.

    Raises ValueError with a one-line text.
    """
    host, colon, port_text = text.rpartition(":")
    if not colon or (":" in host and not (host.startswith("[") and host.endswith("]"))):
        meant = "an IPv6 host goes in brackets, as in [::1]:8000"
        if text.isascii() and text.isdigit():
            meant = f"did you mean 127.0.0.1:{text}, or :{text} for all addresses of this machine?"
        raise ValueError(f"{text!r} is not HOST:PORT; {meant}")
    if not (port_text.isascii() and port_text.isdigit() and int(port_text) <= 65_535):  # noqa: PLR2004
        raise ValueError(f"port {port_text!r} is not a number from 0 to 65535")
    host = host.strip("[]")
    if any(character.isspace() for character in host):
        raise ValueError(f"{text!r} is not HOST:PORT")
    return host, int(port_text)
