"""Traffic over PCIe for the fake GPUs, by the machine's clock: bursts and rests, and what of them was counted."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from drill.fake_nvml import Control, Flow

_SHORTEST, _LONGEST = 0.03, 0.8
"""Seconds between two changes: both far below and far above the time in which 32 bits are full."""
_RESTS = 0.4
"""How often the next stretch of a direction is idle."""
_IDLE_BYTES_PER_SECOND = 350e3
_FLOWS = {"out": Flow.PCIE_TX, "in": Flow.PCIE_RX}
_TOTAL = re.compile(r"^thrashold_pcie_bytes_total\{(.*?)\} (\S+)", re.MULTILINE)
_AMBIGUOUS = re.compile(r"^thrashold_pcie_ambiguous_intervals_total\{(.*?)\} (\S+)", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(slots=True)
class Drive:
    """Bursts of up to ``most`` bytes a second on each GPU of ``control``, each direction by itself.

    It runs while the ``with`` lasts, and leaves all links at rest.
    """

    control: Control
    most: float
    seed: int
    bursts: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        for index in range(self.control.board.device_count):
            self.control.traffic(index, transmit=0.0, receive=0.0)

    def _run(self) -> None:
        chance = random.Random(self.seed)  # noqa: S311 -- repeatable, guards nothing
        count = self.control.board.device_count
        while not self._stop.wait(chance.uniform(_SHORTEST, _LONGEST) / count):
            self.control.traffic(
                chance.randrange(count), transmit=self._rate(chance), receive=self._rate(chance)
            )

    def _rate(self, chance: random.Random) -> float:
        if chance.random() < _RESTS:
            return _IDLE_BYTES_PER_SECOND
        self.bursts += 1
        # most bursts fill the link, the others end anywhere below
        return self.most * (1.0 if chance.random() < 1 / 2 else chance.random())


class Counted(NamedTuple):
    """Bytes by GPU and direction, and ambiguous intervals by GPU, as a page shows them."""

    totals: Mapping[tuple[str, str], float]
    ambiguous: Mapping[str, float]


def counted(page: str) -> Counted:
    """Read them off ``/metrics``."""
    totals = {}
    for labels, value in _TOTAL.findall(page):
        named = dict(_LABEL.findall(labels))
        totals[named["uuid"], named["direction"]] = float(value)
    ambiguous = {
        dict(_LABEL.findall(labels))["uuid"]: float(value) for labels, value in _AMBIGUOUS.findall(page)
    }
    return Counted(totals, ambiguous)


def truth(control: Control) -> dict[tuple[str, str], float]:
    """What has flowed."""
    return {
        (control.device(index).uuid.decode(), direction): control.moved(index, flow)
        for index in range(control.board.device_count)
        for direction, flow in _FLOWS.items()
    }


@dataclass(frozen=True, slots=True)
class Verdict:
    """How what was counted between two looks compares with the truth.

    ``silent``: the largest deviation, in percent, of those without an ambiguous interval; ``above``: by how much
    the others show more than the truth, at most; ``missing``: what the ambiguous intervals of those took.
    """

    silent: float
    sure: int
    above: float
    missing: float
    intervals: float


def compare(
    before: Counted,
    after: Counted,
    began: Mapping[tuple[str, str], float],
    ended: Mapping[tuple[str, str], float],
) -> Verdict:
    """For all GPUs and directions."""
    sure: list[float] = []
    unsure: list[float] = []
    for key in began:
        moved = ended[key] - began[key]
        off = 100 * (after.totals[key] - before.totals[key] - moved) / moved
        (unsure if _rise(before, after, key[0]) else sure).append(off)
    intervals = sum(_rise(before, after, uuid) for uuid in {uuid for uuid, _ in began})
    return Verdict(
        max(map(abs, sure), default=0.0),
        len(sure),
        max([0.0, *unsure]),
        max([0.0, *(-each for each in unsure)]),
        intervals,
    )


def _rise(before: Counted, after: Counted, uuid: str) -> float:
    return after.ambiguous.get(uuid, 0.0) - before.ambiguous.get(uuid, 0.0)
