"""The stack as a user starts it: real programs, killed one by one."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.exporter.running import ROOT, clean_environment
from tests.support.processes import end
from tests.support.prometheus import Prometheus, tool

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]
_COMMAND = (sys.executable, "-m", "thrashold", "stack")
_PORTS = 8
PARTS = ("drill", "sidecar", "desk", "alertmanager", "prometheus")


def _base() -> int:
    """The first of some ports in a row that nobody listens on."""
    for base in range(20_000 + os.getpid() % 9000, 60_000, 70):
        with contextlib.ExitStack() as stack:
            try:
                for port in range(base, base + _PORTS):
                    stack.enter_context(contextlib.closing(socket.create_server(("127.0.0.1", port))))
            except OSError:
                continue
            return base
    raise RuntimeError("no ports")


@dataclass
class Stack:
    process: subprocess.Popen[str]
    base: int
    folder: Path
    said: list[str]

    @property
    def prometheus(self) -> Prometheus:
        return Prometheus(f"http://127.0.0.1:{self.base + 2}")

    def pid(self, part: str) -> int:
        """Of a part that runs: it is the stack's own child."""
        kids = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        word = {"drill": "drill", "sidecar": "exporter"}.get(part, part)
        for kid in kids:
            with contextlib.suppress(OSError):
                command = Path(f"/proc/{kid}/cmdline").read_bytes().split(b"\0")
                texts = [each.decode() for each in command]
                if word in texts or Path(texts[0]).name.endswith(word):
                    return int(kid)
        raise AssertionError(f"no {part} among {kids}")


def _until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.1)


def _holds(ask: Callable[[], bool]) -> Callable[[], bool]:
    def asked() -> bool:
        try:
            return ask()
        except (httpx.HTTPError, AssertionError):
            return False

    return asked


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    for program, package in (
        ("prometheus", "prometheus"),
        ("prometheus-alertmanager", "prometheus-alertmanager"),
    ):
        tool(program, package)
    folder, base = tmp_path_factory.mktemp("stack"), _base()
    process = subprocess.Popen(
        [*_COMMAND, "--data", str(folder), "--port-base", str(base)],
        cwd=ROOT,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said: list[str] = []
    assert process.stdout is not None
    reader = threading.Thread(target=said.extend, args=(process.stdout,), daemon=True)
    reader.start()
    try:
        _until(lambda: any("all of it runs" in line for line in said) or process.poll() is not None)
        assert process.poll() is None, "".join(said)
        yield Stack(process, base, folder, said)
    finally:
        end(process)
        reader.join(10.0)
        process.stdout.close()


def test_what_is_scraped_comes_through_the_rules(stack: Stack) -> None:
    def evaluated() -> bool:
        now = time.time()
        found = stack.prometheus.query_range("cluster:thrashold_engine_info:count", now, now, 15)
        return [list(values.values()) for values in found.values()] == [[2.0]]

    _until(_holds(evaluated), 90)
    assert {group["name"] for group in stack.prometheus.groups()} >= {"thrashold-swap", "thrashold-fleet"}


def test_alertmanager_tells_the_desk(stack: Stack) -> None:
    status = httpx.get(f"http://127.0.0.1:{stack.base + 3}/api/v2/status", trust_env=False).json()
    assert f"url: http://127.0.0.1:{stack.base + 1}/alerts" in status["config"]["original"]


@pytest.mark.parametrize("part", PARTS)
def test_what_is_killed_comes_back(stack: Stack, part: str) -> None:
    killed = stack.pid(part)
    os.kill(killed, signal.SIGKILL)
    _until(_holds(lambda: stack.pid(part) != killed))
    urls = {
        "drill": stack.base + 5,
        "sidecar": stack.base,
        "desk": stack.base + 1,
        "alertmanager": stack.base + 3,
        "prometheus": stack.base + 2,
    }
    path = "/-/healthy" if part == "desk" else "/metrics"
    _until(_holds(lambda: httpx.get(f"http://127.0.0.1:{urls[part]}{path}", trust_env=False).is_success))
    assert any(f"{part} died (SIGKILL)" in line for line in stack.said)


def test_ports_that_are_held_are_refused_before_anything_starts(stack: Stack, tmp_path: Path) -> None:
    done = subprocess.run(
        [*_COMMAND, "--data", str(tmp_path / "other"), "--port-base", str(stack.base)],
        cwd=ROOT,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert f"somebody listens on {stack.base}, " in done.stderr
    assert not (tmp_path / "other").exists()


def test_ctrl_c_ends_all_of_it(stack: Stack) -> None:
    pids = [stack.pid(part) for part in PARTS]
    stack.process.send_signal(signal.SIGINT)
    assert stack.process.wait(60) == 0
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    _until(lambda: "ended\n" in stack.said, 5)


def test_what_is_not_here_is_said_and_the_rest_runs(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    process = subprocess.Popen(
        [*_COMMAND, "--data", str(tmp_path / "stack"), "--port-base", str(_base())],
        cwd=ROOT,
        env=clean_environment({"PATH": str(tmp_path / "bin")}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    said = []
    try:
        for line in process.stdout:
            said.append(line)
            if "all of it runs" in line:
                break
    finally:
        end(process)
        process.stdout.close()
    assert "Prometheus is not here: apt-get install prometheus, or https://prometheus.io/download/\n" in said
    assert [line.split()[0] for line in said if "http://127" in line] == ["drill", "sidecar", "desk"]


def test_two_ways_to_name_engines_and_a_drill_that_is_none(tmp_path: Path) -> None:
    def refused(*arguments: str) -> str:
        done = subprocess.run(
            [*_COMMAND, "--data", str(tmp_path / "s"), "--port-base", str(_base()), *arguments],
            cwd=ROOT,
            env=clean_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in {1, 2}
        return done.stderr

    file = tmp_path / "sidecar.yaml"
    file.write_text("engines: [{url: http://127.0.0.1:1}]\n")
    assert "give one of them" in refused("--engine", "http://127.0.0.1:1", "--config", str(file))
    assert "no scenario 'nothing'" in refused("--drill", "nothing")
    file.write_text("thresholds: {kv_usage_full_ratio: 90}\n")
    assert "kv_usage_full_ratio" in refused("--alerts", str(file))
