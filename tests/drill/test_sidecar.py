"""The demo's sidecar as a process: what is read of it, and what is said when that fails."""

from __future__ import annotations

import contextlib
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from drill.sidecar import Sidecar, SidecarError
from tests.exporter.running import engine, free_port

PAGE = b'thrashold_kv_usage_ratio{engine="e",rank="0",model_name="m"} 0.5\n'


@contextlib.contextmanager
def process(code: str = "import time; time.sleep(60)") -> Iterator[subprocess.Popen[bytes]]:
    started = subprocess.Popen([sys.executable, "-c", code])
    try:
        yield started
    finally:
        started.kill()
        started.wait(30)


@contextlib.contextmanager
def failing() -> Iterator[str]:
    class Failing(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(500)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Failing) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_no_proxy_stands_between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    with process() as alive, engine(PAGE) as url:
        assert Sidecar(alive, url, tmp_path / "log").read().get("kv_usage_ratio") == 0.5


@pytest.mark.parametrize("page", [b"no exposition {", b"\xff"])
def test_what_is_no_exposition_is_refused(tmp_path: Path, page: bytes) -> None:
    (tmp_path / "log").write_text("first\nlast\n")
    with process() as alive, engine(page) as url:
        sidecar = Sidecar(alive, url, tmp_path / "log")
        with pytest.raises(SidecarError, match=r"^the sidecar does not answer: .*; its log ends with: last$"):
            sidecar.read()


def test_an_answer_of_failure_is_told_by_its_number(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    with process() as alive, failing() as url:
        sidecar = Sidecar(alive, url, tmp_path / "log")
        with pytest.raises(SidecarError, match=r"^the sidecar does not answer: it answers 500$"):
            sidecar.read()


def test_a_sidecar_that_ended_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # on a busy machine Python alone takes longer to start than a sidecar is given to die
    monkeypatch.setattr("drill.sidecar._DYING_SECONDS", 30.0)
    (tmp_path / "log").touch()
    with process("raise SystemExit(3)") as ended:
        sidecar = Sidecar(ended, f"http://127.0.0.1:{free_port()}", tmp_path / "log")
        with pytest.raises(SidecarError, match=r"^the sidecar ended \(exit code 3\)$"):
            sidecar.read()
