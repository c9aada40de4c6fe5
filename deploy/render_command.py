"""``thrashold render``: what other places than this machine need, as files."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import click
import yaml

from deploy.kubernetes import Place, resources
from exporter.rendered import write_or_check

SHIPPED = Path("deploy/kubernetes")
_HEAD = "# Made by `thrashold render kubernetes`: its options say where things are.\n"
_DEFAULTS = Place()


@click.group()
def render() -> None:
    """Write what Kubernetes needs."""


def files(place: Place) -> dict[str, str]:
    """By name."""
    return {
        name: _HEAD + yaml.safe_dump_all(each, sort_keys=False, width=120)
        for name, each in resources(place).items()
    }


@render.command()
@click.option("--image", default=_DEFAULTS.image, show_default=True, help="Where your image is.")
@click.option("--namespace", default=_DEFAULTS.namespace, show_default=True, help="Of the engines.")
@click.option(
    "--monitoring", default=_DEFAULTS.monitoring, show_default=True, help="Of Prometheus, and of the desk."
)
@click.option(
    "--deployment", default=_DEFAULTS.deployment, show_default=True, help="The engine's Deployment."
)
@click.option(
    "--engine-port", default=_DEFAULTS.engine_port, show_default=True, help="Where the engine serves."
)
@click.option(
    "--prometheus", default=_DEFAULTS.prometheus, show_default=True, help="Its URL inside the cluster."
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=SHIPPED,
    show_default=True,
    help="The folder to write to.",
)
@click.option("--check", is_flag=True, help="Write nothing; exit code 1 where a file isn't what it would be.")
def kubernetes(out: Path, check: bool, **told: str | int) -> None:  # noqa: FBT001 - click calls by name
    """Write manifests: the sidecar as a patch of an engine's Deployment, a PodMonitor, the desk, network policies.

    Rules and boards for Kubernetes are written by `thrashold alerts render` and `thrashold dashboards render`.
    """
    place = Place(**{each.name: told[each.name] for each in fields(Place)})  # type: ignore[arg-type]
    write_or_check(files(place), out, "thrashold render kubernetes", check=check)
