"""What reading eight GPUs costs, and whether all bytes are counted, beside nvitop-exporter on the same fake library.

One drive of a minute serves all figures: bursts up to the line go over PCIe by the machine's clock while real
processes read the GPUs and their CPU is taken. Three kinds of eight GPUs are read at once: H100s, by profiling once
a second; A100s, by byte counters as often as their links ask for; and A100s on a link that asks for 10 Hz.
A sidecar without GPUs on the same engine tells what they add to the sidecar's own process.

CPU bars are held against the calmest slice of 10 s, in which everything that is read at all is read; ratios are
taken over the whole minute. The fake library's own share is stated: whoever reads pays it.
"""

from __future__ import annotations

import ctypes
import http.client
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median

from drill.fake_nvml import A100, H100, BuildError, Control, Profile, build
from tests.bench import peers, report
from tests.bench.gpu_drive import Drive, Verdict, compare, counted, truth
from tests.bench.gpu_readers import Watched, nvitop, page, sampler_alone, sampler_of
from tests.bench.report import Figure
from tests.bench.stage import engine, sidecar

BAR_CPU_1HZ, BAR_CPU_10HZ = 0.5, 2.0
BAR_RSS_MB = 20.0
BAR_CPU_RATIO, BAR_LATENCY_RATIO = 1 / 3, 1 / 5
BAR_BYTES_PERCENT = 0.5

_GPUS = 8
_TEN_HERTZ = replace(A100, width=11)
"""No slot has 11 lanes: half of what they wrap in is 0.099 s."""
_SLICES, _SLICE_SECONDS = 6, 10.0
_REST_SECONDS = 3.0
_SCRAPE_SECONDS = 5.0
_LATENCY_ROUNDS, _LATENCY_PAUSE_SECONDS = 15, 1.05
_LAG_US = 70_000
_BURSTS = {"h100": 40e9, "a100": 28e9}
_CALLS = 50_000


@contextmanager
def _scraping(ports: Iterable[int]) -> Iterator[None]:
    """Scrape as Prometheus would, all pages alike."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(_SCRAPE_SECONDS):
            for port in ports:
                page(port)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield
    stop.set()
    thread.join()


def _latencies(ports: Mapping[str, int]) -> dict[str, float]:
    """The median milliseconds of a scrape, in turns, each of numbers not yet scraped.

    As Prometheus does it: over a connection that is kept, where the server keeps it.
    """
    found: dict[str, list[float]] = {name: [] for name in ports}
    connections = {
        name: http.client.HTTPConnection("127.0.0.1", port, timeout=10) for name, port in ports.items()
    }
    for _ in range(_LATENCY_ROUNDS):
        time.sleep(_LATENCY_PAUSE_SECONDS)
        for name, connection in connections.items():
            began = time.perf_counter()
            connection.request("GET", "/metrics")
            size = len(connection.getresponse().read())
            found[name].append((time.perf_counter() - began) * 1e3)
            if len(found[name]) == _LATENCY_ROUNDS:
                report.line(f"  a page of {name}: {size / 1e3:.0f} kB")
    return {name: median(milliseconds) for name, milliseconds in found.items()}


def _microseconds_a_call(library: Path, control: Control) -> float:
    """What a call of the fake library takes at most: with what it takes to call it from here."""
    os.environ.update(control.environment(library))
    fake = ctypes.CDLL(str(library))
    gpu, answer = ctypes.c_void_p(), ctypes.c_uint()
    fake.nvmlInitWithFlags(0)
    fake.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(gpu))
    began = time.thread_time()
    for _ in range(_CALLS):
        fake.nvmlDeviceGetTemperature(gpu, 0, ctypes.byref(answer))
    seconds = time.thread_time() - began
    fake.nvmlShutdown()
    return seconds / _CALLS * 1e6


def _gpus(stack: ExitStack, folder: Path, name: str, profile: Profile, count: int = _GPUS) -> Control:
    control = stack.enter_context(Control(folder / name, [profile] * count))
    for index in range(count):
        control.device(index).gpm_lag_us = _LAG_US
        control.traffic(index, transmit=0.0, receive=0.0)
    return control


def main() -> None:
    """Prints the figures."""
    if not Path("/proc/self/smaps_rollup").exists():
        report.loud("reading GPUs is not measured: this needs Linux's /proc")
        return
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        try:
            library = build(folder / "nvml")
        except BuildError as error:
            report.loud(f"reading GPUs is not measured: {error}")
            return
        _measured(stack, folder, library)


def _measured(stack: ExitStack, folder: Path, library: Path) -> None:
    profiles = {"h100": H100, "a100": A100, "ten": _TEN_HERTZ, "peer": H100}
    controls = {name: _gpus(stack, folder, name, profile) for name, profile in profiles.items()}
    environments = {name: control.environment(library) for name, control in controls.items()}
    source = stack.enter_context(engine("vllm-0.32.0", 3))
    command = [sys.executable, "-m", "thrashold"]
    running = {}
    for port, (name, gpus) in zip(
        source.ports, {"h100": "always", "a100": "always", "none": "never"}.items(), strict=True
    ):
        (folder / f"of-{name}").mkdir()
        started = sidecar(command, port, folder / f"of-{name}", ["--gpus", gpus], environments.get(name))
        running[name] = stack.enter_context(started)
    watched = {f"sidecar {name}": Watched(each.process.pid) for name, each in running.items()}
    watched |= {f"sampler {name}": Watched(sampler_of(running[name].process.pid)) for name in _BURSTS}
    watched["sampler ten"] = Watched(stack.enter_context(sampler_alone(environments["ten"])))
    single = _gpus(stack, folder, "single", H100, 1).environment(library)
    watched["sampler of one H100"] = Watched(stack.enter_context(sampler_alone(single)))
    ports = {"ours": running["h100"].port}
    peer = peers.nvitop()
    if peer is not None:
        try:
            pid, ports["nvitop"] = stack.enter_context(nvitop(peer, environments["peer"], folder))
            watched["nvitop"] = Watched(pid)
        except (OSError, RuntimeError) as error:
            report.loud(f"peer nvitop-exporter does not run: {error}")
    latencies = _latencies(ports)  # while all get warm

    before = {name: counted(page(running[name].port)) for name in _BURSTS}
    began = {name: truth(controls[name]) for name in _BURSTS}
    calls = {name: control.calls for name, control in controls.items()}
    with ExitStack() as driving:
        for seed, (name, control) in enumerate(controls.items()):
            driving.enter_context(Drive(control, _BURSTS.get(name, 21e9), seed))
        driving.enter_context(_scraping(ports.values()))
        for each in watched.values():
            each.look()
        for _ in range(_SLICES):
            time.sleep(_SLICE_SECONDS)
            for each in watched.values():
                each.look()
    seconds = _SLICES * _SLICE_SECONDS
    rates = {name: (control.calls - calls[name]) / seconds for name, control in controls.items()}
    time.sleep(_REST_SECONDS)
    for name in _BURSTS:
        after = counted(page(running[name].port))
        _tell_bytes(name, compare(before[name], after, began[name], truth(controls[name])))
    _tell_cost(watched)
    _tell_fake(_microseconds_a_call(library, controls["h100"]), rates)
    if "nvitop" in watched:
        _tell_peer(watched, latencies)


def _tell_fake(microseconds: float, rates: Mapping[str, float]) -> None:
    """What the fake library itself takes of whoever calls it."""
    for name, who in (("h100", "sampler h100"), ("a100", "sampler a100"), ("peer", "nvitop-exporter")):
        share = rates[name] * microseconds / 1e4
        report.line(
            f"  {who}: {rates[name]:.0f} calls of the fake library a second, at most {share:.4f} % of a core"
        )


def _tell_bytes(name: str, verdict: Verdict) -> None:
    total = 2 * _GPUS
    report.line(
        f"  {name}: {total - verdict.sure} of {total} sums marked ambiguous ({verdict.intervals:.0f} intervals),"
        f" at most {verdict.missing:.2f} % missing in them"
    )
    if verdict.sure:
        report.record(Figure(f"{name}: PCIe bytes off, unmarked", verdict.silent, "%", BAR_BYTES_PERCENT))
    report.record(Figure(f"{name}: PCIe bytes too many, marked", verdict.above, "%", BAR_BYTES_PERCENT))


def _tell_cost(watched: Mapping[str, Watched]) -> None:
    for name, each in watched.items():
        slices = each.slices
        report.line(
            f"  {name}: {each.cpu:.2f} % of a core, {min(slices):.2f} to {max(slices):.2f} in slices; {each.rss:.1f} MB"
        )
    for name, kind, bar in (
        ("h100", "8 H100 at 1 Hz", BAR_CPU_1HZ),
        ("ten", "8 A100 at 10 Hz", BAR_CPU_10HZ),
        ("a100", "8 A100 at 14.7 Hz", None),
    ):
        sampler = watched[f"sampler {name}"]
        report.record(Figure(f"sampler CPU, {kind}, best slice", min(sampler.slices), "% of a core", bar))
        report.record(Figure(f"sampler RSS, {kind}", sampler.rss, "MB", BAR_RSS_MB))
    with_gpus, without = watched["sidecar h100"], watched["sidecar none"]
    report.record(Figure("8 GPUs add to the sidecar's CPU", with_gpus.cpu - without.cpu, "% of a core"))
    report.record(Figure("8 GPUs add to the sidecar's RSS", with_gpus.rss - without.rss, "MB"))


def _tell_peer(watched: Mapping[str, Watched], latencies: Mapping[str, float]) -> None:
    """Ours for GPUs: the sampler, and what its GPUs add to the sidecar, which reads an engine as well."""
    nvitop, sidecar_of, sampler = watched["nvitop"], watched["sidecar h100"], watched["sampler h100"]
    added = sidecar_of.cpu - watched["sidecar none"].cpu
    ours, theirs = (latencies[name] for name in ("ours", "nvitop"))
    report.line(
        f"  RSS: ours {sidecar_of.rss:.1f} MB and {sampler.rss:.1f} MB, nvitop-exporter's {nvitop.rss:.1f} MB;"
        f" a scrape: ours {ours:.1f} ms, nvitop-exporter's {theirs:.1f} ms"
    )
    report.line(
        f"  with its engine and all signals, ours takes {(sidecar_of.cpu + sampler.cpu) / nvitop.cpu:.2f}x the CPU"
    )
    ratio = (added + sampler.cpu) / nvitop.cpu
    report.record(Figure("CPU for GPUs, both processes, over nvitop-exporter's", ratio, "x", BAR_CPU_RATIO))
    report.record(Figure("scrape latency over nvitop-exporter's", ours / theirs, "x", BAR_LATENCY_RATIO))


if __name__ == "__main__":
    report.standalone(main)
