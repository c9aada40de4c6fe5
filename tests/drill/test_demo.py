"""Short runs of the recorded demo."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
ESCAPE = "\x1b"


START = """
import os, signal, sys
for each in (signal.SIGINT, signal.SIGHUP):
    signal.signal(each, signal.SIG_IGN if each.name == sys.argv[1] else signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


def demo(*arguments: str, ignored: str = "nothing") -> subprocess.Popen[str]:
    """The demo, started with this signal ignored and no other, whatever is ignored here: SIGHUP under nohup, say."""
    environment = {**os.environ, "COLUMNS": "80", "THRASHOLD_LISTEN": "not an address"}
    return subprocess.Popen(
        [sys.executable, "-c", START, ignored, "-m", "drill.demo", "--recording", *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_short_run_end_to_end() -> None:
    with demo("--from", "26", "--seconds", "8") as process:
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert ESCAPE not in output
    assert max(map(len, output.split("\n"))) <= 80
    # Which numbers it is that a read meets depends on when it comes; that demand told it first does not.
    asked = re.search(r"\*\* asked for [\d.]+ x the KV pool, with usage (still )?at \d+%", output)
    assert asked is not None, output
    assert asked.start() < output.index("zero-swap invariant broken")
    assert "WHERE TO LOOK NEXT" in output


def has_ended(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def wait_until_ended(pid: int) -> None:
    deadline = time.monotonic() + 30
    while not has_ended(pid):
        assert time.monotonic() < deadline, "the sidecar outlived the demo"
        time.sleep(0.05)


def read_until(process: subprocess.Popen[str], words: str) -> None:
    assert process.stdout is not None
    said = ""
    while words not in said:
        line = process.stdout.readline()
        assert line, f"the demo ended before it said {words!r}: {said}"
        said += line


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="needs /proc to find the sidecar's process"
)


@needs_proc
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_ended_early_it_leaves_no_process_behind(kind: signal.Signals) -> None:
    with demo() as process:
        read_until(process, "calm load")
        (sidecar,) = children(process.pid)
        process.send_signal(kind)
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 130
        assert output.endswith("stopped; the sidecar and the replayed engine are gone too\n")
        wait_until_ended(sidecar)


@needs_proc
def test_kept_in_the_background_it_ends_on_each_signal() -> None:
    """As ``sh -c 'demo --keep &'`` starts it: with SIGINT ignored."""
    kinds = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    kept = [(kind, demo("--seconds", "3", "--keep", ignored="SIGINT")) for kind in kinds]
    try:
        for kind, process in kept:
            read_until(process, f"until Ctrl-C, or kill {process.pid}.")
            (sidecar,) = children(process.pid)
            process.send_signal(kind)
            assert process.wait(30) == 0, kind
            wait_until_ended(sidecar)
    finally:
        for _, process in kept:
            with process:
                process.terminate()


@needs_proc
def test_what_nohup_started_outlives_its_terminal() -> None:
    with demo("--seconds", "3", ignored="SIGHUP") as process:
        read_until(process, "calm load")
        process.send_signal(signal.SIGHUP)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output


def test_a_part_that_the_recording_has_not_is_refused() -> None:
    with demo("--from", "100", "--seconds", "60") as process:
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "the recording ends at second 110: begin or end earlier" in output


def test_a_seed_that_is_none_is_refused_in_a_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "drill.demo", "--seed", "-1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Error: a seed of -1 asked for: take 0 or more\n"
