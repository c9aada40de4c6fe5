"""Ports of loopback that the stack listens on."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from dataclasses import dataclass

DRILL_PORTS = 64
"""As many follow the first one: a drill's engines, its gateway and its machines."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Where each part listens; ``drill``: the first of ``DRILL_PORTS``; ``gateway_admin``: of its stats."""

    sidecar: int = 9807
    desk: int = 9808
    prometheus: int = 9090
    alertmanager: int = 9093
    grafana: int = 3000
    drill: int = 18000
    gateway: int = 10000
    gateway_admin: int = 9901

    @classmethod
    def following(cls, base: int) -> Ports:
        """One after the other from ``base`` on. A drill brings its gateway: it and one of ours never meet."""
        return cls(base, base + 1, base + 2, base + 3, base + 4, base + 5, base + 5, base + 6)

    def held(self, *, gateway: bool) -> tuple[int, ...]:
        """Those that somebody listens on already; with a ``gateway`` of ours there is no drill."""
        played = (self.gateway, self.gateway_admin) if gateway else (self.drill,)
        return held((self.sidecar, self.desk, self.prometheus, self.alertmanager, self.grafana, *played))


def held(ports: Iterable[int]) -> tuple[int, ...]:
    """Those of these that somebody on this machine listens on already."""
    found = []
    for port in ports:
        with socket.socket() as tried:
            # a port that is only being left, as it is for a minute after a stop, can be had
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                found.append(port)
    return tuple(found)
