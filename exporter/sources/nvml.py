"""The GPUs of this machine by NVIDIA's library, which a process of its own reads: the sampler."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import msgspec

from exporter import sampler_signals as signals
from exporter.gpu_sample import GpuSample
from exporter.gpu_settings import GpuSettings
from exporter.observation import Observation, SourceStatus
from exporter.pcie_hint import hint, without_pcie_bytes
from exporter.sampler.frame import HUNG_SECONDS, Frame
from exporter.sampler.reasons import Reason, advice
from exporter.signal import Signal
from exporter.snapshot import Value
from exporter.sources.failure import one_line
from exporter.sources.gpu_ledger import GpuLedger, unopened_name
from exporter.sources.sampler_process import PAUSES_SECONDS, SAMPLER, SamplerProcess
from exporter.sources.xid_words import XidWords

NAME = "nvml"
FIRST_FRAME_SECONDS = 3.0
"""What a single read waits for: Python starts, the library opens, each GPU is read once."""

_MOST_UNREAD = 4

logger = logging.getLogger(__name__)


class NvmlSource:
    """All GPUs of the machine, as the sampler's newest frame shows them.

    ``clock`` gives seconds since the epoch and runs with CLOCK_MONOTONIC, as the sampler's times do.
    ``command`` starts the sampler.
    """

    def __init__(
        self,
        settings: GpuSettings,
        clock: Callable[[], float],
        *,
        command: Sequence[str] = SAMPLER,
        pauses_seconds: tuple[float, float] = PAUSES_SECONDS,
    ) -> None:
        self._clock = clock
        # Once and for all: a sample must not seem new because two clocks were read a moment later.
        self._offset = clock() - time.monotonic()
        self._ledger = GpuLedger(self._offset)
        self._decoder = msgspec.json.Decoder(Frame)
        self._process = SamplerProcess(
            _arguments(settings), self._hear, self._failed, command=command, pauses_seconds=pauses_seconds
        )
        self._unread: list[bytes] = []
        """Lines that wait for the next cycle."""
        self._errors: Counter[str] = Counter()
        self._failure: tuple[str, str] | None = None
        self._has_shown = asyncio.Event()
        self._said: frozenset[str] = frozenset()
        self._xids = XidWords(logger)
        self._greeted = ""
        self._has_hinted, self._has_other_bytes = False, settings.pcie_window or settings.dcgm is not None

    @property
    def name(self) -> str:
        """There is one on a machine."""
        return NAME

    @property
    def pid(self) -> int | None:
        """The sampler's process, while it lives."""
        return self._process.pid

    async def run(self) -> None:
        """Keep the sampler running until cancelled."""
        await self._process.run()

    async def read_once(self) -> None:
        """Wait until each GPU was read once, or until it is known why not, at most 3 s; then end the sampler."""
        running = asyncio.create_task(self._process.run(beside_others=True))
        try:
            async with asyncio.timeout(FIRST_FRAME_SECONDS):
                await self._has_shown.wait()
        except TimeoutError:
            slow = f"{advice(Reason.TIMEOUT)}, or this machine is short of CPU"
            line = f"the GPUs were not read within {FIRST_FRAME_SECONDS:g} s; {slow}"
            self._failed(Reason.TIMEOUT, line)
        finally:
            running.cancel()
            await asyncio.wait({running})

    def observe(self) -> Observation:
        """All GPUs that were ever seen, however old, and how the reading goes."""
        self._read_on()
        now = self._clock()
        silent_because = self._failure[0] if self._failure else Reason.HUNG
        awake_since = self._process.awake_since() + self._offset
        gpus = self._ledger.samples(now, silent_because, awake_since=awake_since)
        self._xids.take(gpus)
        complaints = self._complaints(gpus)
        self._say(complaints)
        self._say_window(gpus)
        line = next(iter(complaints.values()), "")
        if len(complaints) > 1:
            line += f" (and {len(complaints) - 1} more)"
        newest_at, looked_at = self._ledger.newest_at, self._ledger.looked_at
        is_fresh = newest_at is not None and now - max(newest_at, awake_since) <= HUNG_SECONDS
        answering = is_fresh and looked_at == newest_at and (not gpus or any(each.up for each in gpus))
        errors: Counter[str] = Counter(self._errors)
        for (_, _, each), count in self._ledger.errors.items():
            errors[each] += round(count)
        status = SourceStatus(NAME, "nvml", answering, looked_at, None, tuple(sorted(errors.items())), line)
        return Observation(status, gpus=gpus, own=self._own(fresh=is_fresh))

    def _hear(self, line: bytes) -> None:
        """Keep a line for the cycle, which is awake anyway; the first ones are waited for."""
        self._unread.append(line)
        if len(self._unread) > _MOST_UNREAD or not self._has_shown.is_set():
            self._read_on()

    def _read_on(self) -> None:
        lines, self._unread = self._unread, []
        for line in lines:
            self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            frame = self._decoder.decode(line)
        except msgspec.DecodeError as error:
            self._failed(
                Reason.BAD_FRAME,
                f"the sampler's line can't be read ({one_line(str(error), 120)}): {advice(Reason.BAD_FRAME)}",
            )
            return
        self._failure = None
        self._ledger.take(frame)
        if frame.library and frame.library != self._greeted and frame.gpus_expected is not None:
            self._greeted = frame.library
            gpus = "GPU" if frame.gpus_expected == 1 else "GPUs"
            logger.info("nvml: %d %s, %s", frame.gpus_expected, gpus, frame.library)
        if frame.trouble is not None or frame.gpus_expected is not None:
            self._has_shown.set()

    def _failed(self, reason: str, line: str) -> None:
        self._read_on()  # what was heard before it
        self._errors[reason] += 1
        self._failure = (reason, line)
        self._has_shown.set()

    def _complaints(self, gpus: Sequence[GpuSample]) -> dict[str, str]:
        """What is wrong now: what each is known by, and its line; empty while all is well."""
        frame = self._ledger.newest
        if self._failure is not None:
            return dict([self._failure])
        if frame is None:
            return {}
        if frame.trouble is not None:
            return {frame.trouble.reason: frame.trouble.line}
        lines = {
            f"{each.device_index} {each.reason}": f"GPU {each.device_index} can't be opened: {each.line}"
            for each in frame.unopened
        }
        told = {unopened_name(each.device_index) for each in frame.unopened}
        inside = {each.uuid: each.group for each in frame.hung}
        for sample in gpus:
            which = sample.identity
            if not sample.up and which.uuid not in told:
                lines[f"{which.uuid} {sample.down_because}"] = _down_line(sample, inside.get(which.uuid))
        if "" in inside:
            lines[inside[""]] = f"{inside['']} does not come to an end: {advice(Reason.HUNG)}"
        return lines

    def _say(self, complaints: Mapping[str, str]) -> None:
        """Log what is new."""
        for key, line in complaints.items():
            if key not in self._said:
                logger.warning("GPUs: %s", line)
        if self._said and not complaints:
            logger.info("GPUs: all that there are can be read again")
        self._said = frozenset(complaints)

    def _say_window(self, gpus: Sequence[GpuSample]) -> None:
        """Log once which setting would give PCIe bytes, where no GPU has them without it."""
        untold = () if self._has_hinted or self._has_other_bytes else without_pcie_bytes(gpus)
        if untold:
            self._has_hinted = True
            logger.info("nvml: %s", hint(untold))

    def _own(self, *, fresh: bool) -> tuple[Value, ...]:
        frame, spent = self._ledger.newest, self._ledger.spent
        own = frame.own if frame and fresh else None
        values: list[tuple[Signal, float | None]] = [
            (signals.SAMPLER_RESTARTS, float(self._process.restarts)),
            (signals.SAMPLER_STUCK, self._process.stuck_seconds()),
            (signals.SAMPLER_CPU, float(spent["cpu"])),
            (signals.SAMPLER_DRIVER, float(spent["driver"])),
            (signals.SAMPLER_RESIDENT, own.resident_bytes if own else None),
            (signals.SAMPLER_FAST_INTERVAL, own.fast_interval_seconds if own else None),
            (signals.GPUS_EXPECTED, frame.gpus_expected if frame and fresh else None),
        ]
        return tuple(
            Value(signal, (NAME,), float(value), is_peak=False)
            for signal, value in values
            if value is not None
        )


def _arguments(settings: GpuSettings) -> list[str]:
    flags = (("--processes", settings.processes), ("--pcie-window", settings.pcie_window))
    return [flag for flag, is_set in flags if is_set]


def _down_line(sample: GpuSample, inside: str | None) -> str:
    """``inside`` is the group that is being read, where that takes too long."""
    which, remedy = sample.identity, advice(sample.down_because)
    index = "" if which.device_index is None else f" {which.device_index}"
    why = sample.down_because.replace("_", " ") + (f" in reading its {inside}" if inside else "")
    return f"GPU{index} ({which.uuid}) can't be read: {why}" + (f"; {remedy}" if remedy else "")
