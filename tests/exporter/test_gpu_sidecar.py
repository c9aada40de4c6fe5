"""The sidecar beside GPUs, on the fake library: whatever the driver does, /metrics answers and the port gets free."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from drill.fake_nvml import H100, T4, Control
from exporter.sources.process_state import held_in
from tests.exporter.running import PAGE, Sidecar, call, engine, free_port, running
from tests.exporter.sampler.sampling import is_alive, until
from tests.support.fake_library import Without

pytestmark = pytest.mark.long

FIRST, SECOND = (f"GPU-00000000-0000-0000-0000-00000000000{index}" for index in range(2))
MEMORY = "nvmlDeviceGetMemoryInfo_v2"
INIT = "nvmlInitWithFlags"
NOWHERE = {"LD_LIBRARY_PATH": ""}


@pytest.fixture(scope="module")
def library(fake_library: Without) -> Path:
    return fake_library()


@pytest.fixture
def gpus(tmp_path: Path) -> Iterator[Control]:
    with Control(tmp_path / "control", [H100, H100]) as control:
        yield control


def scraped(text: str) -> dict[str, float]:
    """Each series by its name and the values of its labels, these in the order of the labels' names."""
    return {
        ",".join((sample.name, *(value for _, value in sorted(sample.labels.items())))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def until_scraped(sidecar: Sidecar, holds: Callable[[Mapping[str, float]], object]) -> dict[str, float]:
    found: dict[str, float] = {}

    def looked() -> object:
        found.clear()
        found.update(scraped(sidecar.get("/metrics").text))
        return holds(found)

    until(looked, sidecar.log())
    return found


def samplers(parent: int) -> list[int]:
    """The samplers that a sidecar has as children."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(pid) for pid in children if b"exporter.sampler" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def states(pid: int) -> set[str]:
    """Those of a process's threads."""
    return {
        (thread / "stat").read_text().rpartition(")")[2].split()[0]
        for thread in Path(f"/proc/{pid}/task").iterdir()
    }


def test_gpus_are_found_without_being_asked_for(library: Path, gpus: Control) -> None:
    with engine(PAGE) as url:
        done = call("--engine", url, "--once", environ=gpus.environment(library))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    series = scraped(done.stdout)
    for uuid in (FIRST, SECOND):
        assert series[f"thrashold_gpu_up,{uuid}"] == 1
    assert series["thrashold_source_up,nvml"] == 1
    assert series["thrashold_gpus_expected,nvml"] == 2
    assert series["thrashold_sampler_restarts_total,nvml"] == 0
    assert series["thrashold_sampler_stuck_seconds,nvml"] == 0


def test_never_leaves_them_alone_and_always_says_that_there_are_none(library: Path, gpus: Control) -> None:
    with engine(PAGE) as url:
        never = call("--engine", url, "--once", "--gpus", "never", environ=gpus.environment(library))
        always = call("--engine", url, "--once", "--gpus", "always", environ=NOWHERE)
        alone = call("--engine", url, "--once", environ=NOWHERE)
    assert gpus.calls == 0
    for done in (never, alone):
        assert (done.returncode, done.stderr) == (0, "")
        assert not re.search("thrashold_(sampler|gpu)|nvml", done.stdout)
    assert always.returncode == 0, "the engine answers"
    assert always.stderr.startswith("nvml: ")
    assert "libnvidia-ml.so.1 is not here" in always.stderr
    assert always.stderr.count("\n") == 1
    series = scraped(always.stdout)
    assert series["thrashold_source_up,nvml"] == 0
    assert series["thrashold_source_errors_total,no_library,nvml"] == 1
    assert "thrashold_gpus_expected,nvml" not in series


def test_gpus_that_tell_no_pcie_bytes_are_one_line_that_names_the_setting(
    fake_library: Without, tmp_path: Path
) -> None:
    with Control(tmp_path / "control", [T4, T4]) as gpus, engine(PAGE) as url:
        environ = gpus.environment(fake_library())
        with running("--engine", url, environ=environ) as sidecar:
            until_scraped(sidecar, lambda series: series.get("thrashold_cycles_total", 0) >= 4)
            assert sidecar.log().count("Tesla T4: the driver has neither profiling nor byte counters") == 1
            assert "gpus.pcie_window" in sidecar.log()
        asked = {**environ, "THRASHOLD_GPUS_PCIE_WINDOW": "true"}
        with running("--engine", url, environ=asked) as sidecar:
            until_scraped(
                sidecar, lambda series: series.get(f"thrashold_pcie_source_info,window,{FIRST}") == 1
            )
            assert "gpus.pcie_window" not in sidecar.log()


def test_a_machine_without_them_is_one_line_in_the_log() -> None:
    with engine(PAGE) as url, running("--engine", url, environ=NOWHERE) as sidecar:
        sidecar.wait_until_ready()
        assert sidecar.log().count("no GPUs are read: libnvidia-ml.so.1 is not on this machine") == 1
        assert samplers(sidecar.process.pid) == []


def test_gpus_alone_make_nothing_ready_nor_a_read_a_good_one(library: Path, gpus: Control) -> None:
    dead = ("--engine", f"http://127.0.0.1:{free_port()}")
    with running(*dead, environ=gpus.environment(library)) as sidecar:
        until_scraped(sidecar, lambda series: series.get("thrashold_source_up,nvml") == 1)
        answer = sidecar.get("/-/ready")
        assert answer.status_code == 503
        assert answer.text.startswith("no engine is fresh: 127.0.0.1:")
        assert "nvml" not in answer.text
    assert call(*dead, "--once", environ=gpus.environment(library)).returncode == 1


def test_gpus_that_were_lost_before_the_start_are_down_and_each_has_its_line(
    library: Path, tmp_path: Path
) -> None:
    with Control(tmp_path / "control", [H100] * 4) as gpus, engine(PAGE) as url:
        gpus.fail("nvmlDeviceGetHandleByIndex_v2", 15, device=1)
        gpus.fail("nvmlDeviceGetHandleByIndex_v2", 17, device=3)
        with running("--engine", url, environ=gpus.environment(library)) as sidecar:
            series = until_scraped(sidecar, lambda series: f"thrashold_gpu_up,{FIRST}" in series)
            ups = {
                name.partition(",")[2]: up
                for name, up in series.items()
                if name.startswith("thrashold_gpu_up")
            }
            third = FIRST[:-1] + "2"
            assert ups == {FIRST: 1, third: 1, "unopened-1": 0, "unopened-3": 0}
            assert series["thrashold_source_up,nvml"] == 1
            log = sidecar.log()
    for index, code, remedy in ((1, 15, "look for XID 79"), (3, 17, "let this process open /dev/nvidiactl")):
        (line,) = [line for line in log.splitlines() if f"GPU {index} can't be opened" in line]
        assert f"(NVML code {code})" in line
        assert remedy in line


def test_a_call_that_hangs_in_the_kernel_costs_its_gpu_and_nothing_else(library: Path, gpus: Control) -> None:
    port = free_port()
    listen = ("--listen", f"127.0.0.1:{port}")
    with engine(PAGE) as url, running("--engine", url, *listen, environ=gpus.environment(library)) as sidecar:
        until_scraped(sidecar, lambda series: series.get("thrashold_gpus_expected,nvml") == 2)
        (sampler,) = samplers(sidecar.process.pid)
        gpus.hang(MEMORY, 0, uninterruptible=True)
        until(lambda: "D" in states(sampler))
        assert "1 in state D in " in held_in(sampler), "what the log would say, were it to listen no more"
        series = until_scraped(sidecar, lambda series: series[f"thrashold_gpu_up,{FIRST}"] == 0)
        assert series[f"thrashold_gpu_up,{SECOND}"] == 1
        assert series["thrashold_source_up,nvml"] == 1, "the other one answers"
        assert series["thrashold_sampler_stuck_seconds,nvml"] == 0, "and the sampler speaks"
        series = until_scraped(
            sidecar,
            lambda series: series.get(f"thrashold_gpu_read_errors_total,memory,hung,{FIRST}") == 1,
        )
        assert series["thrashold_source_errors_total,hung,nvml"] == 1
        assert f"GPU 0 ({FIRST}) can't be read: hung" in sidecar.get("/").text.replace("&#x27;", "'")
        assert sidecar.get("/metrics").status_code == 200, "a page that waited for the call would never come"
        assert samplers(sidecar.process.pid) == [sampler], "there is one, and no other beside it"
        sidecar.terminate()
        assert sidecar.process.returncode == 0, sidecar.log()
        socket.create_server(("127.0.0.1", port)).close()
        assert "Traceback" not in sidecar.log()
    until(lambda: not is_alive(sampler), "it is left to nobody")


def test_a_driver_that_hangs_at_the_start_holds_up_neither_pages_nor_the_end(
    library: Path, gpus: Control
) -> None:
    gpus.hang(INIT, uninterruptible=True)
    with engine(PAGE) as url, running("--engine", url, environ=gpus.environment(library)) as sidecar:
        sidecar.wait_until_ready()
        series = until_scraped(
            sidecar, lambda series: series.get("thrashold_source_errors_total,hung,nvml") == 1
        )
        assert series["thrashold_source_up,nvml"] == 0
        (sampler,) = samplers(sidecar.process.pid)
        assert "D" in states(sampler)
        sidecar.terminate()
        assert sidecar.process.returncode == 0, sidecar.log()
    until(lambda: not is_alive(sampler))


def test_a_sampler_that_does_not_end_keeps_neither_the_sidecar_nor_its_port(
    library: Path, gpus: Control
) -> None:
    port = free_port()
    listen = ("--listen", f"127.0.0.1:{port}")
    with engine(PAGE) as url, running("--engine", url, *listen, environ=gpus.environment(library)) as sidecar:
        until_scraped(sidecar, lambda series: series.get("thrashold_gpus_expected,nvml") == 2)
        (sampler,) = samplers(sidecar.process.pid)
        os.kill(sampler, signal.SIGSTOP)  # as deaf as one that the kernel holds
        try:
            sidecar.terminate()
            assert sidecar.process.returncode == 0, sidecar.log()
            socket.create_server(("127.0.0.1", port)).close()
            assert is_alive(sampler), "it was not killed"
        finally:
            os.kill(sampler, signal.SIGCONT)
    until(lambda: not is_alive(sampler), "what it was told meanwhile is what it does")


def test_a_sidecar_that_is_killed_leaves_no_sampler(library: Path, gpus: Control) -> None:
    with engine(PAGE) as url, running("--engine", url, environ=gpus.environment(library)) as sidecar:
        until_scraped(sidecar, lambda series: series.get("thrashold_gpus_expected,nvml") == 2)
        (sampler,) = samplers(sidecar.process.pid)
        sidecar.process.kill()
        until(lambda: not is_alive(sampler))


def test_a_gpu_that_falls_off_the_bus_stays_in_sight(library: Path, gpus: Control) -> None:
    with engine(PAGE) as url, running("--engine", url, environ=gpus.environment(library)) as sidecar:
        until_scraped(sidecar, lambda series: series.get(f"thrashold_gpu_up,{FIRST}") == 1)
        gpus.lose(0)
        series = until_scraped(sidecar, lambda series: series[f"thrashold_gpu_up,{FIRST}"] == 0)
        assert series[f"thrashold_gpu_up,{SECOND}"] == 1
        assert series["thrashold_gpus_expected,nvml"] == 2
        assert any(
            re.fullmatch(f"thrashold_gpu_read_errors_total,.*,gpu_lost,{FIRST}", name) for name in series
        )
        assert series["thrashold_source_errors_total,gpu_lost,nvml"] >= 1
        sidecar.terminate()


def test_the_sidecar_itself_never_loads_the_library(library: Path, gpus: Control) -> None:
    with engine(PAGE) as url, running("--engine", url, environ=gpus.environment(library)) as sidecar:
        until_scraped(sidecar, lambda series: series.get("thrashold_gpus_expected,nvml") == 2)
        (sampler,) = samplers(sidecar.process.pid)
        assert "libnvidia-ml" in Path(f"/proc/{sampler}/maps").read_text()
        assert "libnvidia-ml" not in Path(f"/proc/{sidecar.process.pid}/maps").read_text()
        sidecar.terminate()


def test_it_works_from_any_folder(library: Path, gpus: Control, tmp_path: Path) -> None:
    # a folder whose files have the names of Python's own must not be taken for Python's
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong one')\n")
    command = ("env", "-C", str(tmp_path), sys.executable, str(Path(__file__).parents[2] / "thrashold.py"))
    with engine(PAGE) as url:
        done = call("exporter", "--engine", url, "--once", environ=gpus.environment(library), command=command)
    assert scraped(done.stdout)["thrashold_gpus_expected,nvml"] == 2, done.stderr


@pytest.mark.parametrize(
    ("arguments", "text", "said"),
    [
        (("--gpus", "sometimes"), "", "--gpus: gpus.nvml: 'sometimes' is not auto, always or never"),
        ((), "gpus: sometimes", "c.yaml:1: gpus.nvml: 'sometimes' is not auto, always or never"),
        ((), "gpus:\n  nvml: ''", "c.yaml:2: gpus.nvml: '' is not auto, always or never"),
        (("--dcgm", "gpu-host"), "", "--dcgm: gpus.dcgm.url: 'gpu-host' is not a URL"),
        (("--gpus", "never"), "engines: []", "c.yaml lists no engines"),
    ],
)
def test_what_can_not_be_used_is_one_line(
    tmp_path: Path, arguments: tuple[str, ...], text: str, said: str
) -> None:
    config = ()
    if text:
        (tmp_path / "c.yaml").write_text(text + "\n")
        config = ("--config", str(tmp_path / "c.yaml"))
    engines = () if "engines" in text else ("--engine", "http://127.0.0.1:1")
    done = call(*engines, *config, *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_variable_that_can_not_be_used_is_one_line_too() -> None:
    done = call("--engine", "http://127.0.0.1:1", environ={"THRASHOLD_GPUS_NVML": "yes"})
    assert done.returncode == 2
    assert done.stderr == "Error: THRASHOLD_GPUS_NVML: gpus.nvml: 'yes' is not auto, always or never\n"


def test_a_flag_goes_before_the_file_key_by_key(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        "gpus: {nvml: always, processes: true}\nengines: ['http://127.0.0.1:1']\n"
    )
    done = call("--config", str(tmp_path / "c.yaml"), "--gpus", "never", "--once")
    assert "nvml" not in done.stdout
