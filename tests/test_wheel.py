"""The wheel as a user gets it: built from these sources, alone in a new environment, run from elsewhere."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from drill.recording import DEMO_RECORDING
from tests.exporter.running import (
    PAGE,
    ROOT,
    clean_environment,
    engine,
    free_port,
    hanging_engine,
    running,
)

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

_SECONDS = 280
"""What pip may take on a busy machine; elsewhere it is some ten seconds."""


@dataclass(frozen=True, slots=True)
class Installed:
    """A new environment that holds the wheel and what the base install asks for, without extras."""

    wheel: Path
    programs: Path
    elsewhere: Path

    def call(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return called(str(self.programs / program), *arguments, folder=self.elsewhere)


def called(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=clean_environment({"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONPATH": ""}),
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


def well(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Built from a copy, because a build leaves a folder behind that would creep into the next one."""
    folder = tmp_path_factory.mktemp("wheel")
    sources = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "fixtures", "images")
    shutil.copytree(ROOT, folder / "sources", ignore=sources)
    build = (
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        "wheels",
        "./sources",
    )
    well(called(*build, folder=folder))
    (wheel,) = (folder / "wheels").glob("*.whl")
    venv.create(folder / "venv", with_pip=True)
    programs, elsewhere = folder / "venv" / "bin", folder / "elsewhere"
    elsewhere.mkdir()
    found = Installed(wheel, programs, elsewhere)
    well(found.call("pip", "install", "--quiet", "--constraint", str(ROOT / "constraints.txt"), str(wheel)))
    return found


def test_the_wheel_holds_the_recording_and_no_tests(installed: Installed) -> None:
    names = zipfile.ZipFile(installed.wheel).namelist()
    assert f"drill/recordings/{DEMO_RECORDING}.tar.xz" in names
    assert {"drill/fake_nvml/control.c", "drill/fake_nvml/control.h"} <= set(names)
    tops = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert tops >= {"drill", "exporter", "thrashold.py"}
    assert not tops & {"tests", "docs", "shared"}


def test_the_command_works_from_another_folder(installed: Installed) -> None:
    version = installed.wheel.name.split("-")[1]
    assert well(installed.call("thrashold", "--version")) == f"thrashold {version}\n"
    assert "--engine" in well(installed.call("thrashold", "exporter", "--help"))
    url = f"http://127.0.0.1:{free_port()}"
    nobody = installed.call("thrashold", "exporter", "--engine", url, "--once")
    assert nobody.returncode == 1
    assert "thrashold_source_up{" in nobody.stdout
    lint = installed.call("thrashold", "alerts", "lint")
    assert (lint.returncode, "pip install 'thrashold[lint]'" in lint.stderr) == (1, True)
    assert "refused" in nobody.stderr


def test_a_recording_is_served_and_its_export_says_what_it_lacks(
    installed: Installed, tmp_path: Path
) -> None:
    file = tmp_path / "recording"
    command = (str(installed.programs / "thrashold"), "exporter")
    with (
        hanging_engine() as url,
        running("--engine", url, "--recorder", str(file), command=command) as sidecar,
    ):
        deadline = time.monotonic() + _SECONDS
        while "thrashold_cycles_total " not in (text := sidecar.get("/api/v1/recorder").text):
            assert time.monotonic() < deadline, text
            time.sleep(0.1)
        assert text.endswith("# EOF\n")
        sidecar.terminate()
    assert "cycles " in well(installed.call("thrashold", "recorder", "info", str(file)))
    parquet = installed.call("thrashold", "recorder", "export", str(file), "-o", str(tmp_path / "a.parquet"))
    assert parquet.returncode == 1
    assert "pip install 'thrashold[analysis]'" in parquet.stderr


def test_the_sampler_starts_from_another_folder(installed: Installed) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    done = installed.call("thrashold", "exporter", "--engine", url, "--once", "--gpus", "always")
    assert "libnvidia-ml.so.1 is not here" in done.stderr, "it ran, and says what it lacks"


def test_the_demo_runs_without_extras(installed: Installed) -> None:
    assert installed.call("python", "-c", "import httpx").returncode == 1, "the base install has no httpx"
    output = well(installed.call("python", "-m", "drill.demo", "--recording", "--seconds", "3"))
    assert "WHERE TO LOOK NEXT" in output


def test_the_probe_comes_with_the_wheel_and_loads_alone(installed: Installed, tmp_path: Path) -> None:
    well(installed.call("thrashold", "probe", "install", str(tmp_path)))
    code = f"import sys; sys.path = [p for p in sys.path if 'site-packages' not in p] + [{str(tmp_path)!r}]"
    code += "; import thrashold_probe as p; p.register(); print(p.__file__)"
    assert well(installed.call("python", "-c", code)) == f"{tmp_path / 'thrashold_probe.py'}\n"


def test_kv_events_without_their_extra_cost_themselves_only(installed: Installed, tmp_path: Path) -> None:
    assert installed.call("python", "-c", "import zmq").returncode == 1, "the base install has no pyzmq"
    command = (str(installed.programs / "thrashold"), "exporter")
    file = tmp_path / "settings.yaml"
    with engine(PAGE) as url:
        file.write_text(
            f"engines:\n  - {{url: {url}, name: w, kv_events: 'tcp://127.0.0.1:{free_port()}'}}\n"
        )
        with running("--config", str(file), command=command) as sidecar:
            sidecar.wait_until_ready()
            page = sidecar.get("/metrics").text
            sidecar.terminate()
            assert sidecar.process.returncode == 0, sidecar.log()
            assert (
                "engine w: kv_events is set and pyzmq is not installed; install it (docs/kv-events.md)"
                in sidecar.log()
            )
    assert 'thrashold_source_up{source="w/kv_events"} 0.0' in page
    assert 'thrashold_source_errors_total{reason="not_installed",source="w/kv_events"} 1.0' in page
    assert 'thrashold_source_up{source="w"} 1.0' in page
    assert "thrashold_kv_block_stores_total{" not in page
