"""The stack on one machine: what is started, with which files, and in which order.

a drill, or engines of yours -> a sidecar -> Prometheus with our rules -> Alertmanager -> the desk
 an Envoy before them, if asked for               Grafana, where it is here, reads Prometheus
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from deploy.envoy import configuration as envoy_configuration
from deploy.part import ALERTMANAGER, ENVOY, GRAFANA, PROMETHEUS, Part
from deploy.ports import Ports

OURS = (sys.executable, "-m", "thrashold")
CLUSTER = "stack"
SCRAPE_SECONDS = 15
"""At most: rules reach back a minute and need four scrapes in it."""
RENDER_SECONDS = 60.0
_RULES = "thrashold.rules.yml"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a user wants. ``engines``: URLs of their own; none of them: a drill of ``scenario`` with ``drill_options``.

    ``sidecar_config``: settings of the sidecar in a file of theirs, in place of both. ``envoy``: before ``engines``.
    """

    folder: Path
    ports: Ports
    engines: tuple[str, ...] = ()
    sidecar_config: Path | None = None
    scenario: str = "incident"
    drill_options: tuple[str, ...] = ()
    pack_config: Path | None = None
    envoy: bool = False
    scrape_seconds: int = SCRAPE_SECONDS


class NotRenderedError(Exception):
    """A part's own command that writes its files failed: what it said."""


def write_files(asked: Asked) -> None:
    """All that the parts read, below the folder. Raises NotRenderedError, UnservableError and OSError."""
    folder = asked.folder
    config = [] if asked.pack_config is None else ["--config", str(asked.pack_config)]
    desk = {"THRASHOLD_ALERTS_DESK": f"http://127.0.0.1:{asked.ports.desk}"}
    render_with(["alerts", "render", *config, "--out", str(folder / "rules")], desk)
    render_with(["dashboards", "render", *config, "--out", str(folder / "grafana")], {})
    _write(folder / "prometheus.yml", _prometheus(asked))
    if asked.envoy:
        _write(folder / "envoy.yaml", envoy_configuration(asked.engines, asked.ports))
    _write(
        folder / "desk.yaml",
        {
            "workers": [f"http://127.0.0.1:{asked.ports.sidecar}"],
            "prometheus": f"http://127.0.0.1:{asked.ports.prometheus}",
        },
    )
    _write(
        folder / "grafana/provisioning/datasources/prometheus.yml",
        {
            "apiVersion": 1,
            "datasources": [
                {
                    "name": "Prometheus",
                    "uid": "prometheus",
                    "type": "prometheus",
                    "access": "proxy",
                    "url": f"http://127.0.0.1:{asked.ports.prometheus}",
                    "jsonData": {"httpMethod": "POST", "timeInterval": f"{asked.scrape_seconds}s"},
                }
            ],
        },
    )
    _write(
        folder / "grafana/provisioning/dashboards/thrashold.yml",
        {
            "apiVersion": 1,
            "providers": [
                {
                    "name": "thrashold",
                    "folder": "thrashold",
                    "type": "file",
                    "options": {"path": str((folder / "grafana/dashboards").resolve())},
                }
            ],
        },
    )


def parts(asked: Asked) -> tuple[Part, ...]:
    """Those that can be started here, in order."""
    found = [
        *_drill(asked),
        *_envoy(asked),
        _sidecar(asked),
        *_desk(asked),
        *_alertmanager(asked),
        *_prometheus_part(asked),
    ]
    return (*found, *_grafana(asked))


def _drill(asked: Asked) -> tuple[Part, ...]:
    if asked.engines or asked.sidecar_config:
        return ()
    port = asked.ports.drill
    where = ("--port-base", str(port), "--out", str(asked.folder / "drill"))
    command = (*OURS, "drill", "serve", asked.scenario, "--repeat", *where, *asked.drill_options)
    url = f"http://127.0.0.1:{port}/metrics"
    return (Part("drill", command, url, url, f"a fleet that fails, again and again: {asked.scenario}"),)


def _envoy(asked: Asked) -> tuple[Part, ...]:
    path = ENVOY.path()
    if not asked.envoy or path is None:
        return ()
    command = (
        str(path),
        *("--config-path", str(asked.folder / "envoy.yaml")),
        *("--concurrency", "1", "--disable-hot-restart", "--log-level", "warning"),
    )
    ready = f"{_envoy_stats(asked)}/ready"
    return (Part("envoy", command, ready, f"http://127.0.0.1:{asked.ports.gateway}/", "takes clients in"),)


def _envoy_stats(asked: Asked) -> str:
    return f"http://127.0.0.1:{asked.ports.gateway_admin}"


def _sidecar(asked: Asked) -> Part:
    root = f"http://127.0.0.1:{asked.ports.sidecar}"
    listen = ("--listen", f"127.0.0.1:{asked.ports.sidecar}", "--recorder", str(asked.folder / "flight.db"))
    config = asked.sidecar_config or (None if asked.engines else asked.folder / "drill/sidecar.yaml")
    which = ("--config", str(config)) if config else ()
    for each in asked.engines:
        which = (*which, "--engine", each)
    if asked.envoy:
        which = (*which, "--gateway", f"envoy={_envoy_stats(asked)}")
    return Part(
        "sidecar",
        (*OURS, "exporter", *which, *listen),
        f"{root}/-/healthy",
        f"{root}/",
        "reads the engines once a second, and records",
    )


def _desk(asked: Asked) -> tuple[Part, ...]:
    if importlib.util.find_spec("fastapi") is None:
        return ()
    root = f"http://127.0.0.1:{asked.ports.desk}"
    where = ("--listen", f"127.0.0.1:{asked.ports.desk}", "--data", str(asked.folder / "desk"))
    command = (*OURS, "desk", "--config", str(asked.folder / "desk.yaml"), *where)
    return (Part("desk", command, f"{root}/-/healthy", f"{root}/", "hears alerts, and has the report"),)


def _alertmanager(asked: Asked) -> tuple[Part, ...]:
    path = ALERTMANAGER.path()
    if path is None:
        return ()
    root = f"http://127.0.0.1:{asked.ports.alertmanager}"
    command = (
        str(path),
        f"--config.file={asked.folder / 'rules/alertmanager.example.yml'}",
        f"--storage.path={asked.folder / 'alertmanager'}",
        f"--web.listen-address=127.0.0.1:{asked.ports.alertmanager}",
        "--cluster.listen-address=",
    )
    return (Part("alertmanager", command, f"{root}/-/ready", f"{root}/", "tells people, once"),)


def _prometheus_part(asked: Asked) -> tuple[Part, ...]:
    path = PROMETHEUS.path()
    if path is None:
        return ()
    root = f"http://127.0.0.1:{asked.ports.prometheus}"
    command = (
        str(path),
        f"--config.file={asked.folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={asked.folder / 'prometheus'}",
        f"--web.listen-address=127.0.0.1:{asked.ports.prometheus}",
    )
    return (
        Part("prometheus", command, f"{root}/-/ready", f"{root}/alerts", "keeps it, and evaluates the rules"),
    )


def _grafana(asked: Asked) -> tuple[Part, ...]:
    path = GRAFANA.path()
    if path is None:
        return ()
    root = f"http://127.0.0.1:{asked.ports.grafana}"
    password = asked.folder / "grafana-password"
    if not password.is_file():
        password.touch(mode=0o600)
        password.write_text(secrets.token_urlsafe(18), encoding="utf-8")
    server = (str(path),) if path.name == "grafana-server" else (str(path), "server")
    home = "/usr/share/grafana"
    command = (
        *server,
        *(("--homepath", home) if Path(home).is_dir() else ()),
        "cfg:server.http_addr=127.0.0.1",
        f"cfg:server.http_port={asked.ports.grafana}",
        f"cfg:paths.data={asked.folder / 'grafana/data'}",
        f"cfg:paths.logs={asked.folder / 'grafana/logs'}",
        f"cfg:paths.provisioning={(asked.folder / 'grafana/provisioning').resolve()}",
        f"cfg:security.admin_password=$__file{{{password.resolve()}}}",
        "cfg:analytics.reporting_enabled=false",
        "cfg:analytics.check_for_updates=false",
    )
    told = f"draws; user admin, password in {password}"
    return (Part("grafana", command, f"{root}/api/health", f"{root}/d/thrashold-fleet", told),)


def _prometheus(asked: Asked) -> dict[str, object]:
    every = f"{asked.scrape_seconds}s"
    return {
        "global": {"scrape_interval": every, "evaluation_interval": every},
        "rule_files": [f"rules/{_RULES}"],
        "alerting": {
            "alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{asked.ports.alertmanager}"]}]}]
        },
        "scrape_configs": [
            {
                "job_name": "thrashold",
                "static_configs": [
                    {"targets": [f"127.0.0.1:{asked.ports.sidecar}"], "labels": {"cluster": CLUSTER}}
                ],
            }
        ],
    }


def render_with(arguments: Sequence[str], more: Mapping[str, str]) -> None:
    """Have one of our commands write its files, with variables of the environment besides. Raises NotRenderedError."""
    done = subprocess.run(  # noqa: S603 - our own command
        [*OURS, *arguments],
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        timeout=RENDER_SECONDS,
        check=False,
    )
    if done.returncode:
        raise NotRenderedError(done.stderr.strip().removeprefix("Error: "))


def _write(file: Path, content: dict[str, object]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
