"""What can be set on the KV events of one engine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from exporter.settings import RefusedError

KIND = "kv_events"

_ENDPOINT = re.compile(r"tcp://(?P<host>\[[0-9A-Fa-f:.%\w]+\]|[^\s:/\[\]@*]+):(?P<port>[0-9]{1,5})")
_MOST_PORT = 65_535


def source_name(engine: str) -> str:
    """What the source of an engine's events is called, beside the engine's own."""
    return f"{engine}/{KIND}"


@dataclass(frozen=True, slots=True)
class KvEventsSettings:
    """The KV events that an engine publishes over ZeroMQ. May be written as the endpoint alone."""

    shorthand: ClassVar[str] = "endpoint"

    endpoint: Annotated[
        str,
        Meta(
            description="Where the engine publishes, as `tcp://HOST:PORT`: the port of its own"
            " setting, which says `tcp://*:PORT`. Of several ranks, that of the first."
        ),
    ]
    replay_endpoint: Annotated[
        str | None,
        Meta(
            description="Where it hands out again what was missed, as `tcp://HOST:PORT`; the engine's"
            " `replay_endpoint`. Without it what was missed is counted as lost."
        ),
    ] = None
    topic: Annotated[
        str,
        Meta(
            description="Only topics that begin with this are heard; unless set, all. Where it fits none, nothing"
            " is: the signals then stay absent."
        ),
    ] = ""
    ranks: Annotated[
        int,
        Meta(
            ge=1,
            le=256,
            description="How many data-parallel ranks publish, each on a port of its own: both ports rise by one from"
            " rank to rank.",
        ),
    ] = 1

    def __post_init__(self) -> None:
        host, port = _checked("endpoint", self.endpoint, self.ranks)
        if self.replay_endpoint is None:
            return
        replay_host, replay_port = _checked("replay_endpoint", self.replay_endpoint, self.ranks)
        if host == replay_host and abs(port - replay_port) < self.ranks:
            raise RefusedError(
                "replay_endpoint",
                f"its ports and those of endpoint overlap over {self.ranks} ranks, each of which takes the next port",
            )

    def of_rank(self, place: int) -> tuple[str, str | None]:
        """Endpoint and replay endpoint of the rank at ``place``, from 0: the ports rise by one each."""
        return _offset(self.endpoint, place), self.replay_endpoint and _offset(self.replay_endpoint, place)


def _offset(endpoint: str, place: int) -> str:
    base, _, port = endpoint.rpartition(":")
    return f"{base}:{int(port) + place}"


def _checked(key: str, endpoint: str, ranks: int) -> tuple[str, int]:
    """Host and first port of an endpoint, or RefusedError."""
    if endpoint.startswith(("tcp://*:", "tcp://0.0.0.0:", "tcp://[::]:")):
        raise RefusedError(
            key, f"{endpoint!r} is what the engine binds; write the host to connect to in its place"
        )
    found = _ENDPOINT.fullmatch(endpoint)
    if not found:
        raise RefusedError(key, f"{endpoint!r} is not tcp://HOST:PORT")
    port = int(found["port"])
    if not 1 <= port <= _MOST_PORT + 1 - ranks:
        last = f" and rank {ranks - 1} would have {port + ranks - 1}" if ranks > 1 else ""
        raise RefusedError(key, f"ports go from 1 to {_MOST_PORT}, this is {port}{last}")
    return found["host"], port
