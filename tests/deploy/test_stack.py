"""The stack as a user starts it: real programs, killed one by one."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.exporter.running import ROOT, clean_environment
from tests.support.processes import end
from tests.support.prometheus import tool
from tests.support.stack import COMMAND, RunningStack, holds, port_base, running_stack, until

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]
PARTS = ("drill", "sidecar", "desk", "alertmanager", "prometheus")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    for program, package in (
        ("prometheus", "prometheus"),
        ("prometheus-alertmanager", "prometheus-alertmanager"),
    ):
        tool(program, package)
    with running_stack(tmp_path_factory.mktemp("stack")) as found:
        yield found


def test_what_is_scraped_comes_through_the_rules(stack: RunningStack) -> None:
    def evaluated() -> bool:
        now = time.time()
        found = stack.prometheus.query_range("cluster:thrashold_engine_info:count", now, now, 15)
        return [list(values.values()) for values in found.values()] == [[2.0]]

    until(holds(evaluated), 90)
    assert {group["name"] for group in stack.prometheus.groups()} >= {"thrashold-swap", "thrashold-fleet"}


def test_alertmanager_tells_the_desk(stack: RunningStack) -> None:
    status = httpx.get(f"http://127.0.0.1:{stack.base + 3}/api/v2/status", trust_env=False).json()
    assert f"url: http://127.0.0.1:{stack.base + 1}/alerts" in status["config"]["original"]


@pytest.mark.parametrize("part", PARTS)
def test_what_is_killed_comes_back(stack: RunningStack, part: str) -> None:
    killed = stack.pid(part)
    os.kill(killed, signal.SIGKILL)
    until(holds(lambda: stack.pid(part) != killed))
    path = "/-/healthy" if part == "desk" else "/metrics"
    until(holds(lambda: httpx.get(f"{stack.url(part)}{path}", trust_env=False).is_success))
    assert any(f"{part} died (SIGKILL)" in line for line in stack.said)


def test_ports_that_are_held_are_refused_before_anything_starts(stack: RunningStack, tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "--data", str(tmp_path / "other"), "--port-base", str(stack.base)],
        cwd=ROOT,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert f"somebody listens on {stack.base}, " in done.stderr
    assert not (tmp_path / "other").exists()


def test_ctrl_c_ends_all_of_it(stack: RunningStack) -> None:
    pids = [stack.pid(part) for part in PARTS]
    stack.process.send_signal(signal.SIGINT)
    assert stack.process.wait(60) == 0
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    until(lambda: "ended\n" in stack.said, 5)


def test_what_is_not_here_is_said_and_the_rest_runs(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    process = subprocess.Popen(
        [*COMMAND, "--data", str(tmp_path / "stack"), "--port-base", str(port_base())],
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
    (tmp_path / "bin").mkdir()

    def refused(*arguments: str) -> str:
        done = subprocess.run(
            [*COMMAND, "--data", str(tmp_path / "s"), "--port-base", str(port_base()), *arguments],
            cwd=ROOT,
            env=clean_environment({"PATH": str(tmp_path / "bin")}),
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
    assert "--envoy stands before engines that --engine names" in refused("--envoy")
    assert "--envoy: Envoy is not here: https://" in refused("--envoy", "--engine", "http://127.0.0.1:1")
    assert "--scrape-seconds" in refused("--scrape-seconds", "16")
    envoy = tmp_path / "bin" / "envoy"
    envoy.write_text("#!/bin/sh\n")
    envoy.chmod(0o755)
    assert "at http://HOST:PORT" in refused("--envoy", "--engine", "https://127.0.0.1:1")
