"""``thrashold render``: what other places than this machine need, as files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import click
import yaml

from deploy.compose import (
    ALERTMANAGER_FILE,
    DESK_FILE,
    FILE,
    PROMETHEUS_FILE,
    Containers,
    alertmanager_environment,
    desk_settings,
    prometheus_settings,
)
from deploy.compose import compose as composed
from deploy.kubernetes import Place, resources
from deploy.stack import NotRenderedError, render_with
from exporter.rendered import write_or_check

SHIPPED = Path("deploy/kubernetes")
_HEAD = "# Made by `thrashold render kubernetes`: its options say where things are.\n"
_DEFAULTS = Place()
_CONTAINERS = Containers()
_COMPOSE_HEAD = "# Made by `thrashold render compose`: its options say what runs.\n"
_HOW = """\
# The whole stack in containers, on loopback:
#
#   echo "GRAFANA_PASSWORD=$(openssl rand -base64 18)" > .env
#   mkdir -m 700 secrets; openssl rand -hex 24 > secrets/webhook-token   # the folder is closed to others, not the file
#   docker compose up --build                     # a drill of the incident, again and again
#   docker compose --profile vllm up --build      # and a real vLLM beside it (an NVIDIA GPU is needed)
#
# then http://127.0.0.1:9808 (the desk), :3000 (Grafana, user admin), :9090 (Prometheus), :9093 (Alertmanager),
# :9807 (the sidecar's own page).

"""
_EXAMPLE = "alertmanager.example.yml"
_Asked = TypeVar("_Asked", Place, Containers)
_Command = TypeVar("_Command", bound=Callable[..., None])


class _Plain(yaml.SafeDumper):
    """Says what several services have at each of them: no line needs another one to be read."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


@click.group()
def render() -> None:
    """Write what Kubernetes or docker compose needs."""


def files(place: Place) -> dict[str, str]:
    """Of Kubernetes, by name."""
    return {
        name: _HEAD + yaml.safe_dump_all(each, sort_keys=False, width=120)
        for name, each in resources(place).items()
    }


def compose_files(asked: Containers) -> dict[str, str]:
    """Of docker compose, by path. Raises NotRenderedError."""
    with tempfile.TemporaryDirectory() as folder:
        render_with(["alerts", "render", "--out", folder], alertmanager_environment())
        alertmanager = (Path(folder) / _EXAMPLE).read_text(encoding="utf-8")
    return {
        FILE: _COMPOSE_HEAD + "#\n" + _HOW + _plain(composed(asked)),
        PROMETHEUS_FILE: _COMPOSE_HEAD + _plain(prometheus_settings(asked)),
        DESK_FILE: _COMPOSE_HEAD + _plain(desk_settings()),
        ALERTMANAGER_FILE: alertmanager,
    }


def _plain(content: Mapping[str, Any]) -> str:
    return yaml.dump(dict(content), Dumper=_Plain, sort_keys=False, width=120)


def _option(name: str, default: object, told: str) -> Callable[[_Command], _Command]:
    return click.option(name, default=default, show_default=True, help=told)


def _written_to(default: Path) -> Callable[[_Command], _Command]:
    folder = click.Path(path_type=Path, file_okay=False)
    told = "The folder to write to."
    return click.option("-o", "--out", type=folder, default=default, show_default=True, help=told)


_CHECKED = click.option(
    "--check", is_flag=True, help="Write nothing; exit code 1 where a file isn't what it would be."
)


@render.command()
@_option("--image", _DEFAULTS.image, "Where your image is.")
@_option("--namespace", _DEFAULTS.namespace, "Of the engines.")
@_option("--monitoring", _DEFAULTS.monitoring, "Of Prometheus, and of the desk.")
@_option("--deployment", _DEFAULTS.deployment, "The engine's Deployment.")
@_option("--engine-port", _DEFAULTS.engine_port, "Where the engine serves.")
@_option("--prometheus", _DEFAULTS.prometheus, "Its URL inside the cluster.")
@_written_to(SHIPPED)
@_CHECKED
def kubernetes(out: Path, check: bool, **told: str | int) -> None:  # noqa: FBT001 - click calls by name
    """Write manifests: the sidecar as a patch of an engine's Deployment, a PodMonitor, the desk, network policies.

    Rules and boards for Kubernetes are written by `thrashold alerts render` and `thrashold dashboards render`.
    """
    write_or_check(files(_of(Place, told)), out, "thrashold render kubernetes", check=check)


@render.command()
@_option("--image", _CONTAINERS.image, "Ours; the default is built from the checkout, another one is pulled.")
@_option("--scenario", _CONTAINERS.scenario, "What fails in the drill.")
@_option("--cluster", _CONTAINERS.cluster, "The label that all series bear.")
@_option("--vllm-image", _CONTAINERS.vllm_image, "Of the real engine, which a profile starts.")
@_option("--model", _CONTAINERS.model, "That it serves.")
@_written_to(Path())
@_CHECKED
def compose(out: Path, check: bool, **told: str | int) -> None:  # noqa: FBT001 - click calls by name
    """Write docker-compose.yml, and what Prometheus, Alertmanager and the desk read in it.

    Rules and boards are mounted from deploy/prometheus and deploy/grafana beside it: `thrashold alerts render` and
    `thrashold dashboards render` write them.
    """
    try:
        made = compose_files(_of(Containers, told))
    except NotRenderedError as error:
        raise click.ClickException(str(error)) from error
    write_or_check(made, out, "thrashold render compose", check=check)


def _of(kind: type[_Asked], told: Mapping[str, Any]) -> _Asked:
    return kind(**{each.name: told[each.name] for each in fields(kind)})
