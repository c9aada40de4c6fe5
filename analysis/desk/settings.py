"""What can be set on the desk. It asks nobody but those who are named here."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar
from urllib.parse import urlsplit

from msgspec import Meta

from alerts.pack_settings import DESK
from exporter.connection_settings import ConnectionSettings, Text, settle
from exporter.recorder_api import PATH as RECORDER_PATH
from exporter.settings import RefusedError

_Url = Annotated[str, Meta(pattern=r"^https?://[^\s@]+$")]
DEFAULT_LISTEN = DESK.removeprefix("http://")


@dataclass(frozen=True, slots=True)
class RecorderPageSettings(ConnectionSettings):
    """A sidecar's flight recorder. May be written as the sidecar's URL alone."""

    shorthand: ClassVar[str] = "url"

    url: Annotated[str, Meta(description="The sidecar, with `http://` or `https://` and no path.")]
    deadline_seconds: Annotated[
        float, Meta(gt=0, le=3600, description="Seconds for the whole range to come.")
    ] = 120.0
    max_body_bytes: Annotated[
        int, Meta(ge=1024, le=1 << 30, description="The most bytes a range may have, unpacked.")
    ] = 512 * 1024 * 1024

    def __post_init__(self) -> None:
        settle(self, RECORDER_PATH)


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """A sidecar and the engines that it reads. May be written as the sidecar's URL alone."""

    shorthand: ClassVar[str] = "sidecar"

    sidecar: Annotated[
        RecorderPageSettings,
        Meta(description="Its sidecar, whose flight recorder is read around an incident."),
    ]
    engines: Annotated[
        tuple[Text, ...],
        Meta(
            description="The engines that it reads, as the label `engine` of their alerts has them. Unless set, it is"
            " asked about every incident."
        ),
    ] = ()
    triage: Annotated[
        _Url | None, Meta(description="The engine itself, for a triage at once. Unless set, none.")
    ] = None

    @property
    def name(self) -> str:
        """What people are told of it as."""
        return ", ".join(self.engines) or urlsplit(self.sidecar.url).netloc


@dataclass(frozen=True, slots=True)
class GrafanaSettings(ConnectionSettings):
    """A Grafana that incidents are marked in. May be written as its URL alone."""

    shorthand: ClassVar[str] = "url"

    url: Annotated[str, Meta(description="Grafana, with `http://` or `https://` and no path.")]

    def __post_init__(self) -> None:
        settle(self, "/api/annotations")


@dataclass(frozen=True, slots=True)
class DeskSettings:
    """``thrashold desk --config FILE``. Raises RefusedError."""

    listen: Annotated[
        str,
        Meta(description="Where to serve, as HOST:PORT. Loopback unless set, as incidents tell of users."),
    ] = DEFAULT_LISTEN
    data: Annotated[
        Path,
        Meta(description="The folder that incidents, recordings and reports are kept in; made if need be."),
    ] = field(default=Path("desk"), metadata={"written": True})
    web_config: Annotated[
        Path | None,
        Meta(description="TLS and passwords, in the file that Prometheus's exporters take (`web.yml`)."),
    ] = None
    webhook_token_file: Annotated[
        Path | None,
        Meta(
            description="A file that holds the bearer token that Alertmanager sends. Needed where others than this"
            " machine can reach the desk and there are no passwords."
        ),
    ] = None
    open_pages: Annotated[
        bool,
        Meta(
            description="Whether others than this machine may read incidents, close them and ask for reports without a"
            " password: where something else says who reaches the desk."
        ),
    ] = False
    host_names: Annotated[
        tuple[Text, ...],
        Meta(
            description="Names under which it may be asked for, without a port; other ones are refused. Loopback's own"
            " unless it listens for others too, then any."
        ),
    ] = ()
    cluster_labels: Annotated[
        tuple[Text, ...], Meta(description="Labels that tell clusters apart: an incident is of one of them.")
    ] = ("cluster",)
    workers: Annotated[
        tuple[WorkerSettings, ...], Meta(description="Workers whose flight recorders can be read.")
    ] = ()
    prometheus: Annotated[
        _Url | None,
        Meta(description="A Prometheus-compatible server: history of what no recorder in `workers` holds."),
    ] = None
    grafana: Annotated[
        GrafanaSettings | None, Meta(description="A Grafana to mark incidents in. Unless set, none.")
    ] = None
    look_back_seconds: Annotated[
        float,
        Meta(
            ge=300, le=86_400, description="How much before its first alert belongs to an incident's history."
        ),
    ] = 3600.0
    report_again_seconds: Annotated[
        float,
        Meta(
            ge=10,
            le=86_400,
            description="While an incident goes on, its report is made anew when it has gone on for twice as long as at"
            " the last one: so soon at the earliest, and at least each hour.",
        ),
    ] = 300.0
    report_hours: Annotated[
        float,
        Meta(
            ge=1,
            le=48,
            description="How much of an incident a report looks at, from its first alert on: a longer one is told by"
            " how it began.",
        ),
    ] = 6.0
    join_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=86_400,
            description="An alert so soon after the end of its cluster's last incident goes on with it.",
        ),
    ] = 900.0
    keep_days: Annotated[
        float,
        Meta(
            gt=0, le=3650, description="After so many days an incident that is over goes, with all its files."
        ),
    ] = 90.0

    def __post_init__(self) -> None:
        known: set[str] = set()
        for place, worker in enumerate(self.workers):
            for name in worker.engines:
                if name in known:
                    raise RefusedError(("workers", place, "engines"), f"{name} is there twice")
                known.add(name)
