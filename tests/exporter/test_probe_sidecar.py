"""The whole way: ``thrashold probe install``, an engine's process that loads the plugin, and the sidecar beside it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.exporter.running import PAGE, ROOT, clean_environment, engine, running

PATIENCE_SECONDS = 30.0

ENGINE = """
import sys, time
from importlib.metadata import entry_points

class Request:
    request_id, num_computed_tokens, num_output_tokens, sampling_params = "a", 10, 0, None

class FullAttentionManager:
    block_size, req_to_blocks = 16, {"a": [1]}

class Coordinator:
    single_type_managers = (FullAttentionManager(),)

class Manager:
    coordinator = Coordinator()

class Scheduler:
    def __init__(self):
        self.running, self.requests, self.kv_cache_manager = [Request()], {}, Manager()
    def schedule(self): return None
    def _preempt_request(self, request, timestamp): pass
    def finish_requests(self, request_ids, finished_status): pass

for part in ("vllm", "vllm.v1", "vllm.v1.core", "vllm.v1.core.sched", "vllm.v1.core.sched.scheduler"):
    sys.modules[part] = type(sys)(part)
sys.modules[part].Scheduler = Scheduler
[plugin] = entry_points(group="vllm.general_plugins")
plugin.load()()
scheduler = Scheduler()
while True:
    scheduler.schedule()
    scheduler._preempt_request(scheduler.running[0], 0.0)
    time.sleep(0.01)
"""


def install(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "thrashold.py"), "probe", "install", str(folder)],
        env=clean_environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"the probe is in {folder}; start the engine with that on its PYTHONPATH")


@contextlib.contextmanager
def probed_engine(folder: Path, path: Path) -> Iterator[None]:
    environment = {**os.environ, "PYTHONPATH": str(folder), "THRASHOLD_PROBE_SOCKET": str(path)}
    process = subprocess.Popen([sys.executable, "-S", "-c", ENGINE], env=environment, cwd=folder)
    try:
        yield
    finally:
        process.kill()
        process.wait(PATIENCE_SECONDS)


def test_a_probe_that_was_installed_makes_tails_exact_until_its_engine_goes(tmp_path: Path) -> None:
    folder, path, file = tmp_path / "site", tmp_path / "p.sock", tmp_path / "settings.yaml"
    install(folder)
    install(folder)  # once more is no harm
    with engine(PAGE) as url:
        file.write_text(f"engines:\n  - {{url: {url}, name: w, probe: {path}}}\n")
        with running("--config", str(file)) as sidecar:
            sidecar.wait_until_ready()
            assert 'thrashold_source_up{source="w/probe"} 0.0' in sidecar.get("/metrics").text
            with probed_engine(folder, path):
                page = ""
                deadline = time.monotonic() + PATIENCE_SECONDS
                while 'bound="min",engine="w",model_name="tiny",rank="0"} 6.0' not in page:
                    assert time.monotonic() < deadline, sidecar.log()
                    time.sleep(0.1)
                    page = sidecar.get("/metrics").text
                assert 'thrashold_source_up{source="w/probe"} 1.0' in page
                assert 'signal="thrashold_tail_fragmentation_tokens"} 1.0' in page
                assert 'thrashold_probed_signal_info{confidence="measured",engine="w"' in page
            while 'thrashold_source_up{source="w/probe"} 0.0' not in page:
                assert time.monotonic() < deadline, sidecar.log()
                time.sleep(0.1)
                page = sidecar.get("/metrics").text
            assert 'thrashold_source_errors_total{reason="disconnected",source="w/probe"} 1.0' in page
            assert 'thrashold_source_up{source="w"} 1.0' in page
            sidecar.terminate()
            assert sidecar.process.returncode == 0, sidecar.log()
    assert not path.exists()


def test_a_folder_that_can_t_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = subprocess.run(
        [sys.executable, str(ROOT / "thrashold.py"), "probe", "install", str(tmp_path / "file" / "site")],
        env=clean_environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        1,
        f"Error: can't write to {tmp_path / 'file' / 'site'}: Not a directory\n",
    )
