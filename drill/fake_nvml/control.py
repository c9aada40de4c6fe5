"""Drives the fake library from outside, while a program runs on it."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from drill.fake_nvml.block import (
    MAGIC,
    MAX_DEVICES,
    MAX_EVENTS,
    MAX_FIELDS,
    MAX_METRICS,
    MAX_PROCESSES,
    MAX_RULES,
    OUTSIDE_MIG,
    VERSION,
    Event,
    Field,
    Flow,
    FlowRate,
    Hang,
    Metric,
    Presence,
    Process,
    ProcessKind,
    Rule,
)
from drill.fake_nvml.board import BOARD_BYTES, Board, Device
from drill.fake_nvml.devices import furnish
from drill.fake_nvml.library import functions
from drill.fake_nvml.profiles import DRIVER_590, Driver, Profile

VARIABLE = "FAKE_NVML_CONTROL"
"""The variable of the environment that names the control block's file to the library."""
WINDOW_SECONDS = 0.02
"""How long the PCIe throughput call measures, by nvml.h."""
XID = 0x8
"""nvmlEventTypeXidCriticalError."""
_CLOCK_START_US = 1e9  # a clock of its own starts far enough from 0 that samples lie before it
ANY_FUNCTION = "*"
"""A rule for it holds for all functions."""
_ANY = -1
_AS_EVER = -1


class Control:
    """The GPUs ``profiles`` behind ``driver``, in a file that the library maps.

    ``own_clock``: time stands still but for ``advance``, and the PCIe throughput call doesn't sleep.
    One thread drives; any number of programs may run on it.
    """

    def __init__(
        self,
        file: Path,
        profiles: Sequence[Profile],
        driver: Driver = DRIVER_590,
        *,
        own_clock: bool = False,
    ) -> None:
        if len(profiles) > MAX_DEVICES:
            raise ValueError(f"{len(profiles)} GPUs asked for: the block holds {MAX_DEVICES}")
        self._file = file
        with file.open("w+b") as opened:
            opened.truncate(BOARD_BYTES)
            # the mapping lives as long as the block that lies in it
            self.board = Board.from_buffer(mmap.mmap(opened.fileno(), BOARD_BYTES))
        self.board.driver, self.board.nvml = driver.version.encode(), driver.nvml.encode()
        self.board.cuda, self.board.wide_processes = driver.cuda, driver.wide_processes
        self.board.clock_us = _CLOCK_START_US if own_clock else 0
        self.board.window_us = 0 if own_clock else round(WINDOW_SECONDS * 1e6)
        self.board.device_count = len(profiles)
        for index, profile in enumerate(profiles):
            furnish(self.board.devices[index], index, profile)
            self.traffic(index, transmit=profile.idle_transmit, receive=profile.idle_receive)
        # the mark comes last: a library that maps an unfinished block says that no driver is loaded
        self.board.version, self.board.size, self.board.magic = VERSION, BOARD_BYTES, MAGIC

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release_all()
        self._file.unlink(missing_ok=True)

    def environment(self, library: Path) -> dict[str, str]:
        """What a program's environment needs from its start on, to find ``library`` and this block."""
        return {VARIABLE: str(self._file), "LD_LIBRARY_PATH": os.fspath(library.parent)}

    def device(self, index: int) -> Device:
        """The GPU itself, to set what has no method here."""
        if not 0 <= index < self.board.device_count:
            raise IndexError(f"no GPU {index}: there are {self.board.device_count}")
        return self.board.devices[index]

    @property
    def calls(self) -> int:
        """How many calls have reached the library."""
        return self.board.calls

    def advance(self, seconds: float) -> None:
        """Let time go on, where the clock is our own."""
        if not self.board.clock_us:
            raise ValueError("the clock is the machine's: it can't be advanced")
        self.board.clock_us += seconds * 1e6

    def traffic(self, device: int, *, transmit: float | None = None, receive: float | None = None) -> None:
        """From now on so many bytes/s over PCIe, None: as before. Transmit is GPU to host."""
        self._flow(device, rates={Flow.PCIE_TX: transmit, Flow.PCIE_RX: receive})

    def nvlink_traffic(
        self, device: int, *, transmit: float | None = None, receive: float | None = None
    ) -> None:
        """From now on so many bytes/s over the NVLinks that are up, evenly; None: as before."""
        self._flow(device, rates={Flow.NVLINK_TX: transmit, Flow.NVLINK_RX: receive})

    def moved(self, device: int, flow: Flow) -> float:
        """Bytes that have truly flowed, without the wrap-around of the counters."""
        flows = self.device(device).flows
        return _moved(flows.slot[flows.version // 2 % 2][flow], self._now_us())

    def set_moved(self, device: int, flow: Flow, moved_bytes: float) -> None:
        """Let the counters go on from here: 0 is what a reset leaves."""
        self._flow(device, bases={flow: moved_bytes})

    def _now_us(self) -> float:
        return self.board.clock_us or time.monotonic_ns() / 1e3

    def _flow(
        self,
        device: int,
        *,
        rates: Mapping[Flow, float | None] | None = None,
        bases: Mapping[Flow, float] | None = None,
    ) -> None:
        """Fill the slot that isn't in force, then switch over: readers never see half of a change.

        That holds where stores are seen in order, as on x86; elsewhere a read may once be off by a change.
        """
        wanted = {flow: float(rate) for flow, rate in (rates or {}).items() if rate is not None}
        flows = self.device(device).flows
        flows.version += 1
        now_us = self._now_us()
        old, new = flows.slot[flows.version // 2 % 2], flows.slot[(flows.version // 2 + 1) % 2]
        for flow in Flow:
            new[flow].rate = wanted.get(flow, old[flow].rate)
            new[flow].base = (bases or {}).get(flow, _moved(old[flow], now_us))
            new[flow].since_us = now_us
        flows.version += 1

    def lose(self, device: int, *, gone: bool = False) -> None:
        """The GPU falls off the bus; ``gone``: it isn't counted any more either."""
        self.device(device).presence = Presence.GONE if gone else Presence.LOST
        self._ring()

    def find(self, device: int) -> None:
        """A lost GPU answers again."""
        self.device(device).presence = Presence.PRESENT
        self._ring()

    def xid(self, device: int, number: int) -> None:
        """The driver reports an XID error, to the event sets that wait for it."""
        self.event(device, XID, number)

    def event(self, device: int, kind: int, data: int = 0) -> None:
        """Something else happened: ``kind`` is one of nvmlEventType."""
        self.device(device)
        self.board.events[self.board.event_count % MAX_EVENTS] = Event(device=device, type=kind, data=data)
        self.board.event_count += 1
        self._ring()

    def _ring(self) -> None:
        """Wake those that wait for an event: they sleep until the block's file is touched."""
        os.utime(self._file)

    def fail(
        self, function: str, code: int, device: int | None = None, *, after: int = 0, times: int = 0
    ) -> Rule:
        """``function`` returns ``code``: after so many good calls, and so many times (0: from then on)."""
        return self._rule(function, device, code=code, after=after, times=times)

    def slow(self, function: str, seconds: float, device: int | None = None) -> Rule:
        """``function`` takes so much longer."""
        return self._rule(function, device, code=_AS_EVER, delay_us=round(seconds * 1e6))

    def hang(self, function: str, device: int | None = None, *, uninterruptible: bool = False) -> Rule:
        """Calls of ``function`` don't come back before ``release``.

        ``uninterruptible``: the thread is in state D and hears no signal but SIGKILL, which a driver
        that truly hangs would not hear either: that can't be had without a driver.
        """
        how = Hang.UNINTERRUPTIBLE if uninterruptible else Hang.SLEEPING
        return self._rule(function, device, code=_AS_EVER, hang=how)

    def watch(self, function: str, device: int | None = None) -> Rule:
        """Count the calls of ``function``: the rule's ``hits``."""
        return self._rule(function, device, code=_AS_EVER)

    @staticmethod
    def release(rule: Rule) -> None:
        """End a rule: calls that hang in it come back, and it holds for no further ones."""
        rule.function = b""
        # a call that is held in the rule gives its answer as ever
        rule.code, rule.hang = _AS_EVER, Hang.NONE

    def release_all(self) -> None:
        """End all rules."""
        for index in range(self.board.rule_count):
            self.release(self.board.rules[index])

    def _rule(self, function: str, device: int | None, *, code: int, **how: int) -> Rule:
        if function != ANY_FUNCTION and function not in functions():
            raise ValueError(f"the fake library has no function {function}")
        count = self.board.rule_count
        # a slot that was released is used again once no call is on its way out of it
        free = [k for k in range(count) if not self.board.rules[k].function and not self.board.rules[k].held]
        index = free[0] if free else _room(count, MAX_RULES, "rules")
        self.board.rules[index] = Rule(
            function=function.encode(), device=_ANY if device is None else device, code=code, **how
        )
        self.board.rule_count = max(count, index + 1)
        return self.board.rules[index]

    def field(  # noqa: PLR0913 - what the driver tells of a field
        self, device: int, field: int, value: float = 0, *, kind: int = 1, scope: int = 0, code: int = 0
    ) -> None:
        """A field value is this one: ``kind`` is its nvmlValueType_t, ``code`` its own return code."""
        gpu = self.device(device)
        taken = [
            k for k in range(gpu.field_count) if (gpu.fields[k].id, gpu.fields[k].scope) == (field, scope)
        ]
        index = taken[0] if taken else _room(gpu.field_count, MAX_FIELDS, "field values")
        gpu.fields[index] = Field(id=field, scope=scope, code=code, type=kind, value=value)
        gpu.field_count = max(gpu.field_count, index + 1)

    def metric(self, device: int, metric: int, value: float = 0, *, code: int = 0) -> None:
        """A GPM metric is this one, whatever flows."""
        gpu = self.device(device)
        taken = [k for k in range(gpu.metric_count) if gpu.metrics[k].id == metric]
        index = taken[0] if taken else _room(gpu.metric_count, MAX_METRICS, "GPM metrics")
        gpu.metrics[index] = Metric(id=metric, code=code, value=value)
        gpu.metric_count = max(gpu.metric_count, index + 1)

    def start(  # noqa: PLR0913 - what the driver tells of a process
        self,
        device: int,
        pid: int,
        memory: int,
        *,
        kind: ProcessKind = ProcessKind.COMPUTE,
        sm_util: int = 0,
        memory_util: int = 0,
        instance: tuple[int, int] = (OUTSIDE_MIG, OUTSIDE_MIG),
    ) -> Process:
        """A process begins on the GPU: ``memory`` in bytes, utilisation in percent."""
        gpu = self.device(device)
        index = _room(gpu.process_count, MAX_PROCESSES, "processes")
        gpu.processes[index] = Process(
            pid=pid,
            kind=kind,
            memory=memory,
            sm_util=sm_util,
            memory_util=memory_util,
            gpu_instance=instance[0],
            compute_instance=instance[1],
        )
        gpu.process_count = index + 1
        return gpu.processes[index]

    def end_processes(self, device: int) -> None:
        """Nothing runs on the GPU any more."""
        self.device(device).process_count = 0


def _moved(flow: FlowRate, now_us: float) -> float:
    return flow.base + flow.rate * max(0.0, now_us - flow.since_us) / 1e6


def _room(count: int, most: int, what: str) -> int:
    if count >= most:
        raise ValueError(f"{count} {what} are there, more don't fit")
    return count
