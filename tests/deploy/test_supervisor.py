"""Programs that die, leave children behind, vanish from the disk and talk too much."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from deploy import supervisor
from deploy.part import Part
from deploy.supervisor import PartFailedError, Supervisor
from tests.exporter.running import free_port

pytestmark = [pytest.mark.long, pytest.mark.timeout(60)]
_SERVES = (
    "import http.server, sys;"
    " http.server.test(http.server.SimpleHTTPRequestHandler, port=int(sys.argv[1]), bind='127.0.0.1')"
)
_WITH_A_CHILD = (
    "import os, subprocess, sys;"
    " child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(50)']);"
    " open(sys.argv[2], 'w').write(str(child.pid)); " + _SERVES
)


@dataclass
class Stage:
    made: Supervisor
    said: list[str] = field(default_factory=list)

    def until(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + 30
        self.made.watch(lambda: holds() or time.monotonic() > end)
        assert holds(), self.said


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    said: list[str] = []
    found = Stage(Supervisor(tmp_path, said.append), said)
    try:
        yield found
    finally:
        found.made.end()


def part(command: str, *more: str, program: str = sys.executable) -> Part:
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    return Part("it", (program, "-c", command, str(port), *more), url, url, "")


def _ends(pid: int) -> bool:
    """Within a moment: a kill takes one."""
    until = time.monotonic() + 5
    while _runs(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not _runs(pid)


def _runs(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_what_a_dead_part_left_behind_is_ended_before_the_next(stage: Stage, tmp_path: Path) -> None:
    stage.made.start(part(_WITH_A_CHILD, str(tmp_path / "child")))
    first, child = stage.made.pids["it"], int((tmp_path / "child").read_text())
    os.kill(first, signal.SIGKILL)
    stage.until(lambda: stage.made.pids.get("it", first) != first)
    assert _ends(child)
    stage.until(lambda: int((tmp_path / "child").read_text() or child) != child)
    child = int((tmp_path / "child").read_text())
    stage.made.end()
    assert _ends(child)


def test_a_program_that_is_gone_is_tried_again(stage: Stage, tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.symlink_to(sys.executable)
    stage.made.start(part(_SERVES, program=str(program)))
    program.unlink()
    os.kill(stage.made.pids["it"], signal.SIGRTMIN + 3)
    stage.until(lambda: any("can't be started (No such file" in line for line in stage.said))
    assert any(f"died (signal {int(signal.SIGRTMIN) + 3})" in line for line in stage.said)
    program.symlink_to(sys.executable)
    stage.until(lambda: "it is started anew" in stage.said)


def test_a_log_has_a_bound_and_goes_on(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "MOST_LOG_BYTES", 1000)
    talks = (
        "import threading, time\ndef talk():\n while True: print('x' * 90, flush=True); time.sleep(0.005)\n"
    )
    stage.made.start(part(f"{talks}threading.Thread(target=talk, daemon=True).start()\n{_SERVES}"))
    log = tmp_path / "it.log"
    stage.until((tmp_path / "it.log.1").exists)
    assert (tmp_path / "it.log.1").stat().st_size > 1000
    size = log.stat().st_size
    stage.until(lambda: log.stat().st_size > size)
    assert b"\0" not in log.read_bytes()  # truncated, and appended to


def test_one_that_ends_at_once_is_told_with_its_last_words(stage: Stage) -> None:
    with pytest.raises(PartFailedError, match="it ended with 3 at once: so it is"):
        stage.made.start(part("import sys; print('so it is', flush=True); sys.exit(3)"))
