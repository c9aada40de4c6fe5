"""Reads one GPU or MIG instance, group by group: what fails costs its own group and nothing else.

A second is read in two turns: bytes over PCIe first, then the rest. Whoever reads several GPUs counts the bytes of
all before the rest of any, so that no counter wraps while the others' health is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from exporter.gpu_sample import GpuSample, PcieLink, PcieTraffic
from exporter.sampler.backend import Device, ReadError, Remedy
from exporter.sampler.finite import finite
from exporter.sampler.group import Group
from exporter.sampler.log import log, where
from exporter.sampler.pace import Pace
from exporter.sampler.reasons import Reason, is_failure
from exporter.sampler.ticks import next_tick

SAMPLE_SECONDS = 1.0
LINK_SECONDS = 5.0
HEALTH_SECONDS = 10.0
PROCESSES_SECONDS = 30.0
FIRST_SECONDS_DOWN = 1.0
MOST_SECONDS_DOWN = 60.0
"""How long a GPU that is down is left alone before it is asked again: first, and at most."""


_BETWEEN = PcieTraffic("")
"""What a read between two seconds gives: it has been counted, and goes into the next sample."""


class Meter(Protocol):
    """Accounts for the bytes of one GPU over PCIe; see ``pcie_meter``."""

    @property
    def interval_seconds(self) -> float | None:
        """How often ``poll`` must be called beyond each second; None: each second is enough."""

    def told(self, link: PcieLink | None) -> None:
        """What the link can carry."""

    def poll(self) -> None:
        """Read. Raises ReadError."""

    def lose(self) -> None:
        """What was read so far has no continuation."""

    def traffic(self) -> PcieTraffic | None:
        """What was read so far."""


class Terms(NamedTuple):
    """What holds for all GPUs. ``reopen`` is told of the failure after which the library has to be loaded anew."""

    pace: Pace
    clock: Callable[[], float]
    reopen: Callable[[ReadError], None]
    processes: bool = False


class GpuReader:
    """Used by one thread at a time, which calls ``turn`` at ``due_at``; others read ``sample``, ``inside``, the sums.

    ``meter`` is None for one that has no bytes of its own, a MIG instance. ``first_at`` is its first tick.
    """

    def __init__(self, device: Device, meter: Meter | None, terms: Terms, first_at: float) -> None:
        self.identity = device.identity
        self.driver_seconds = 0.0
        self.inside: tuple[str, float] | None = None
        """The group that is being read, and since when."""
        self.errors: Counter[tuple[str, str]] = Counter()
        self._clock, self._reopen, self._pace = terms.clock, terms.reopen, terms.pace
        self._meter, self._left_out = meter, device.left_out
        self._started_at = self._second_at = first_at
        self._down_by: Group | None = None
        self._down_because = ""
        self._lost: ReadError | None = None
        self._ask_again_at = 0.0
        self._second_began: float | None = None
        """When the second began of which all but the bytes is still to be read."""
        self._seconds_down = FIRST_SECONDS_DOWN
        # PCIe goes first: its totals are to be those of the instant that the sample bears.
        # A total told once more would say that nothing moved, and all of it in the second after.
        self._bytes = Group("pcie", self._pcie_seconds, self._pcie, first_at, holds=False) if meter else None
        self._groups = [self._bytes] if self._bytes else []
        self._groups += [
            Group(name, _always(seconds), read, first_at)
            for name, seconds, read in self._others(device, processes=terms.processes)
        ]
        self.sample = GpuSample(first_at, self.identity, reader_started_at=first_at)
        """The newest; replaced as a whole."""
        self.has_read = False
        """Whether a first turn has come to its end."""

    def _others(self, device: Device, *, processes: bool) -> list[tuple[str, float, Callable[[], Any]]]:
        found: list[tuple[str, float, Callable[[], Any]]] = [
            ("memory", SAMPLE_SECONDS, device.memory),
            ("utilisation", SAMPLE_SECONDS, device.utilisation),
            ("link", LINK_SECONDS, lambda: self._told(device.link())),
            # a total that is told again each second has to say of which instant it is
            ("nvlink", LINK_SECONDS, lambda: device.nvlink()._replace(read_at=self._clock())),
            ("health", HEALTH_SECONDS, device.health),
        ]
        return [*found, ("processes", PROCESSES_SECONDS, device.processes)] if processes else found

    @property
    def fast_seconds(self) -> float | None:
        """Between two reads of its byte counters, where they are read more often than each second."""
        wanted = self._meter.interval_seconds if self._meter else None
        return None if wanted is None else self._pace.stretched(wanted)

    @property
    def owes(self) -> bool:
        """Whether the next turn is the second one of a second: what can wait for the bytes of other GPUs."""
        return self._second_began is not None

    @property
    def due_at(self) -> float:
        """When the next turn is due."""
        if self._second_began is not None:
            return self._second_began
        if self._bytes is None or self._bytes.dropped or self._down_by is not None:
            return self._second_at
        return min(self._second_at, self._bytes.due_at)

    def turn(self) -> None:
        """Count bytes; or, where it ``owes`` that, read the rest and make a sample. Raises nothing that is expected."""
        if self._second_began is None:
            self._begin(self._clock())
        else:
            self._finish(self._second_began)
        if self._lost is not None:  # only now: the last frame is to hold what is told of it here
            self._reopen(self._lost)

    def _begin(self, now: float) -> None:
        if now >= self._second_at:
            self._second_began = now
            self._second_at = next_tick(self._second_at, SAMPLE_SECONDS, now)
        group = self._bytes
        if self._down_by is not None or group is None or group.dropped:
            return
        if self.owes or group.due_at <= now:
            group.put_off(now)
            self._read(group)
            if self._lost is not None:
                self._compose(now)

    def _finish(self, now: float) -> None:
        if self._down_by is None or self._is_back(self._down_by, now):
            self._read_due(now)
        self._compose(now)

    def _compose(self, now: float) -> None:
        self._second_began = None
        self.sample = self._composed(now)
        self.has_read = True

    def _is_back(self, group: Group, now: float) -> bool:
        """Ask what said that the GPU is down, every now and then; gives whether it answers."""
        if now < self._ask_again_at:
            return False
        group.put_off(now)
        if self._read(group) not in {"", Remedy.DROP, Remedy.SKIP}:
            self._ask_again_at = now + self._seconds_down
            self._seconds_down = min(2 * self._seconds_down, MOST_SECONDS_DOWN)
            return False
        self._down_by, self._down_because = None, ""
        return True

    def _read_due(self, now: float) -> None:
        for group in self._groups:
            if group.dropped or group.due_at > now:
                continue
            group.put_off(now)
            if self._read(group) in {Remedy.DEVICE_DOWN, Remedy.REOPEN}:
                return

    def _read(self, group: Group) -> str:
        """Read one group; gives the remedy of the failure, empty where there was none."""
        began = self._clock()
        self.inside = (group.name, began)
        try:
            value = group.read()
            if value is not _BETWEEN:
                group.take(finite(value), began)
        except ReadError as error:
            self._failed(group, error)
            return error.remedy
        except Exception as error:  # noqa: BLE001 - a bug, the backend's or ours, costs this group alone
            self._say_bug(group.name, error)
            return Remedy.RETRY
        else:
            return ""
        finally:
            self.inside = None
            self.driver_seconds += self._clock() - began

    def _failed(self, group: Group, error: ReadError) -> None:
        if is_failure(error):
            self.errors[group.name, error.reason] += 1
        if error.remedy == Remedy.DROP:
            group.drop()
            if group.name == "link" and self._meter:
                self._meter.told(None)
        elif error.remedy == Remedy.SKIP:
            group.take(None, self._clock())
        elif error.remedy == Remedy.DEVICE_DOWN:
            if self._down_by is None:
                if self._meter:
                    self._meter.lose()  # it may be reset before it is back
                self._ask_again_at = self._clock() + FIRST_SECONDS_DOWN
                self._seconds_down = 2 * FIRST_SECONDS_DOWN
            self._down_by, self._down_because = group, error.reason
        elif error.remedy == Remedy.REOPEN:
            self._lost = error

    def _say_bug(self, group: str, error: Exception) -> None:
        self.errors[group, Reason.INTERNAL] += 1
        if self.errors[group, Reason.INTERNAL] == 1:
            log(f"{self.identity.uuid}: reading {group} failed in thrashold itself: {where(error)}")

    def _pcie_seconds(self) -> float:
        return self.fast_seconds or SAMPLE_SECONDS

    def _pcie(self) -> PcieTraffic | None:
        if self._meter is None:
            return None
        self._meter.poll()
        return self._meter.traffic() if self.owes else _BETWEEN

    def _told(self, link: PcieLink) -> PcieLink:
        if self._meter:
            self._meter.told(link)
        return link

    def _composed(self, now: float) -> GpuSample:
        errors, left_out = self.errors, self._left_out()
        if left_out:
            errors = errors + Counter({(part, reason): round(count) for part, reason, count in left_out})
        told = tuple((group, reason, float(count)) for (group, reason), count in errors.items())
        found: dict[str, Any] = {"reader_started_at": self._started_at, "errors_total": told}
        if self._down_by is not None:
            return GpuSample(now, self.identity, up=False, down_because=self._down_because, **found)
        return GpuSample(now, self.identity, **found, **{each.name: each.fresh(now) for each in self._groups})


def _always(seconds: float) -> Callable[[], float]:
    return lambda: seconds
