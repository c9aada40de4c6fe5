"""Ports of loopback that the stack listens on."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from dataclasses import astuple, dataclass

DRILL_PORTS = 64
"""As many follow the first one: a drill's engines, its gateway and its machines."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Where each part listens; ``drill`` is the first of ``DRILL_PORTS``."""

    sidecar: int = 9807
    desk: int = 9808
    prometheus: int = 9090
    alertmanager: int = 9093
    grafana: int = 3000
    drill: int = 18000

    @classmethod
    def following(cls, base: int) -> Ports:
        """One after the other from ``base`` on."""
        return cls(base, base + 1, base + 2, base + 3, base + 4, base + 5)

    def held(self) -> tuple[int, ...]:
        """Those that somebody listens on already."""
        return held(astuple(self))


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
