"""A real Prometheus for a test: filled with a past, started on loopback, asked over HTTP. Debian's package has it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.processes import end

_LISTENING = re.compile(r'msg="Listening on".*address=127\.0\.0\.1:(\d+)')
_START_SECONDS = 20.0
_NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
Labels = tuple[tuple[str, str], ...]


def tool(name: str, package: str = "prometheus") -> str:
    """The path of a program of Debian's ``package``; skips where there is none, fails in CI."""
    found = shutil.which(name)
    if found is None:
        told = f"no {name} here: apt-get install -y {package}"
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must have it: {told}", pytrace=False)
        pytest.skip(told)
    return found


@dataclass(frozen=True)
class Prometheus:
    """One that runs, at ``url``."""

    url: str

    def query_range(
        self, expression: str, start: float, end: float, step: float
    ) -> dict[Labels, dict[float, float]]:
        """Values by time, by labels, as the server gives them. Raises httpx.HTTPStatusError with its words."""
        asked = {"query": expression, "start": start, "end": end, "step": step}
        # VictoriaMetrics would move instants to whole steps, where its cache has them
        answer = self._get("/api/v1/query_range", asked | {"nocache": "1"})
        return {
            tuple(sorted(series["metric"].items())): {
                float(at): float(value) for at, value in series["values"]
            }
            for series in answer["data"]["result"]
        }

    def raw(self, name: str, seconds: int) -> dict[Labels, list[float]]:
        """When samples of a name were taken within the last seconds, by their other labels."""
        answer = self._get("/api/v1/query", {"query": f"{name}[{seconds}s]"})
        return {
            tuple(sorted((key, text) for key, text in series["metric"].items() if key != "__name__")): [
                float(at) for at, _ in series["values"]
            ]
            for series in answer["data"]["result"]
        }

    def alerts(self) -> list[Mapping[str, Any]]:
        """Those that are pending or fire now, each with ``labels``, ``state`` and ``activeAt``."""
        found: list[Mapping[str, Any]] = self._get("/api/v1/alerts", {})["data"]["alerts"]
        return found

    def groups(self) -> list[dict[str, Any]]:
        """Its groups of rules, as its API tells of them."""
        groups: list[dict[str, Any]] = self._get("/api/v1/rules", {})["data"]["groups"]
        return groups

    def own(self, name: str) -> float:
        """One of its own metrics, summed over its labels. 0 where there is none."""
        page = httpx.get(f"{self.url}/metrics", timeout=30.0, trust_env=False).text
        return sum(
            float(line.rpartition(" ")[2]) for line in page.splitlines() if re.match(rf"{name}[ {{]", line)
        )

    def reload(self) -> None:
        """Has it read its settings anew; needs ``--web.enable-lifecycle``. Raises AssertionError with its words."""
        answer = httpx.post(f"{self.url}/-/reload", timeout=60.0, trust_env=False)
        assert answer.status_code == httpx.codes.OK, answer.text

    def write(self, body: bytes) -> None:
        """Hands over a remote write; needs ``--web.enable-remote-write-receiver``. Raises AssertionError."""
        headers = {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf"}
        url = f"{self.url}/api/v1/write"
        answer = httpx.post(url, content=body, headers=headers, timeout=120.0, trust_env=False)
        assert answer.status_code == httpx.codes.NO_CONTENT, answer.text

    def _get(self, path: str, parameters: Mapping[str, Any]) -> Any:  # noqa: ANN401 -- JSON
        # to look certificates up takes longer than most queries, and this is loopback without TLS
        answer = httpx.get(
            self.url + path, params=dict(parameters), timeout=30.0, trust_env=False, verify=_NO_CERTIFICATES
        )
        assert answer.status_code == httpx.codes.OK, answer.text
        return answer.json()


def openmetrics(data: Mapping[tuple[str, Labels], Mapping[int, float]]) -> str:
    """A dump of gauges, by name and labels, each with its values by time."""
    lines, begun = [], ""
    for (name, labels), row in sorted(data.items()):
        if name != begun:
            lines.append(f"# TYPE {name} gauge")
            begun = name
        text = ",".join(f'{label}="{value}"' for label, value in labels)
        lines += [f"{name}{{{text}}} {value} {at}" for at, value in row.items()]
    return "\n".join([*lines, "# EOF", ""])


def add_blocks(openmetrics: Path, folder: Path, *, fill_seconds: float = 120) -> None:
    """Put what an OpenMetrics dump holds beside what a Prometheus with its data in ``folder`` remembers already.

    It may take ``fill_seconds``.
    """
    subprocess.run(
        [tool("promtool"), "tsdb", "create-blocks-from", "openmetrics", "-q", openmetrics, folder / "data"],
        check=True,
        capture_output=True,
        timeout=fill_seconds,
    )


@contextlib.contextmanager
def serving(openmetrics: Path | None, folder: Path, *arguments: str) -> Iterator[Prometheus]:
    """One that remembers what an OpenMetrics dump holds, and what was added before, with its data in ``folder``."""
    if openmetrics is not None:
        add_blocks(openmetrics, folder)
    data = folder / "data"
    settings = folder / "prometheus.yml"
    settings.write_text("global: {}\n")
    with started(settings, data, "--storage.tsdb.retention.time=100y", *arguments) as server:
        yield server


@contextlib.contextmanager
def started(settings: Path, data: Path, *arguments: str, cores: int | None = None) -> Iterator[Prometheus]:
    """One that goes by a configuration, with its data in a folder and its log beside the configuration.

    It takes no more than so many ``cores``.
    """
    log = settings.with_name("prometheus.log")
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [
                tool("prometheus"),
                f"--config.file={settings}",
                f"--storage.tsdb.path={data}",
                "--web.listen-address=127.0.0.1:0",
                *arguments,
            ],
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=os.environ | ({} if cores is None else {"GOMAXPROCS": str(cores)}),
        )
    try:
        url = f"http://127.0.0.1:{_port(process, log)}"
        _wait_ready(url)
        yield Prometheus(url)
    finally:
        end(process)


def _port(process: subprocess.Popen[bytes], log: Path) -> str:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        found = _LISTENING.search(log.read_text())
        if found is not None:
            return found.group(1)
        time.sleep(0.02)
    raise RuntimeError(f"Prometheus didn't start; its log:\n{log.read_text()}")


def _wait_ready(url: str) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        if httpx.get(f"{url}/-/ready", timeout=5.0, trust_env=False).status_code == httpx.codes.OK:
            return
        time.sleep(0.02)
    raise RuntimeError(f"{url} is never ready")
