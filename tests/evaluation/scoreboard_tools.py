"""Tools of others on an engine's pages, before a scenario's trouble and at its peak: what each of them says."""

from __future__ import annotations

import functools
import hashlib
import http.server
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drill.scenarios.catalogue import SCENARIOS
from drill.watching.watch import Watch
from tests.evaluation.playing import KEPT, Case, kept, play
from tests.evaluation.triage import CALM_BEFORE_SECONDS, PEAKS

PACKAGES = {"vllm-doctor": "0.6.0", "inferpilot": "0.1.0"}
APART_SECONDS = 45
"""Between the two pages that inferpilot compares: its own default."""
_INSTALL_SECONDS, _RUN_SECONDS = 300, 120
_NO_PAGE = "no page"


class ToolsError(RuntimeError):
    """They can't be had: why."""


def installed() -> Path:
    """The folder of their programs, in an environment of their own that is made once. Raises ToolsError."""
    told = " ".join(f"{name}=={version}" for name, version in PACKAGES.items())
    home = KEPT / f"tools-{hashlib.sha256(told.encode()).hexdigest()[:12]}"
    if not (home / "installed").is_file():
        try:
            subprocess.run(
                [sys.executable, "-m", "venv", "--clear", home], check=True, timeout=_INSTALL_SECONDS
            )
            subprocess.run(
                [home / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", *told.split()],
                check=True,
                capture_output=True,
                timeout=_INSTALL_SECONDS,
            )
        except (subprocess.SubprocessError, OSError) as error:
            raise ToolsError(f"{told} can't be installed: {error}") from error
        (home / "installed").touch()
    return home / "bin"


def said(case: Case, programs: Path) -> dict[str, dict[str, str]]:
    """By tool, what it said ``before`` and at the ``peak``; kept beside the run. Of the first engine that is affected.

    Both read an engine's page as it is scraped: vllm-doctor one, inferpilot two that are 45 s apart.
    """
    play(case)
    file = _file(case)
    if not file.is_file():
        file.write_text(json.dumps(_said(case, programs)), encoding="utf-8")
    found: dict[str, dict[str, str]] = json.loads(file.read_bytes())
    return found


def said_before(case: Case) -> dict[str, dict[str, str]] | None:
    """What was kept of it; None: they weren't asked since drill or sidecar changed."""
    file = _file(case)
    return json.loads(file.read_bytes()) if file.is_file() else None


def _file(case: Case) -> Path:
    told = repr((sorted(PACKAGES.items()), APART_SECONDS)).encode()
    return kept(case) / f"tools-{hashlib.sha256(told).hexdigest()[:12]}.json"


def _said(case: Case, programs: Path) -> dict[str, dict[str, str]]:
    scene = SCENARIOS[case.scenario].scene(case.setting)
    peak = PEAKS[case.scenario]
    onset = scene.episodes[0].onset_seconds if scene.episodes else peak - APART_SECONDS
    name = scene.episodes[0].affected[0] if scene.episodes else scene.names[0]
    moments = {"before": round(onset) - CALM_BEFORE_SECONDS, "peak": peak}
    wanted = {at for moment in moments.values() for at in (moment - APART_SECONDS, moment)}
    watch, pages = Watch(scene, case.setting.seed), {}
    for second in scene.fleet(case.setting.seed).run(peak):
        watch.observe(second)
        if second.seconds in wanted:
            pages[round(second.seconds)] = next(
                (engine.page() for engine in watch.engines if engine.name == name), None
            )
    found: dict[str, dict[str, str]] = {tool: {} for tool in PACKAGES}
    for moment, at in moments.items():
        with tempfile.TemporaryDirectory(prefix="tools-") as folder:
            now, earlier = pages[at], pages[at - APART_SECONDS]
            found["vllm-doctor"][moment] = _NO_PAGE if now is None else _doctor(programs, Path(folder), now)
            found["inferpilot"][moment] = (
                _NO_PAGE
                if now is None or earlier is None
                else _inferpilot(programs, Path(folder), earlier, now)
            )
    return found


def _doctor(programs: Path, folder: Path, page: str) -> str:
    (folder / "metrics.txt").write_text(page, encoding="utf-8")
    handler = functools.partial(_Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/metrics.txt"
        told = _asked([str(programs / "vllm-doctor"), "diagnose", url, "--output", "json"], folder)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    findings = [
        f"{each['id']} ({each['finding']['severity']})" for each in told["checks"] if each.get("finding")
    ]
    return f"{told['health']}: {', '.join(findings)}" if findings else str(told["health"])


def _inferpilot(programs: Path, folder: Path, earlier: str, now: str) -> str:
    for name, page in (("earlier", earlier), ("now", now)):
        (folder / name).write_text(page, encoding="utf-8")
    told = _asked([str(programs / "inferpilot"), "inspect", "earlier", "now", "--json", "--plain"], folder)
    return str(told["verdict"])


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def _asked(command: list[str], folder: Path) -> Mapping[str, Any]:
    """What it says as JSON; its exit code tells what it found."""
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=_RUN_SECONDS, check=False)
    try:
        found: Mapping[str, Any] = json.loads(done.stdout)
    except json.JSONDecodeError as error:
        raise ToolsError(f"{command[0]}: {done.stderr.decode()[-400:]}") from error
    return found
