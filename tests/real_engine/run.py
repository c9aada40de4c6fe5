"""The run itself: an engine, a sidecar beside it, load, stops and a kill. It judges nothing.

About 260 s on two idle cores once all is installed, 30 of them the engine's start. A llama.cpp server is watched beside
it, while the engine core stands still. Every process it ends is one it has started, by its id.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx

from tests.real_engine import gateway_run, install, serve
from tests.real_engine.install import Installed, Say
from tests.real_engine.kv_events_run import KvEvents
from tests.real_engine.llamacpp import llamacpp_run
from tests.real_engine.llamacpp.engine import ensure as ensure_llamacpp
from tests.real_engine.recorder import Recorder, Value, parse
from tests.real_engine.recording import Marks
from tests.real_engine.serve import Engine
from tests.real_engine.triage_run import SETTLED_SECONDS, TriageRun

HERE = Path(__file__).parent
LOAD_SECONDS = 8.0
OVERLOAD_SECONDS = 60.0  # shorter ones leave the sums of few instants to chance
QUIET_SECONDS = 4.0
"""After the engine's last step: the probe's message, a cycle and a scrape, each a second, and one to spare."""
DRAIN_SECONDS, LONG_DRAIN_SECONDS = 25.0, 300.0
TOGGLED_STEPS, TOGGLE_SECONDS = 1000, 60.0
SHORT_STOP_SECONDS = 5.0
LONG_STOP_SECONDS = 33.0
"""At least: a frozen engine is told of after 30 s, or after three times its longest prefill, if that is longer."""
PATIENCE_SECONDS = 60.0
"""How much longer than usual to wait for what a busy machine delays; the judges see how long it was."""
GONE_SECONDS = 60.0
AFTER_GONE_SECONDS = 2.0
"""After the last signal of the engine: another scrape that has none."""
SIDECAR_UP_SECONDS = 60.0
TICKS = os.sysconf("SC_CLK_TCK")


def record(out: Path, say: Say, sidecar: Sequence[str | Path] | None = None) -> None:
    """Run everything once and leave its traces in ``out``.

    ``sidecar`` is its command line up to the options; this checkout's own unless given. Raises
    ``install.UnavailableError`` where there can be no engine.
    """
    made = install.ensure(say)
    install.add_oracles(made)
    install.add_probe(made)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    marks = Marks(out / "marks.jsonl")
    model = out / "model"
    subprocess.run([made.python, HERE / "model.py", model], check=True, capture_output=True)
    with ExitStack() as closing:
        # a socket's path has 107 bytes at most, and a checkout may lie deep
        place = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="thrashold-"))) / "probe.sock"
        kv_events = KvEvents(out)
        closing.callback(kv_events.close)
        told = {
            "THRASHOLD_ORACLE": str(out / "oracle.jsonl"),
            "THRASHOLD_PROBE_SOCKET": str(place),
            "THRASHOLD_TOGGLE": str(out / "toggle"),
            **kv_events.environment,
        }
        engine = serve.start(made, model, out / "engine.log", kv_events.flags, told)
        closing.callback(engine.stop)
        gateways = closing.enter_context(gateway_run.serving(engine.port, out))
        command = sidecar or [sys.executable, "-m", "thrashold", "exporter"]
        watcher, url = _start_sidecar(
            [*command, "--engine", engine.url, *gateways.flags], out / "sidecar.log"
        )
        closing.callback(serve.stop, watcher)
        probed, probed_url = _start_sidecar(
            [*command, "--config", _probed(engine, place, kv_events, out)], out / "probed.log"
        )
        closing.callback(serve.stop, probed)
        for at, name in ((url, "sidecar.jsonl"), (probed_url, "probed.jsonl")):
            recorder = Recorder(at, out / name)
            recorder.start()
            closing.callback(recorder.stop)
        marks("watching", engine=engine.address)
        triage = TriageRun(engine.url, probed_url, out)
        say("engine: starting ...")
        ensure_llamacpp()
        say(f"engine: ready after {engine.wait_ready():.0f} s")
        marks("ready")
        kv_events.join()
        # nobody hears of what is published before he is connected
        _wait_for(lambda: _up(probed_url, f"{engine.address}/kv_events"))
        triage.ask("idle")
        _under_load(made, engine, kv_events, out, marks, say, triage)
        gateway_run.record(gateways, engine.url, url, out, say)
        _toggled(made, engine, out, marks, say)
        _stopped_and_killed(made, engine, out, marks, say, url, probed_url, triage)
        _cost(watcher.pid, marks)


def _probed(engine: Engine, place: Path, kv_events: KvEvents, out: Path) -> Path:
    """Settings for a sidecar that hears the probe and takes KV events in."""
    file = out / "probed.yaml"
    told = {"url": engine.url, "probe": str(place), "kv_events": kv_events.settings}
    file.write_text(json.dumps({"engines": [told]}))  # YAML too
    return file


def _start_sidecar(command: Sequence[str | Path], log: Path) -> tuple[subprocess.Popen[bytes], str]:
    """The sidecar's process and its /metrics, which must answer long before the engine does."""
    address = f"127.0.0.1:{serve.free_port()}"
    whole = [*command, "--listen", address]
    with log.open("wb") as sink:
        process = subprocess.Popen(whole, cwd=install.ROOT, stdout=sink, stderr=subprocess.STDOUT)
    url = f"http://{address}/metrics"
    until = time.monotonic() + SIDECAR_UP_SECONDS
    while process.poll() is None and time.monotonic() < until:
        try:
            httpx.get(url, timeout=1.0, trust_env=False).raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.1)
        else:
            return process, url
    serve.stop(process)
    raise RuntimeError(f"the sidecar never answered; the end of its log:\n{serve.end_of(log)}")


def _under_load(  # noqa: PLR0913, PLR0917 -- all that load needs
    made: Installed,
    engine: Engine,
    kv_events: KvEvents,
    out: Path,
    marks: Marks,
    say: Say,
    triage: TriageRun,
) -> None:
    for phase, seconds in (("load", LOAD_SECONDS), ("overload", OVERLOAD_SECONDS)):
        say(f"{phase}: {seconds:.0f} s and what is still running then")
        marks(phase)
        driver = _drive(made, engine, phase, seconds, out)
        if phase == "overload":
            kv_events.cut_for_a_while()
        time.sleep(SETTLED_SECONDS)
        triage.ask(phase)
        driver.wait()
        marks(f"{phase}_over")
    _wait_for(lambda: _at_rest(engine))
    time.sleep(QUIET_SECONDS)
    marks("quiet_over")


def _at_rest(engine: Engine) -> bool:
    page = httpx.get(f"{engine.url}/metrics", timeout=30.0, trust_env=False).text
    counts = [
        line
        for line in page.splitlines()
        if line.startswith(("vllm:num_requests_running{", "vllm:num_requests_waiting{"))
    ]
    return all(float(line.rpartition(" ")[2]) == 0 for line in counts)


def _frozen(url: str) -> bool:
    return any(value.name == "engine_frozen" and value.value == 1.0 for value in _said(url))


def _up(url: str, source: str) -> bool:
    return any(
        value.name == "source_up" and value.labels.get("source") == source and value.value == 1.0
        for value in _said(url)
    )


def _said(url: str) -> list[Value]:
    return parse(httpx.get(url, timeout=30.0, trust_env=False).text)


def _wait_for(wanted: Callable[[], bool]) -> None:
    """Until it holds, or for ``PATIENCE_SECONDS``."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until and not wanted():
        time.sleep(0.5)


def _toggled(made: Installed, engine: Engine, out: Path, marks: Marks, say: Say) -> None:
    """The probe is off for some steps and on for as many, by turns, for as many steps as a judgement takes."""
    say(f"the probe off and on: {TOGGLED_STEPS} steps")
    switch, lines = out / "toggle", out / "toggle.jsonl"
    switch.touch()
    marks("toggle")
    driver = _drive(made, engine, "toggled", TOGGLE_SECONDS, out)
    until = time.monotonic() + TOGGLE_SECONDS
    while time.monotonic() < until and lines.read_bytes().count(b"\n") < TOGGLED_STEPS:
        time.sleep(0.5)
    switch.unlink()
    serve.stop(driver)
    marks("toggle_over")


def _stopped_and_killed(  # noqa: PLR0913, PLR0917 -- what to stop, where to tell of it, and who sees it
    made: Installed,
    engine: Engine,
    out: Path,
    marks: Marks,
    say: Say,
    url: str,
    probed_url: str,
    triage: TriageRun,
) -> None:
    """Requests run on while their engine stands still twice; then its core dies under the next ones."""
    core = engine.core()
    lead, rest, tail = 4.0, 5.0, 3.0
    # until the long stop has begun: who asks then waits until it is over
    asking = lead + SHORT_STOP_SECONDS + rest + 5.0
    steady = _drive(made, engine, "steady", asking, out, drain=LONG_DRAIN_SECONDS)
    time.sleep(lead)
    _stand_still(core, "short", lambda: time.sleep(SHORT_STOP_SECONDS), marks, say)
    time.sleep(rest)
    marks("short_stop_settled")

    def frozen() -> None:
        began = time.monotonic()
        time.sleep(SETTLED_SECONDS)
        triage.ask("standing")
        time.sleep(max(0.0, began + LONG_STOP_SECONDS - time.monotonic()))
        _wait_for(lambda: _frozen(url) and _frozen(probed_url))
        triage.ask("frozen")
        time.sleep(tail)

    def back() -> bool:
        return not _frozen(url) and any(value.name == "probed_signal_info" for value in _said(probed_url))

    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(llamacpp_run.record, out)  # it needs the core that is idle now
        _stand_still(core, "long", frozen, marks, say)
        _wait_for(back)
        time.sleep(tail)
        marks("long_stop_settled")
        steady.wait()
        doomed = _drive(made, engine, "doomed", 30.0, out)
        time.sleep(3.0)
        say("the engine core is killed")
        marks("kill")
        os.kill(core, signal.SIGKILL)
        engine.process.wait(GONE_SECONDS)  # the front end sees its core die and goes too, seconds later
        marks("gone")
        triage.ask("gone")
        _wait_for(lambda: not any(value.kind == "gauge" and "engine" in value.labels for value in _said(url)))
        time.sleep(AFTER_GONE_SECONDS)
        marks("over")
        serve.stop(doomed)
        beside.result()


def _stand_still(core: int, name: str, wait: Callable[[], None], marks: Marks, say: Say) -> None:
    say(f"the engine core stands still, the {name} time")
    marks(f"{name}_stop")
    os.kill(core, signal.SIGSTOP)
    try:
        wait()
    finally:
        os.kill(core, signal.SIGCONT)
    marks(f"{name}_stop_over")


def _drive(  # noqa: PLR0913 -- who asks whom, and for how long
    made: Installed, engine: Engine, phase: str, seconds: float, out: Path, *, drain: float = DRAIN_SECONDS
) -> subprocess.Popen[bytes]:
    log = out / "clients.jsonl"
    command = [made.python, HERE / "drive.py", engine.url, phase, str(seconds), str(drain), log]
    return subprocess.Popen(command)


def _cost(process: int, marks: Marks) -> None:
    """What the sidecar took of the machine, while it still lives."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    status = Path(f"/proc/{process}/status").read_text()
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS:")).split()[1]
    cpu_seconds = (int(fields[11]) + int(fields[12])) / TICKS
    marks("cost", sidecar_cpu_seconds=cpu_seconds, sidecar_resident_bytes=float(resident) * 1024)
