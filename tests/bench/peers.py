"""Other people's monitors of vLLM that run where ours does, each at one release.

THRASHOLD_BENCH_PEERS=no leaves them out.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tests.bench import report
from tests.bench.environments import CannotInstallError, Environment
from tests.bench.processes import InTerminal


@dataclass(frozen=True, slots=True)
class Peer:
    """A monitor: its package, and the command that has it read an engine once a second."""

    name: str
    release: str
    script: str
    arguments: tuple[str, ...]

    @property
    def environment(self) -> Environment:
        """What it runs in: itself and what it needs."""
        return Environment(self.name, (f"{self.name}=={self.release}",))

    def start(self, port: int, home: Path) -> InTerminal:
        """Have it read the engine on loopback's ``port``; what it keeps, it keeps in ``home``. Raises OSError."""
        arguments = [each.format(port=port, home=home) for each in self.arguments]
        variables = {"PATH": os.environ.get("PATH", ""), "HOME": str(home), "LANG": "C.UTF-8"}
        return InTerminal([str(self.environment.command(self.script)), *arguments], variables, home)


PEERS = (
    Peer("vllmstat", "0.9.1", "vllmstat", ("-u", "http://127.0.0.1:{port}", "-i", "1", "--no-gpu")),
    Peer(
        "vllm-mon",
        "0.1.0",
        "vllm-dash",
        ("--url", "http://127.0.0.1:{port}", "--interval", "1", "--db", "{home}/metrics.db"),
    ),
    Peer("vllm-top", "0.1.2", "vllm-top", ("--host", "127.0.0.1", "--port", "{port}", "--interval", "1")),
)

LEFT_OUT = {
    "vllm-metrics-monitor": "it listens on all addresses and can't be told not to",
    "vllmpytop": "it needs an NVIDIA driver",
    "vllm-htop": "three of its kind are enough",
}


NVITOP = Environment("nvitop-exporter", ("nvitop-exporter==1.7.2",))
"""A monitor of GPUs alone, on Prometheus' page, refreshed each second."""


def nvitop() -> Path | None:
    """Its command, installed where it isn't yet; None, said loudly, where it can't be had."""
    if os.environ.get("THRASHOLD_BENCH_PEERS") == "no":
        report.loud("no nvitop-exporter beside us: THRASHOLD_BENCH_PEERS=no")
        return None
    try:
        NVITOP.install()
    except CannotInstallError as error:
        report.loud(f"peer {NVITOP.name} can't be had: {error}")
        return None
    return NVITOP.command(NVITOP.name)


def installed() -> list[Peer]:
    """The peers that are here, installed where they aren't yet; who can't be had is named, loudly."""
    for name, reason in LEFT_OUT.items():
        report.line(f"  peer {name} is not measured: {reason}")
    if os.environ.get("THRASHOLD_BENCH_PEERS") == "no":
        report.loud("no peers beside us: THRASHOLD_BENCH_PEERS=no")
        return []
    found = []
    for peer in PEERS:
        try:
            peer.environment.install()
        except CannotInstallError as error:
            report.loud(f"peer {peer.name} can't be had: {error}")
        else:
            found.append(peer)
    return found
