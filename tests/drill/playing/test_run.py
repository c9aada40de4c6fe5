"""What lies in a run's folder, whatever became of the run."""

from __future__ import annotations

import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from drill.playing.play import Moment
from drill.playing.run import METRICS, RAW, RECORDING, SUMMARY, TRUTH, run
from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.setting import Setting, Size
from exporter.recorder_reader import Recording

_WHOLE = SCENARIOS["sidecar-blind"]
SHORT = replace(
    _WHOLE, fleet=lambda setting: replace(_WHOLE.fleet(setting), seconds=20), trouble=lambda scene, _: scene
)
ALL = {RECORDING, METRICS, TRUTH, SUMMARY, RAW}


@pytest.mark.parametrize("size", Size)
def test_a_run_that_is_broken_off_leaves_its_recording_and_nothing_of_an_earlier_one(
    size: Size, tmp_path: Path
) -> None:
    setting = Setting(size, engines=1)
    run(SHORT, setting, tmp_path, raw_every=10)
    assert {path.name for path in tmp_path.iterdir()} - {f"{RECORDING}.lock"} == ALL

    def stop(moment: Moment) -> None:
        if moment.second.seconds == 15:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(SHORT, setting, tmp_path, told=stop, raw_every=10)
    assert {path.name for path in tmp_path.iterdir()} - {f"{RECORDING}.lock"} == {RECORDING}
    with Recording(tmp_path / RECORDING) as recording:
        assert recording.families()


def test_a_disk_that_takes_no_more_is_told_in_a_line(tmp_path: Path) -> None:
    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "thrashold",
            "drill",
            "run",
            "sidecar-blind",
            "--engines",
            "1",
            "--out",
            tmp_path,
        ],
        preexec_fn=full,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert str(tmp_path / RECORDING) in done.stderr.splitlines()[-1]
