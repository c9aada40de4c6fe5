"""A port for each engine, for the gateway and for each machine's dcgm-exporter, and what is on them now."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus

from drill.expose.stalls import Stalls
from drill.scenarios.scene import Scene
from drill.showing.pages import Pages
from drill.showing.port import Answer, Port

METRICS, STATS = "/metrics", "/stats/prometheus"
GATEWAY, ALL_GPUS = "gateway", "GPUs of all machines"
_OTHER_PORTS, _OTHER_HOST = (
    "give another --port-base, or 0 for free ones",
    "give --host an address of this machine",
)


class CantListenError(Exception):
    """An address that can't be had: which, why, and what would do."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where something is to be read. ``title`` is for people."""

    title: str
    url: str


class Stage:
    """The ports of a scene. Engines come first, then the gateway, the GPUs of all machines, and those of each machine.

    ``port_base``: the first one's port, 0 takes free ones. ``speed``: how many seconds of the drill a second is; late
    answers come so much sooner. Raises CantListenError.
    """

    def __init__(self, scene: Scene, host: str, port_base: int, *, speed: float, seed: int) -> None:
        self._speed = speed
        self._now: Pages | None = None
        self._stalls = {name: Stalls(seed * 1009 + place) for place, name in enumerate(scene.servers)}
        self._ports: list[tuple[str, str, Port]] = []
        self._engines: dict[str, Port] = {}
        asked: list[tuple[str, str, Callable[[Pages], Awaitable[bytes]]]] = [
            *((f"engine {name}", METRICS, self._engine(name)) for name in scene.servers),
            (GATEWAY, STATS, _at_once(lambda pages: pages.gateway)),
            (ALL_GPUS, METRICS, _at_once(lambda pages: pages.all_machines)),
            *((f"GPUs of {name}", METRICS, _at_once(_machine(name))) for name in scene.names),
        ]
        for place, (title, path, page) in enumerate(asked):
            wanted = port_base + place if port_base else 0
            try:
                port = Port(host, wanted, self._handler(path, page))
            except (OSError, OverflowError) as error:
                self.close()
                reason = getattr(error, "strerror", None) or error
                foreign = (
                    isinstance(error, socket.gaierror) or getattr(error, "errno", None) == errno.EADDRNOTAVAIL
                )
                advice = _OTHER_HOST if foreign else _OTHER_PORTS
                raise CantListenError(
                    f"can't listen on {host}:{wanted} ({title}): {reason}; {advice}"
                ) from error
            self._ports.append((title, path, port))
        self._engines = {
            name: port
            for name, (_, _, port) in zip(scene.servers, self._ports[: len(scene.servers)], strict=True)
        }

    @property
    def addresses(self) -> list[Address]:
        """All of them, in their order."""
        return [Address(title, port.url + path) for title, path, port in self._ports]

    def url(self, title: str) -> str:
        """Of one of them."""
        return next(each.url for each in self.addresses if each.title == title)

    def engine_url(self, name: str) -> str:
        """Of an engine's metrics."""
        return self._engines[name].url + METRICS

    async def show(self, pages: Pages) -> None:
        """Let them answer with these from now on, and who is dead refuse. Raises OSError."""
        self._now = pages
        for name, port in self._engines.items():
            if pages.engines[name] is None:
                port.close()
            else:
                await port.open()
        for _, _, port in self._ports[len(self._engines) :]:
            await port.open()

    def close(self) -> None:
        """Let go of all ports."""
        for _, _, port in self._ports:
            port.release()

    def _handler(
        self, path: str, page: Callable[[Pages], Awaitable[bytes]]
    ) -> Callable[[str], Awaitable[Answer]]:
        async def handle(asked: str) -> Answer:
            if asked != path:
                return Answer(HTTPStatus.NOT_FOUND, f"the metrics are at {path}\n".encode())
            if self._now is None:
                return Answer(HTTPStatus.SERVICE_UNAVAILABLE, b"nothing has happened yet\n")
            return Answer(HTTPStatus.OK, await page(self._now))

        return handle

    def _engine(self, name: str) -> Callable[[Pages], Awaitable[bytes]]:
        """Late as a real one, with what is so when the answer is given."""

        async def page(pages: Pages) -> bytes:
            await asyncio.sleep(self._stalls[name].seconds(busy=name in pages.busy) / self._speed)
            return (self._now or pages).engines[name] or b""

        return page


def _at_once(read: Callable[[Pages], bytes]) -> Callable[[Pages], Awaitable[bytes]]:
    async def page(pages: Pages) -> bytes:
        return read(pages)

    return page


def _machine(name: str) -> Callable[[Pages], bytes]:
    return lambda pages: pages.machines[name]
