"""The run itself: an engine, a sidecar beside it, load, stops and a kill. It judges nothing.

About 255 s once the engine is installed. Every process it ends is one it has started, by its id.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import httpx

from tests.real_engine import gateway_run, install, serve
from tests.real_engine.install import Installed, Say
from tests.real_engine.recorder import Recorder
from tests.real_engine.recording import Marks
from tests.real_engine.serve import Engine

HERE = Path(__file__).parent
LOAD_SECONDS = 8.0
OVERLOAD_SECONDS = 60.0  # shorter ones leave the sums of few instants to chance
QUIET_SECONDS = 5.0
TOGGLE_SECONDS = 18.0
SHORT_STOP_SECONDS = 5.0
LONG_STOP_SECONDS = 40.0
GONE_SECONDS = 15.0
AFTER_GONE_SECONDS = 21.0
SIDECAR_UP_SECONDS = 15.0
TICKS = os.sysconf("SC_CLK_TCK")


def record(out: Path, say: Say, sidecar: Sequence[str | Path] | None = None) -> None:
    """Run everything once and leave its traces in ``out``.

    ``sidecar`` is its command line up to the options; this checkout's own unless given. Raises
    ``install.UnavailableError`` where there can be no engine.
    """
    made = install.ensure(say)
    install.add_oracle(made)
    install.add_probe(made)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    marks = Marks(out / "marks.jsonl")
    model = out / "model"
    subprocess.run([made.python, HERE / "model.py", model], check=True, capture_output=True)
    with ExitStack() as closing:
        # a socket's path has 107 bytes at most, and a checkout may lie deep
        place = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="thrashold-"))) / "probe.sock"
        told = {"THRASHOLD_PROBE_SOCKET": str(place), "THRASHOLD_TOGGLE": str(out / "toggle")}
        engine = serve.start(made, model, out / "oracle.jsonl", out / "engine.log", environment=told)
        closing.callback(engine.stop)
        gateways = closing.enter_context(gateway_run.serving(engine.port, out))
        command = sidecar or [sys.executable, "-m", "thrashold", "exporter"]
        watcher, url = _start_sidecar(
            [*command, "--engine", engine.url, *gateways.flags], out / "sidecar.log"
        )
        closing.callback(serve.stop, watcher)
        probed, probed_url = _start_sidecar(
            [*command, "--config", _probed(engine, place, out)], out / "probed.log"
        )
        closing.callback(serve.stop, probed)
        for at, name in ((url, "sidecar.jsonl"), (probed_url, "probed.jsonl")):
            recorder = Recorder(at, out / name)
            recorder.start()
            closing.callback(recorder.stop)
        marks("watching", engine=engine.address)
        say("engine: starting ...")
        say(f"engine: ready after {engine.wait_ready():.0f} s")
        marks("ready")
        _under_load(made, engine, out, marks, say)
        gateway_run.record(gateways, engine.url, url, out, say)
        _toggled(made, engine, out, marks, say)
        _stopped_and_killed(made, engine, out, marks, say)
        _cost(watcher.pid, marks)


def _probed(engine: Engine, place: Path, out: Path) -> Path:
    """Settings for a sidecar that hears the probe."""
    file = out / "probed.yaml"
    file.write_text(f"engines:\n  - {{url: {engine.url}, probe: {place}}}\n")
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


def _under_load(made: Installed, engine: Engine, out: Path, marks: Marks, say: Say) -> None:
    for phase, seconds in (("load", LOAD_SECONDS), ("overload", OVERLOAD_SECONDS)):
        say(f"{phase}: {seconds:.0f} s and what is still running then")
        marks(phase)
        driver = _drive(made, engine, phase, seconds, out)
        driver.wait()
        marks(f"{phase}_over")
    time.sleep(QUIET_SECONDS)
    marks("quiet_over")


def _toggled(made: Installed, engine: Engine, out: Path, marks: Marks, say: Say) -> None:
    """The probe is off for some steps and on for as many, by turns."""
    say(f"the probe off and on: {TOGGLE_SECONDS:.0f} s")
    switch = out / "toggle"
    switch.touch()
    marks("toggle")
    driver = _drive(made, engine, "toggled", TOGGLE_SECONDS, out)
    time.sleep(TOGGLE_SECONDS)
    switch.unlink()
    driver.wait()
    marks("toggle_over")


def _stopped_and_killed(made: Installed, engine: Engine, out: Path, marks: Marks, say: Say) -> None:
    """Requests run on while their engine stands still twice; then its core dies under the next ones."""
    core = engine.core()
    lead, rest, tail = 4.0, 5.0, 4.0
    steady = _drive(made, engine, "steady", lead + SHORT_STOP_SECONDS + rest + LONG_STOP_SECONDS, out)
    time.sleep(lead)
    for name, seconds, after in (("short", SHORT_STOP_SECONDS, rest), ("long", LONG_STOP_SECONDS, tail)):
        say(f"the engine core stands still for {seconds:.0f} s")
        marks(f"{name}_stop")
        os.kill(core, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(core, signal.SIGCONT)
        marks(f"{name}_stop_over")
        time.sleep(after)
        marks(f"{name}_stop_settled")
    steady.wait()
    doomed = _drive(made, engine, "doomed", 30.0, out)
    time.sleep(3.0)
    say("the engine core is killed")
    marks("kill")
    os.kill(core, signal.SIGKILL)
    engine.process.wait(GONE_SECONDS)  # the front end sees its core die and goes too, seconds later
    marks("gone")
    time.sleep(AFTER_GONE_SECONDS)
    marks("over")
    serve.stop(doomed)


def _drive(made: Installed, engine: Engine, phase: str, seconds: float, out: Path) -> subprocess.Popen[bytes]:
    log = out / "clients.jsonl"
    return subprocess.Popen([made.python, HERE / "drive.py", engine.url, phase, str(seconds), log])


def _cost(process: int, marks: Marks) -> None:
    """What the sidecar took of the machine, while it still lives."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    status = Path(f"/proc/{process}/status").read_text()
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS:")).split()[1]
    cpu_seconds = (int(fields[11]) + int(fields[12])) / TICKS
    marks("cost", sidecar_cpu_seconds=cpu_seconds, sidecar_resident_bytes=float(resident) * 1024)
