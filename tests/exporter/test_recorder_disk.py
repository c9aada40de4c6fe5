"""File systems that fail for real, each in a process of its own: limits and rights are a process's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from exporter.recorder_reader import read
from tests.exporter.running import ROOT

HEAD = """
import json, logging, os, resource, sys, time
from pathlib import Path
from exporter.recorder import Recorder
from tests.support.recorder import second
logging.basicConfig(level=logging.INFO)
file = Path(sys.argv[1])
recorder = Recorder(file, retry_seconds=0.0)
place = 0
found = []
def go_on(until_up, most=400):
    global place
    for _ in range(most):
        recorder.put(second(place, width=100))
        place += 1
        deadline = time.monotonic() + 20
        while recorder.status.written + recorder.status.failed < place and time.monotonic() < deadline:
            time.sleep(0.0005)
        if recorder.status.up == until_up:
            break
    found.append([recorder.status.up, recorder.status.reason, recorder.status.written, recorder.status.failed])
"""
TAIL = """
assert recorder.close(20)
print(json.dumps(found))
"""
NOBODY = 65_534


@pytest.fixture
def folder() -> Iterator[Path]:
    # not pytest's own, which is its owner's alone: root's rights stop at nothing, so nobody does the writing
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
        yield path


def run(script: str, file: Path) -> tuple[list[list[object]], str]:
    done = subprocess.run(
        [sys.executable, "-c", HEAD + script + TAIL, str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_a_file_that_can_not_grow_stops_the_recording_until_it_can(folder: Path) -> None:
    found, log = run(
        """
recorder.start()
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (120_000, hard))
# closing makes room: what stood in the log beside it goes into the file; in the end that is full as well
while [up for up, *_ in found[-2:]] != [False, False]:
    go_on(until_up=False)
    go_on(until_up=True, most=3)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
go_on(until_up=True)
go_on(until_up=False, most=100)
""",
        folder / "recording",
    )
    *_, still, again, after = found
    assert still[0] is False
    assert still[1] in {"disk I/O error", "database or disk is full"}
    assert again[:2] == after[:2] == [True, ""]
    assert log.count(" stopped: ") == log.count(" again; ") > 0
    (tokens, *_) = read(folder / "recording", names=["thrashold_generation_tokens_total"])
    assert len(tokens.times) == after[2]
    assert after[3] >= 4


def test_a_folder_that_can_not_be_written_stops_it_until_it_can(folder: Path) -> None:
    found, log = run(
        f"""
if os.geteuid() == 0:
    os.seteuid({NOBODY})
file.parent.chmod(0o555)
recorder.start()
go_on(until_up=True, most=3)
file.parent.chmod(0o755)
go_on(until_up=True)
recorder.close(20)
file.chmod(0o444)
recorder = Recorder(file, retry_seconds=0.0)
place = 0
recorder.start()
go_on(until_up=True, most=3)
file.chmod(0o644)
go_on(until_up=True)
""",
        folder / "recording",
    )
    assert found == [[False, "Permission denied", 0, 3], [True, "", 1, 3]] * 2
    assert log.count("stopped: Permission denied") == 2


def test_a_recording_in_a_folder_that_can_not_be_written_is_read(folder: Path) -> None:
    run("recorder.start()\ngo_on(until_up=False, most=90)\n", folder / "recording")
    script = f"""
import os, sys
from pathlib import Path
from exporter.recorder_reader import read
folder = Path(sys.argv[1])
folder.chmod(0o555)
if os.geteuid() == 0:
    os.seteuid({NOBODY})
print([len(each.times) for each in read(folder / "recording", names=["thrashold_kv_usage_ratio"])])
"""
    (folder / "recording").chmod(0o444)
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[90]\n", "")
    assert [each.name for each in folder.iterdir()] == ["recording"]
