"""The bytes of one GPU over PCIe, as its counters say."""

from __future__ import annotations

from exporter.gpu_sample import PcieLink, PcieTraffic
from exporter.sampler.backend import Device


class PcieMeter:
    """Tells what 64-bit counters tell."""

    interval_seconds: float | None = None
    """How often ``poll`` must be called beyond each second; None: each second is enough."""

    def __init__(self, device: Device, *, window: bool) -> None:
        self._device, self._window = device, window
        self._traffic: PcieTraffic | None = None

    def told(self, link: PcieLink | None) -> None:
        """What the link can carry."""

    def poll(self) -> None:
        """Read. Raises ReadError."""
        now = self._device.byte_counters()
        self._traffic = PcieTraffic("counter", float(now.out_bytes), float(now.in_bytes))

    def traffic(self) -> PcieTraffic | None:
        """What was read so far."""
        return self._traffic
