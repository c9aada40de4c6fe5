"""The way from the probe to the sidecar, over real Unix sockets and real processes."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exporter.probe import thrashold_probe
from exporter.probe.thrashold_probe import Line, install
from tests.exporter.probe.schedulers import Request, listening, received, scheduler_class

PATIENCE_SECONDS = 20.0
SOURCES = Path(thrashold_probe.__file__).parent


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thrashold_probe, "BEAT_SECONDS", 0.02)
    monkeypatch.setattr(thrashold_probe, "LOOK_SECONDS", 0.01)


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def watched(path: Path, **how: object) -> Any:  # noqa: ANN401 - a made-up scheduler
    made = scheduler_class()
    install(made, str(path))
    return made(**how)


def off(scheduler: Any) -> None:  # noqa: ANN401
    """End its thread."""
    scheduler._thrashold._patch.is_over = True  # noqa: SLF001
    scheduler._thrashold.thread.join(PATIENCE_SECONDS)  # noqa: SLF001


def test_an_idle_engine_says_that_it_is_there(tmp_path: Path) -> None:
    with listening(tmp_path / "s") as listener:
        scheduler = watched(tmp_path / "s", rank=3)
        connection = listener.accept()
        first, second = received(connection), received(connection)
        assert (first["version"], first["rank"], first["steps"], first["running"]) == (1, "3", 0, 0)
        assert first["sender"] == second["sender"]
        off(scheduler)
        connection.close()


def test_a_step_after_the_thread_has_asked_looks_and_the_message_says_it(tmp_path: Path) -> None:
    with listening(tmp_path / "s") as listener:
        scheduler = watched(tmp_path / "s")
        scheduler.admit(Request("a", num_computed_tokens=10))
        connection = listener.accept()

        def said() -> bool:
            scheduler.schedule()
            return bool(received(connection)["groups"] == [[16, 1, 6]])

        until(said)
        off(scheduler)
        connection.close()


def test_a_sidecar_that_comes_later_or_again_is_found(tmp_path: Path) -> None:
    scheduler = watched(tmp_path / "s")
    for _ in range(2):
        with listening(tmp_path / "s") as listener:
            connection = listener.accept()
            assert received(connection)["rank"] == "0"
            connection.close()
    off(scheduler)


def test_a_sidecar_that_lets_it_in_and_hangs_up_each_time_is_told_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As one does whose socket another engine has already."""
    caplog.set_level(logging.INFO)
    line = Line(str(tmp_path / "s"))
    with listening(tmp_path / "s") as listener:
        for number in range(4):
            line.send({"n": number})
            listener.accept().close()
            until(lambda: line.send({}) or line._socket is None)  # noqa: SLF001
    line.send({})
    assert [each.getMessage().partition(" at ")[0].partition(" to ")[0] for each in caplog.records] == [
        "thrashold's probe: connected",
        "thrashold's probe: nobody listens",
    ]


def test_a_path_that_can_not_be_a_socket_s_changes_nothing(tmp_path: Path) -> None:
    for path in (tmp_path / ("x" * 200), tmp_path / "missing" / "s", tmp_path):
        scheduler = watched(path)
        assert scheduler.schedule() == ("scheduled", False)
        line = Line(str(path))
        line.send({})
        line.close()
        off(scheduler)


def test_an_engine_without_file_descriptors_left_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    line = Line(str(tmp_path / "s"))
    with listening(tmp_path / "s") as listener:
        with monkeypatch.context() as patched:
            patched.setattr(socket, "socket", none_left)
            line.send({"n": 1})
        line.send({"n": 2})
        connection = listener.accept()
        assert received(connection) == {"n": 2}
        connection.close()
    line.close()


def test_a_reader_that_is_slow_costs_messages_and_nobody_waits(tmp_path: Path) -> None:
    with listening(tmp_path / "s") as listener:
        line = Line(str(tmp_path / "s"))
        line.send({"n": 0})
        connection = listener.accept()
        until(lambda: line.send({"filler": "x" * 4096}) or line.dropped == 3)
        assert received(connection) == {"n": 0}
        connection.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while connection.recv(1 << 16):
                pass
        line.send({"again": True})
        assert received(connection) == {"again": True}
        assert line.dropped == 3
        line.close()
        connection.close()


def test_a_full_backlog_is_tried_again(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening_socket:
        listening_socket.bind(path)
        listening_socket.listen(0)
        lines = [Line(path) for _ in range(3)]
        for line in lines:
            line.send({"n": 1})
        accepted = listening_socket.accept()[0]
        until(lambda: lines[-1].send({"n": 2}) or lines[-1]._socket)  # noqa: SLF001
        for line in lines:
            line.close()
        accepted.close()


def test_a_forked_child_lets_go_of_its_parent_s_connection(tmp_path: Path) -> None:
    code = """
import os, sys, time
sys.path.insert(0, sys.argv[2])
import thrashold_probe
thrashold_probe.BEAT_SECONDS, thrashold_probe.LOOK_SECONDS = 0.02, 0.01

class Scheduler:
    def __init__(self): self.running, self.requests = [], {}
    def schedule(self): return "scheduled"

thrashold_probe.install(Scheduler, sys.argv[1])
scheduler = Scheduler()
sys.stdin.readline()
child = os.fork()
if child == 0:
    sys.stdin.readline()
    scheduler.schedule()
    time.sleep(60)
print(child, flush=True)
os.close(0)
os._exit(0)
"""
    with listening(tmp_path / "s") as listener:
        command = [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "s"), str(SOURCES)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdin is not None
        assert process.stdout is not None
        parent = listener.accept()
        name = received(parent)["sender"]
        process.stdin.write("\n")
        process.stdin.flush()
        child_id = int(process.stdout.readline())
        try:
            while data := parent.recv(1 << 16):  # its end comes although a child lives on
                assert name.encode() in data
            process.stdin.write("\n")
            process.stdin.flush()
            child = listener.accept()
            said = received(child)
            assert said["sender"] != name
            assert said["sender"].startswith(f"{child_id}-")
            child.close()
        finally:
            os.kill(child_id, 9)
            process.stdin.close()
            process.stdout.close()
            process.wait(PATIENCE_SECONDS)
        parent.close()


def test_an_engine_that_is_dropped_is_let_go_and_its_line_hung_up(tmp_path: Path) -> None:
    with listening(tmp_path / "s") as listener:
        scheduler = watched(tmp_path / "s")
        connection = listener.accept()
        thread = scheduler._thrashold.thread  # noqa: SLF001
        del scheduler
        while connection.recv(1 << 16):
            pass
        thread.join(PATIENCE_SECONDS)
        connection.close()


def test_two_engines_in_one_process_are_told_apart(tmp_path: Path) -> None:
    with listening(tmp_path / "s") as listener:
        made = scheduler_class()
        install(made, str(tmp_path / "s"))
        schedulers = [made(rank=rank) for rank in (0, 1)]
        connections = [listener.accept() for _ in schedulers]
        assert {received(each)["rank"] for each in connections} == {"0", "1"}
        for each in connections:
            each.close()
        off(schedulers[0])
        schedulers[1]._thrashold.thread.join(PATIENCE_SECONDS)  # noqa: SLF001
