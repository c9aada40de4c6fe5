"""``thrashold drill serve`` as a process of its own, and a real sidecar that reads what it serves."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import pytest
from click.testing import CliRunner

from drill.command import drill
from drill.playing.play import Play
from drill.playing.truth import TruthLog
from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.setting import Setting
from exporter.snapshot import Snapshot
from tests.exporter.running import ROOT, clean_environment, running

SERVE = (sys.executable, str(ROOT / "thrashold.py"), "drill", "serve", "overload", "--engines", "1")
START_SECONDS = 60.0
WATCHED_SECONDS = 15.0
LINE = re.compile(r"(?m)^thrashold_(\w+)(\{[^\n]*\})? (\S+)$")
STATE = re.compile(r'state="(\w+)"')


@dataclass(slots=True)
class Served:
    process: subprocess.Popen[bytes]
    out: Path
    _log: IO[bytes]

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read().decode()

    def wait_for(self, words: str) -> str:
        deadline = time.monotonic() + START_SECONDS
        while words not in self.log():
            assert self.process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.05)
        return self.log()


@contextlib.contextmanager
def serving(out: Path, *arguments: str) -> Iterator[Served]:
    with (out / "log").open("w+b") as log:
        process = subprocess.Popen(
            [*SERVE, "--port-base", "0", "--out", str(out), *arguments],
            env=clean_environment(),
            cwd=ROOT,
            stdout=log,
            stderr=log,
        )
        try:
            yield Served(process, out, log)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(30)


Key = tuple[str, str]
"""A signal and the state in its labels, if any: there is one engine and one gateway."""


def of_page(text: str) -> dict[Key, float]:
    found = {}
    for name, labels, value in LINE.findall(text):
        state = STATE.search(labels)
        found[name, state[1] if state else ""] = float(value)
    return found


def of_snapshot(snapshot: Snapshot) -> dict[Key, float]:
    return {
        (
            value.signal.name,
            next((each for each in value.labels if each in {"running", "waiting"}), ""),
        ): value.value
        for value in snapshot.values
        if not value.is_peak
    }


GAUGES: tuple[Key, ...] = (("kv_usage_ratio", ""), ("sequences", "running"), ("sequences", "waiting"))
TOTALS: tuple[Key, ...] = (
    ("generation_tokens_total", ""),
    ("prompt_tokens_total", ""),
    ("preemptions_total", ""),
)
ELSEWHERE: tuple[Key, ...] = (("gateway_requests_total", ""), ("gateway_upstream_requests_total", ""))


def rises(
    values: Mapping[Key, float], since: Mapping[Key, float], keys: tuple[Key, ...]
) -> tuple[float, ...]:
    return tuple(values[key] - since[key] for key in keys)


def test_a_real_sidecar_reads_the_very_values_that_a_run_has_at_the_same_seconds(tmp_path: Path) -> None:
    play = Play(SCENARIOS["overload"].scene(Setting(engines=1)), 1)
    told = [of_snapshot(moment.snapshot) for _, moment in zip(range(60), play.moments(), strict=False)]
    with serving(tmp_path) as served:
        served.wait_for("thrashold exporter --config")
        with running("--config", str(tmp_path / "sidecar.yaml")) as sidecar:
            sidecar.wait_until_ready()
            began = time.monotonic()
            read: list[tuple[float, dict[Key, float]]] = []
            while time.monotonic() < began + WATCHED_SECONDS:
                read.append((time.monotonic() - began, of_page(sidecar.get("/metrics").text)))
                time.sleep(0.5)
            log = sidecar.log()
    assert "reading envoy" in log
    assert "GPUs of dcgm-exporter" in log
    read = [(at, values) for at, values in read if all(key in values for key in (*GAUGES, *TOTALS))]
    places = []
    for _, values in read:
        gauges = [values[key] for key in GAUGES]
        same = [place for place, each in enumerate(told) if [each.get(key) for key in GAUGES] == gauges]
        assert same, gauges
        places.append(same)
    # counters rose as they did between those seconds, which go no faster than the clock
    firsts = [
        first
        for first in places[0]
        if all(
            any(
                rises(values, read[0][1], TOTALS) == rises(told[place], told[first], TOTALS) for place in same
            )
            for same, (_, values) in zip(places, read, strict=True)
        )
    ]
    assert firsts
    first = firsts[0]
    assert 5 <= places[-1][0] - first <= read[-1][0] - read[0][0] + 3
    # the gateway is read at a moment of its own
    seen = [rises(values, read[0][1], ELSEWHERE) for _, values in read]
    shifts = [{rises(each, told[since], ELSEWHERE) for each in told} for since in range(first - 1, first + 2)]
    assert any(set(seen) <= shift for shift in shifts)
    assert len(set(seen)) > 5


def test_ctrl_c_ends_it_at_once_and_well(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        told = served.wait_for("thrashold exporter --config")
        (url,) = re.findall(r"engine engine-0 +http://127.0.0.1:(\d+)/metrics", told)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(url)), 1):
                break
            time.sleep(0.05)
        with contextlib.ExitStack() as waiting:
            # an answer takes 32 ms at least: some are on their way, and some connections say nothing
            for place in range(10):
                reader = waiting.enter_context(socket.create_connection(("127.0.0.1", int(url)), 1))
                if place:
                    reader.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            began = time.monotonic()
            served.process.send_signal(signal.SIGINT)
            assert served.process.wait(20) == 0
        # a second on an idle machine
        assert time.monotonic() - began < 5
        after = served.log().partition("thrashold exporter --config")[2].splitlines()[1:]
        assert after == ["", "ended"]


def test_what_was_true_is_kept_by_the_clock_for_as_long_as_is_asked(tmp_path: Path) -> None:
    began, out = time.time(), str(tmp_path)
    arguments = ["serve", "overload", "--engines", "1", "--port-base", "0", "--out", out]
    result = CliRunner().invoke(drill, [*arguments, "--speed", "20", "--seconds", "20"])
    assert result.output.endswith("the end\n"), result.output
    told = json.loads((tmp_path / "truth.json").read_text())
    scene = replace(SCENARIOS["overload"].scene(Setting(engines=1)), seconds=20)
    log = TruthLog(scene)
    for moment in Play(scene, 1).moments():
        log.see(moment.second)
    true = log.told("overload", [])
    assert (told["engines"], told["fleet"]) == (true["engines"], true["fleet"])
    assert len(told["seconds"]) == 20
    assert told["seconds"] == sorted(told["seconds"])
    assert began < told["seconds"][0] < told["seconds"][-1] < time.time()
    # what hasn't come yet is as late as the newest second was
    late = told["seconds"][-1] - true["seconds"][-1]
    assert told["onset"] - true["onset"] == pytest.approx(late, abs=1e-3)


def test_an_episode_is_as_late_as_the_second_in_which_it_lies() -> None:
    scene = replace(SCENARIOS["overload"].scene(Setting(engines=1)), seconds=10)
    scene = replace(scene, episodes=(replace(scene.episodes[0], onset_seconds=4.5, end_seconds=8.0),))
    log = TruthLog(scene)
    for moment in Play(scene, 1).moments():
        now = moment.second.seconds
        log.see(moment.second, scene.epoch + now + (3.0 if now >= 5 else 0.0) + (4.0 if now >= 9 else 0.0))
    told = log.told("overload", [])
    assert told["onset"] - scene.epoch == pytest.approx(7.5)
    assert told["end"] - scene.epoch == pytest.approx(11.0)


def test_ports_in_use_are_told_of() -> None:
    with contextlib.ExitStack() as stack:
        while True:  # the one below it, which the engine takes, has to be free
            taken = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            port = taken.getsockname()[1]
            with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port - 1)):
                break
        result = CliRunner().invoke(
            drill, ["serve", "overload", "--engines", "1", "--port-base", str(port - 1)]
        )
    assert result.exit_code == 1
    assert f"can't listen on 127.0.0.1:{port} (gateway): Address already in use" in result.output
    assert "--port-base" in result.output


def test_a_host_that_is_not_this_machine_is_no_matter_of_ports() -> None:
    result = CliRunner().invoke(drill, ["serve", "overload", "--host", "203.0.113.1"])
    assert result.exit_code == 1
    assert "give --host an address of this machine" in result.output
    assert "--port-base" not in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], "no scenario 'nothing': `thrashold drill list` has them"),
        (["engine-froze"], "no scenario 'engine-froze': did you mean engine-frozen?"),
        (["overload", "--speed", "0"], "--speed is 0: take a number above 0"),
        (["overload", "--speed", "nan"], "--speed is nan: take a number above 0"),
        (["overload", "--seconds", "0"], "0 is not in the range"),
        (["overload", "--port-base", "70000"], "70000 is not in the range"),
    ],
)
def test_what_cannot_be_served_is_refused(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(drill, ["serve", *arguments])
    assert result.exit_code == 2
    assert words in result.output


def test_an_address_of_nobody_is_told_of() -> None:
    result = CliRunner().invoke(drill, ["serve", "overload", "--host", "192.0.2.1"])
    assert result.exit_code == 1
    assert "can't listen on 192.0.2.1:18000 (engine engine-0)" in result.output
