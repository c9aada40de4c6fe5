"""How busy an engine's GPUs and links were in each second, iterations that outlast it included."""

from __future__ import annotations

from dataclasses import dataclass
from operator import add, sub

from drill.serving.flight import Flight
from drill.serving.step_result import StepResult


@dataclass(frozen=True, slots=True)
class Activity:
    """Of each of an engine's GPUs within a second: bytes over its links, and seconds of it.

    An iteration under way counts with the part that lies in the second. ``foreign_bytes``: of another tenant on the
    same PCIe link, in each direction. Payload: what counters on the bus show is 1.09 times as much
    (exporter.pcie.HEADER_FACTOR).
    """

    foreign_bytes: float
    to_device_bytes: float
    to_host_bytes: float
    nvlink_bytes: float
    """In each direction."""
    sm_busy_seconds: float
    memory_busy_seconds: float
    """What peak bandwidth would need for what was moved."""
    copy_seconds: float
    collective_seconds: float


_Sums = tuple[float, ...]
_NOTHING: _Sums = (0.0,) * 7


class ActivityMeter:
    """Of one engine, second by second. All that iterations come to is counted, and once."""

    def __init__(self) -> None:
        self._sums = _NOTHING
        self._ahead = _NOTHING
        """Of the iteration under way: counted already."""
        self._foreign_rate = self._foreign_bytes = self._foreign_since = 0.0

    def landed(self, result: StepResult) -> None:
        """Iterations ended."""
        all_of_it = (
            result.to_device_bytes,
            result.to_host_bytes,
            result.nvlink_bytes,
            result.sm_busy_ratio * result.seconds,
            result.memory_busy_ratio * result.seconds,
            result.copy_seconds,
            result.collective_seconds,
        )
        self._count(all_of_it)
        self._ahead = _NOTHING

    def drop(self) -> None:
        """What was under way never ends."""
        self._ahead = _NOTHING

    def foreign(self, bytes_per_second: float, now: float) -> None:
        """Another tenant moves so much from now on."""
        self._foreign_bytes += self._foreign_rate * (now - self._foreign_since)
        self._foreign_rate, self._foreign_since = bytes_per_second, now

    def close(self, flight: Flight | None, memory_bytes_per_second: float, now: float) -> Activity:
        """The second that ends now, with ``flight`` under way."""
        if flight is not None and flight.ends > flight.started:
            cost = flight.cost
            share = min(1.0, max(0.0, (now - flight.started) / (flight.ends - flight.started)))
            over_pcie = cost.collective_bytes if cost.collective_pcie else 0.0
            self._count(
                (
                    share * (cost.to_device_bytes + over_pcie),
                    share * (cost.to_host_bytes + over_pcie),
                    share * (cost.collective_bytes - over_pcie),
                    share * min(cost.busy_seconds, cost.seconds),
                    share * min(cost.memory_bytes / memory_bytes_per_second, cost.seconds),
                    share * cost.copy_seconds,
                    share * cost.collective_seconds,
                )
            )
        self.foreign(self._foreign_rate, now)
        activity = Activity(self._foreign_bytes, *self._sums)
        self._sums, self._foreign_bytes = _NOTHING, 0.0
        return activity

    def _count(self, so_far: _Sums) -> None:
        """An iteration, up to now: what of it wasn't counted yet."""
        known = self._ahead
        self._ahead = tuple(map(max, so_far, known))
        self._sums = tuple(map(add, self._sums, map(sub, self._ahead, known)))
