"""The eight questions that only a GPU can answer, each as far as a script without an engine can ask it."""

# ruff: noqa: ANN401 - what ctypes gives is of no type
from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from statistics import median
from typing import Any

from exporter.sampler.backend import ReadError
from exporter.sampler.nvml_device import NvmlDevice
from exporter.sampler.pcie_counting import FASTEST_LINK
from exporter.sampler.pcie_totals import PcieTotals
from tests.real_gpu.calls import DISPUTED_FIELDS, code_of, field_answers, microseconds
from tests.real_gpu.copying import Copier, Copying

BOGUS_FIELD = 9999
POLL_SECONDS = 0.01
SPACINGS = (0.05, 0.1, 0.2, 0.5)
VALUE_TYPES = ("double", "uint32", "ulong", "uint64", "int64", "int32", "uint16")
NEEDS_COPIES = "not asked: needs libcuda.so.1 to copy a known number of bytes"


@dataclass(frozen=True)
class Gpu:
    """One GPU: the binding, our device on it, and something that copies, where there is one."""

    pynvml: Any
    device: NvmlDevice
    copier: Copier | None
    seconds: float
    """How long each measurement takes."""

    @property
    def line(self) -> float:
        try:
            return self.device.link().max_bytes_per_second or FASTEST_LINK
        except ReadError:
            return FASTEST_LINK

    def copying(self, *, to_gpu: bool = True) -> Copying | nullcontext[None]:
        return nullcontext() if self.copier is None else Copying(self.copier, to_gpu=to_gpu)


@dataclass(frozen=True)
class Answer:
    """A question, what was found, and the figures it was found from."""

    number: int
    question: str
    found: str
    figures: dict[str, Any]


def asked(gpu: Gpu) -> list[Answer]:
    """All eight, in order."""
    return [
        counters(gpu),
        zeros(gpu),
        kilobyte(gpu),
        Answer(
            4,
            "do the counters count GPUDirect and copies between GPUs",
            "not asked: needs a second GPU or an RDMA card that copies",
            {},
        ),
        reserved(gpu),
        disturbance(gpu),
        disputed(gpu),
        directions(gpu),
    ]


def counters(gpu: Gpu) -> Answer:
    question = "fields 197/198: type, wrap, timestamp, cost"
    handle = gpu.device.handle
    first = field_answers(gpu.pynvml, handle, ((197, 0), (198, 0), (BOGUS_FIELD, 0)))
    figures: dict[str, Any] = {
        "codes": [field["code"] for field in first[:2]],
        "bogus_field_code": first[2]["code"],
    }
    if any(figures["codes"]):
        return Answer(1, question, "not supported by this GPU under this driver", figures)
    kinds = [VALUE_TYPES[field["type"]] for field in first[:2]]
    fresh = field_answers(gpu.pynvml, handle, ((197, 0), (198, 0)))
    now = time.time()
    stamp = fresh[0]["timestamp"] / 1e6
    figures |= {
        "types": kinds,
        "timestamp_seconds": stamp,
        "timestamp_is": "empty" if not stamp else "since 1970" if abs(stamp - now) < 60 else "another clock",
        "microseconds": round(
            microseconds(lambda: gpu.pynvml.nvmlDeviceGetFieldValues(handle, [197, 198])), 1
        ),
        "largest": max(field["value"] for field in fresh),
    }
    falls = 0
    with gpu.copying():
        before = fresh
        for now_fields in _polled(gpu, lambda: field_answers(gpu.pynvml, handle, ((197, 0), (198, 0)))):
            falls += sum(new["value"] < old["value"] for old, new in zip(before, now_fields, strict=True))
            figures["largest"] = max(figures["largest"], *(field["value"] for field in now_fields))
            before = now_fields
    figures["falls"] = falls
    wraps = "wraps at 2^32" if falls and figures["largest"] < 1 << 32 else "no wrap seen"
    found = f"{kinds[0]}, {wraps}, timestamp {figures['timestamp_is']}, {figures['microseconds']} us for both"
    return Answer(1, question, found, figures)


def zeros(gpu: Gpu) -> Answer:
    question = "GPM: intervals of zeros while bytes move, and the least useful spacing"
    figures: dict[str, Any] = {}
    for spacing in SPACINGS:
        intervals = zero = missing = moved_meanwhile = 0
        with gpu.copying():
            counted = _counters(gpu)
            for _ in range(max(2, round(gpu.seconds / spacing))):
                time.sleep(spacing)
                try:
                    rates = gpu.device.byte_rates()
                except ReadError as error:
                    if error.reason == "not_supported":
                        return Answer(2, question, "this GPU has no GPM under this driver", {})
                    continue
                before, counted = counted, _counters(gpu)
                told = (rates.out_bytes_per_second, rates.in_bytes_per_second)
                intervals += 1
                missing += None in told
                zero += told == (0, 0)
                moved_meanwhile += told == (0, 0) and before != counted
        figures[f"{spacing:g}s"] = {
            "intervals": intervals,
            "missing": missing,
            "zero": zero,
            "zero_while_counters_moved": moved_meanwhile,
        }
    useful = [
        name for name, seen in figures.items() if seen["intervals"] and not seen["missing"] + seen["zero"]
    ]
    found = f"complete from a spacing of {useful[0]} on" if useful else "zeros or gaps at every spacing"
    return Answer(2, question, found if gpu.copier else f"{found} (nothing was copied)", figures)


def kilobyte(gpu: Gpu) -> Answer:
    question = "nvmlDeviceGetPcieThroughput: KB of 1000 or of 1024 bytes"
    if gpu.copier is None:
        return Answer(3, question, NEEDS_COPIES, {})
    ratios = []
    with Copying(gpu.copier, to_gpu=True):
        for _ in range(max(3, round(gpu.seconds / 0.1))):
            with _counting(gpu, 0.06) as totals:
                try:
                    told = gpu.pynvml.nvmlDeviceGetPcieThroughput(gpu.device.handle, 1)
                except gpu.pynvml.NVMLError as error:
                    return Answer(3, question, f"no such call here (code {error.value})", {})
            for seconds, _, received, doubtful in totals:
                if told and not doubtful:
                    ratios.append(received / seconds / told)
    if not ratios:
        return Answer(3, question, "no counters to compare with", {})
    middle = median(ratios)
    nearest = min((1000, 1024), key=lambda size: abs(size - middle))
    is_clear = abs(middle - nearest) < 8
    found = f"{nearest}" if is_clear else f"neither: {middle:.0f} bytes by the counters"
    return Answer(3, question, found, {"bytes_per_kb": [round(ratio, 1) for ratio in ratios]})


def reserved(gpu: Gpu) -> Answer:
    question = "memory v2: does used contain reserved"
    try:
        info = gpu.pynvml.nvmlDeviceGetMemoryInfo(gpu.device.handle, version=gpu.pynvml.nvmlMemory_v2)
    except gpu.pynvml.NVMLError as error:
        return Answer(5, question, f"no such call here (code {error.value})", {})
    figures = {name: getattr(info, name) for name in ("total", "used", "free", "reserved")}
    if not info.reserved:
        found = "nothing is reserved"
    elif info.used + info.free + info.reserved == info.total:
        found = "no: used, free and reserved add up to total"
    elif info.used + info.free == info.total:
        found = "yes: used and free add up to total"
    else:
        found = "neither sum is the total"
    return Answer(5, question, found, figures)


def disturbance(gpu: Gpu) -> Answer:
    question = "does polling at 20 Hz slow copies down"
    if gpu.copier is None:
        return Answer(6, question, NEEDS_COPIES, {})
    with Copying(gpu.copier, to_gpu=True) as alone:
        time.sleep(gpu.seconds)
    with Copying(gpu.copier, to_gpu=True) as polled:
        for _ in _polled(gpu, lambda: code_of(gpu.pynvml, lambda: _counters(gpu)), every=0.05):
            pass
    share = polled.bytes_per_second / alone.bytes_per_second if alone.bytes_per_second else 0.0
    figures = {"bytes_per_second": [alone.bytes_per_second, polled.bytes_per_second], "share": share}
    return Answer(6, question, f"{100 * (1 - share):+.1f} % slower (an engine is not asked)", figures)


def disputed(gpu: Gpu) -> Answer:
    question = "clock event reasons: fields 251..253 or 269..271"
    told = field_answers(gpu.pynvml, gpu.device.handle, tuple((field, 0) for field in DISPUTED_FIELDS))
    good = [field["id"] for field in told if field["code"] == 0]
    found = f"answered: {', '.join(map(str, good)) or 'none'}"
    return Answer(7, question, found, {str(field["id"]): field for field in told})


def directions(gpu: Gpu) -> Answer:
    question = "which way is TX, and how many bytes are counted for one copied"
    if gpu.copier is None:
        return Answer(8, question, NEEDS_COPIES, {})
    figures: dict[str, Any] = {}
    for name, to_gpu in (("to_gpu", True), ("to_host", False)):
        with _counting(gpu, gpu.seconds) as totals, Copying(gpu.copier, to_gpu=to_gpu) as copying:
            time.sleep(gpu.seconds)
        if not totals:
            return Answer(8, question, "no counters to see it by", figures)
        _, sent, received, doubtful = totals[0]
        figures[name] = {
            "payload": copying.payload_bytes,
            "out": sent,
            "in": received,
            "intervals_not_told": doubtful,
        }
    to_gpu, to_host = figures["to_gpu"], figures["to_host"]
    if max(to_gpu["out"], to_gpu["in"], to_host["out"], to_host["in"]) == 0:
        return Answer(8, question, "the counters did not move", figures)
    is_so = to_gpu["in"] > to_gpu["out"] and to_host["out"] > to_host["in"]
    factors = [
        main / copied["payload"] if copied["payload"] else 0.0
        for copied, main in ((to_gpu, to_gpu["in"]), (to_host, to_host["out"]))
    ]
    way = "TX is GPU to host" if is_so else "not as expected: see the figures"
    return Answer(8, question, f"{way}; {factors[0]:.3f} in, {factors[1]:.3f} out for one copied", figures)


def _counters(gpu: Gpu) -> tuple[int, int] | None:
    try:
        now = gpu.device.byte_counters()
    except ReadError:
        return None
    return now.out_bytes, now.in_bytes


def _polled(gpu: Gpu, read: Any, every: float = POLL_SECONDS) -> Iterator[Any]:
    deadline = time.monotonic() + gpu.seconds
    while time.monotonic() < deadline:
        yield read()
        time.sleep(every)


@contextmanager
def _counting(gpu: Gpu, least_seconds: float) -> Iterator[list[tuple[float, float, float, int]]]:
    """Seconds from the first reading to the last, bytes out and in, and intervals not told, around the block.

    Nothing where there are no counters. Polled by a thread meanwhile.
    """
    totals, line, ending = PcieTotals(), gpu.line, threading.Event()
    told: list[tuple[float, float, float, int]] = []
    readings: list[float] = []

    def poll() -> None:
        while True:
            is_over = ending.is_set()
            try:
                now = gpu.device.byte_counters()
            except ReadError:
                return
            totals.add(None, now, line)
            readings.append(now.at)
            if is_over and now.at - readings[0] >= least_seconds:
                return
            time.sleep(POLL_SECONDS)

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    while not readings and thread.is_alive():
        time.sleep(0.001)
    try:
        yield told
    finally:
        ending.set()
        thread.join()
        if len(readings) > 1:
            told.append((readings[-1] - readings[0], totals.out_bytes, totals.in_bytes, totals.ambiguous))
