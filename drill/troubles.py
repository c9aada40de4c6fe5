"""What is wrong with an engine's machine, and what its times become of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from drill.serving.config import EngineConfig
from drill.serving.host_copies import PAYLOAD_RATIO, PageCopies, PieceCopies
from drill.serving.roofline import Roofline

_LEAST_LINK_RATIO = 0.02
"""Of a link, left to the engine by whoever else is on it: a root complex serves all its ports in turn."""


@dataclass(frozen=True, slots=True)
class Troubles:
    """None, at first.

    ``collective_slowdown``: how many times longer all-reduces take; ``foreign_bytes_per_second``: what another tenant
    moves over each GPU's PCIe link, in each direction.
    """

    collective_slowdown: float = 1.0
    foreign_bytes_per_second: float = 0.0

    def __post_init__(self) -> None:
        if not self.collective_slowdown >= 1.0 or not self.foreign_bytes_per_second >= 0.0:
            raise ValueError(
                f"collectives {self.collective_slowdown} times as slow, {self.foreign_bytes_per_second} B/s of another "
                "tenant: they must be at least 1 and 0"
            )

    def link_bytes_per_second(self, config: EngineConfig) -> float:
        """What is left of one GPU's link to its host, in one direction, headers included."""
        link = config.host_link_bytes_per_second
        return max(link - self.foreign_bytes_per_second / PAYLOAD_RATIO, link * _LEAST_LINK_RATIO)

    def offload_bytes_per_second(self, config: EngineConfig) -> float:
        """Payload of V1's transfers in one direction."""
        return self.link_bytes_per_second(config) * PAYLOAD_RATIO

    def timer(self, config: EngineConfig) -> Roofline:
        """The engine's times."""
        sound = config.roofline()
        link = self.link_bytes_per_second(config)
        slow = self.collective_slowdown
        known = sound.calibration
        left = link / config.host_link_bytes_per_second
        copies = sound.copies
        if isinstance(copies, PieceCopies | PageCopies):
            copies = replace(copies, link_bytes_per_second=link)
        return replace(
            sound,
            copies=copies,
            calibration=replace(
                known,
                collective_seconds=known.collective_seconds * slow,
                nvlink_bytes_per_second=known.nvlink_bytes_per_second / slow,
                pcie_collective_bytes_per_second=known.pcie_collective_bytes_per_second * left / slow,
            ),
        )
