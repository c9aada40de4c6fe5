"""The whole stack in containers: what ``docker compose`` reads, and what the programs in them do.

Plain data. Rules, boards and what Alertmanager does are made by their own commands; here is where each finds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deploy.ports import Ports
from deploy.stack import SCRAPE_SECONDS

Service = dict[str, Any]
FILE, FOLDER = "docker-compose.yml", "deploy/compose"
PROMETHEUS_FILE, DESK_FILE, ALERTMANAGER_FILE = (
    f"{FOLDER}/{name}" for name in ("prometheus.yml", "desk.yaml", "alertmanager.yml")
)
_PORTS = Ports()
"""Inside the containers, and of this machine."""
_VLLM_SIDECAR_PORT = 9817
"""Of this machine: inside it is the sidecar's own."""
_VLLM_PORT = 8000
_TOKEN = "webhook-token"  # noqa: S105 - a secret's name
TOKEN_FILE = f"/run/secrets/{_TOKEN}"
_PYTHON = "/opt/thrashold/bin/python"
_LOCAL = "thrashold:local"
_SCRAPE = f"{SCRAPE_SECONDS}s"
_CLOSED: Service = {
    "restart": "unless-stopped",
    "read_only": True,
    "tmpfs": ["/tmp"],  # noqa: S108 - of the container
    "cap_drop": ["ALL"],
    "security_opt": ["no-new-privileges:true"],
}


@dataclass(frozen=True, slots=True)
class Containers:
    """What runs. ``image``: of ours; the default one is built from the checkout, another one is pulled."""

    image: str = _LOCAL
    scenario: str = "incident"
    cluster: str = "compose"
    vllm_image: str = "vllm/vllm-openai:v0.11.0"
    model: str = "Qwen/Qwen2.5-0.5B-Instruct"


def compose(asked: Containers) -> dict[str, Any]:
    """``docker-compose.yml``."""
    services = {
        "engine": _drill(asked),
        "sidecar": _sidecar(asked),
        "vllm": _vllm(asked),
        "vllm-sidecar": _vllm_sidecar(asked),
        "desk": _desk(asked),
        "prometheus": _prometheus(),
        "alertmanager": _alertmanager(),
        "grafana": _grafana(),
    }
    kept = {
        source
        for service in services.values()
        for mount in service.get("volumes", ())
        if not (source := mount.partition(":")[0]).startswith(".")
    }
    return {
        "services": services,
        "secrets": {_TOKEN: {"file": f"${{WEBHOOK_TOKEN_FILE:-./secrets/{_TOKEN}}}"}},
        "volumes": dict.fromkeys(sorted(kept)),
    }


def prometheus_settings(asked: Containers) -> Mapping[str, Any]:
    """Both sidecars' names are looked up: who isn't started has no address, and is no target that is down."""
    names = {"names": ["engine", "vllm"], "type": "A", "port": _PORTS.sidecar, "refresh_interval": _SCRAPE}
    return {
        "global": {"scrape_interval": _SCRAPE, "evaluation_interval": _SCRAPE},
        "rule_files": ["thrashold.rules.yml"],
        "alerting": {
            "alertmanagers": [{"static_configs": [{"targets": [f"alertmanager:{_PORTS.alertmanager}"]}]}]
        },
        "scrape_configs": [
            {
                "job_name": "thrashold",
                "dns_sd_configs": [names],
                "relabel_configs": [{"target_label": "cluster", "replacement": asked.cluster}],
            }
        ],
    }


def desk_settings() -> Mapping[str, Any]:
    """Its names are told, since a page on the web could come by a name of its own."""
    return {
        "listen": f"0.0.0.0:{_PORTS.desk}",
        "host_names": ["localhost", "127.0.0.1", "desk"],
        "data": "/desk",
        "open_pages": True,  # the port is this machine's alone, and the network the containers'
        "webhook_token_file": TOKEN_FILE,
        "workers": [
            f"http://engine:{_PORTS.sidecar}",
            {"sidecar": f"http://vllm:{_PORTS.sidecar}", "engines": ["vllm"]},
        ],
        "prometheus": f"http://prometheus:{_PORTS.prometheus}",
    }


def alertmanager_environment() -> Mapping[str, str]:
    """For ``thrashold alerts render``, which makes what Alertmanager does: people are told through the desk."""
    return {
        "THRASHOLD_ALERTS_DESK": f"http://desk:{_PORTS.desk}",
        "THRASHOLD_ALERTS_DESK_TOKEN_FILE": TOKEN_FILE,
    }


def _ours(asked: Containers, command: list[str], **more: object) -> Service:
    build = {"context": ".", "dockerfile": "deploy/Dockerfile", "args": {"EXTRAS": "[drill,analysis]"}}
    own = {"build": build} if asked.image == _LOCAL else {}
    return {"image": asked.image, **own, "command": command, **_CLOSED, **more}


def _answers(port: int, path: str) -> Service:
    """In a container of ours, which has no other program to ask with."""
    ask = f"import urllib.request as r; r.urlopen('http://127.0.0.1:{port}{path}', timeout=2)"
    return {"test": ["CMD", _PYTHON, "-c", ask], **_every(), "start_period": "20s"}


def _is_ready(port: int, path: str) -> Service:
    url = f"http://127.0.0.1:{port}{path}"
    return {"test": ["CMD", "wget", "-q", "-O", "/dev/null", url], **_every()}


def _every() -> Service:
    return {"interval": "10s", "timeout": "5s", "retries": 6}


def _published(port: int, inside: int | None = None) -> list[str]:
    """On this machine alone."""
    return [f"127.0.0.1:{port}:{inside or port}"]


def _drill(asked: Containers) -> Service:
    return _ours(
        asked,
        ["drill", "serve", asked.scenario, "--repeat", "--out", "/drill"],
        volumes=["drill:/drill"],
        ports=_published(_PORTS.sidecar),  # the sidecar shares its network, as it does in an engine's pod
        healthcheck=_answers(_PORTS.drill, "/metrics"),
    )


def _exporter(which: list[str], recording: str) -> list[str]:
    return [
        "exporter",
        *which,
        "--listen",
        f"0.0.0.0:{_PORTS.sidecar}",
        "--recorder",
        f"/recording/{recording}",
    ]


def _sidecar(asked: Containers) -> Service:
    return _ours(
        asked,
        _exporter(["--config", "/drill/sidecar.yaml"], "flight.db"),
        network_mode="service:engine",
        depends_on={"engine": {"condition": "service_healthy"}},
        volumes=["drill:/drill:ro", "recording:/recording"],
        healthcheck=_answers(_PORTS.sidecar, "/-/healthy"),
    )


def _vllm(asked: Containers) -> Service:
    """It compiles kernels where its image has them, so that its root can't be read-only."""
    gpu = {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
    model = f"${{VLLM_MODEL:-{asked.model}}}"
    return {
        "image": asked.vllm_image,
        "profiles": ["vllm"],
        "command": ["--model", model, "--host", "127.0.0.1", "--port", f"{_VLLM_PORT}"],
        "restart": "unless-stopped",
        "environment": {"HF_HOME": "/models"},
        "volumes": ["models:/models"],
        "ports": _published(_VLLM_SIDECAR_PORT, _PORTS.sidecar),
        "deploy": {"resources": {"reservations": {"devices": [gpu]}}},
    }


def _vllm_sidecar(asked: Containers) -> Service:
    return _ours(
        asked,
        _exporter(["--engine", f"vllm=http://127.0.0.1:{_VLLM_PORT}"], "vllm.db"),
        profiles=["vllm"],
        network_mode="service:vllm",
        depends_on=["vllm"],
        volumes=["recording:/recording"],
    )


def _desk(asked: Containers) -> Service:
    return _ours(
        asked,
        ["desk", "--config", "/etc/thrashold/desk.yaml"],
        secrets=[_TOKEN],
        volumes=[f"./{DESK_FILE}:/etc/thrashold/desk.yaml:ro", "desk:/desk"],
        ports=_published(_PORTS.desk),
        healthcheck=_answers(_PORTS.desk, "/-/healthy"),
    )


def _prometheus() -> Service:
    return {
        "image": "prom/prometheus:v3.5.0",
        "user": "65534:65534",
        "command": [
            "--config.file=/etc/prometheus/prometheus.yml",
            "--storage.tsdb.path=/prometheus",
            "--storage.tsdb.retention.time=15d",
        ],
        **_CLOSED,
        "volumes": [
            f"./{PROMETHEUS_FILE}:/etc/prometheus/prometheus.yml:ro",
            "./deploy/prometheus/thrashold.rules.yml:/etc/prometheus/thrashold.rules.yml:ro",
            "prometheus:/prometheus",
        ],
        "ports": _published(_PORTS.prometheus),
        "healthcheck": _is_ready(_PORTS.prometheus, "/-/ready"),
    }


def _alertmanager() -> Service:
    return {
        "image": "prom/alertmanager:v0.28.1",
        "user": "65534:65534",
        "secrets": [_TOKEN],
        "command": [
            "--config.file=/etc/alertmanager/alertmanager.yml",
            "--storage.path=/alertmanager",
            "--cluster.listen-address=",
        ],
        **_CLOSED,
        "volumes": [
            f"./{ALERTMANAGER_FILE}:/etc/alertmanager/alertmanager.yml:ro",
            "alertmanager:/alertmanager",
        ],
        "ports": _published(_PORTS.alertmanager),
        "healthcheck": _is_ready(_PORTS.alertmanager, "/-/ready"),
    }


def _grafana() -> Service:
    asked = "set GRAFANA_PASSWORD, in the environment or in a file .env"
    return {
        "image": "grafana/grafana:12.1.1",
        "user": "472:0",
        "environment": {
            "GF_SECURITY_ADMIN_PASSWORD": f"${{GRAFANA_PASSWORD:?{asked}}}",
            "GF_ANALYTICS_REPORTING_ENABLED": "false",
            "GF_ANALYTICS_CHECK_FOR_UPDATES": "false",
        },
        "depends_on": ["prometheus"],
        **_CLOSED,
        "volumes": [
            "./deploy/grafana/provisioning:/etc/grafana/provisioning:ro",
            "./deploy/grafana/dashboards:/etc/grafana/dashboards/thrashold:ro",
            "grafana:/var/lib/grafana",
        ],
        "ports": _published(_PORTS.grafana),
        "healthcheck": _is_ready(_PORTS.grafana, "/api/health"),
    }
