"""Manifests against the schemas of Kubernetes and of prometheus-operator, and against the commands that they call."""

from __future__ import annotations

import copy
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from deploy.kubernetes import PORT_NAME, Place, resources
from deploy.render_command import SHIPPED, files
from tests.exporter.running import ROOT, call

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "kubernetes"
THRASHOLD = (sys.executable, "-m", "thrashold")
VERSIONS = ("1.27", "1.31", "1.34")
MOVED = Place("ghcr.example/x:1", "serving", "watching", "llama", 9000, "http://mimir:8080/prometheus")
ENGINE = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "vllm", "namespace": "inference"},
    "spec": {
        "selector": {"matchLabels": {"app": "vllm"}},
        "template": {
            "metadata": {"labels": {"app": "vllm"}},
            "spec": {"containers": [{"name": "vllm", "image": "vllm/vllm-openai:v0.11.0"}]},
        },
    },
}
"""A Deployment as an engine's owner has it."""


def _merged(base: Any, patch: Any) -> Any:  # noqa: ANN401 - JSON
    """As a strategic merge does it: lists of what has a name by name."""
    if isinstance(base, dict) and isinstance(patch, dict):
        return base | {key: _merged(base.get(key), value) for key, value in patch.items()}
    if isinstance(base, list) and isinstance(patch, list):
        named = {each["name"]: each for each in base}
        named |= {each["name"]: _merged(named.get(each["name"]), each) for each in patch}
        return list(named.values())
    return copy.deepcopy(patch)


def _all(place: Place) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, found in resources(place).items():
        for each in found:
            yield name, _merged(ENGINE, each) if name.endswith(".patch.yaml") else each


def _containers(place: Place) -> Iterator[dict[str, Any]]:
    for _, each in _all(place):
        if each["kind"] == "Deployment":
            yield from (
                found
                for found in each["spec"]["template"]["spec"]["containers"]
                if found["image"] == place.image
            )


def test_what_is_committed_is_what_is_rendered() -> None:
    told = {path.name: path.read_text() for path in (ROOT / SHIPPED).iterdir()}
    assert told == files(Place()), "run `thrashold render kubernetes`"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("place", [Place(), MOVED], ids=["shipped", "moved"])
def test_kubernetes_knows_every_key(place: Place, version: str) -> None:
    checked = 0
    for _, each in _all(place):
        if not each["apiVersion"].startswith("monitoring.coreos.com"):
            kubernetes_validate.validate(each, version, strict=True)
            checked += 1
    assert checked == 8


def _closed(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """A custom resource's schema says what is dropped by leaving it out: here it is an error."""
    if isinstance(schema, dict):
        made = {key: _closed(value) for key, value in schema.items()}
        if isinstance(made.get("pattern"), str):
            made["pattern"] = made["pattern"].replace(
                "^(?i)", "(?i)^"
            )  # Go takes it in the middle, Python doesn't
        if (
            "properties" in made
            and "additionalProperties" not in made
            and not made.get("x-kubernetes-preserve-unknown-fields")
        ):
            made["additionalProperties"] = False
        return made
    return [_closed(each) for each in schema] if isinstance(schema, list) else schema


@pytest.mark.parametrize(
    ("schema", "resource"),
    [
        ("podmonitor", resources(Place())["podmonitor.yaml"][0]),
        (
            "prometheusrule",
            yaml.safe_load((ROOT / "deploy/prometheus/thrashold.prometheusrule.yml").read_text()),
        ),
    ],
)
def test_the_operator_knows_every_key(schema: str, resource: dict[str, Any]) -> None:
    told = _closed(json.loads((FIXTURES / f"{schema}-v1.schema.json").read_text()))
    told["properties"]["metadata"] = {"type": "object"}
    jsonschema.validate(resource, told)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**resource, "spec": {**resource["spec"], "unheardOf": 1}}, told)


def test_no_container_may_more_than_it_has_to() -> None:
    found = list(_containers(MOVED))
    assert [each["name"] for each in found] == ["thrashold", "thrashold", "desk"]
    for each in found:
        context = each["securityContext"]
        assert context["runAsNonRoot"]
        assert context["readOnlyRootFilesystem"]
        assert not context["allowPrivilegeEscalation"]
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert {"requests", "limits"} <= set(each["resources"])
        mounted = {mount["name"] for mount in each["volumeMounts"]}
        assert mounted


def test_flags_are_those_of_the_commands() -> None:
    for each in _containers(Place()):
        told = call("--help", command=(*THRASHOLD, each["args"][0])).stdout
        flags = {part for part in each["args"] if part.startswith("--")}
        assert flags <= set(re.findall(r"--[a-z-]+", told))


def test_parts_find_one_another() -> None:
    named = dict(_all(MOVED))
    pods = named["sidecar.patch.yaml"]["spec"]["template"]["metadata"]["labels"]
    assert pods == {"app": "vllm", "thrashold": "sidecar"}
    monitor = named["podmonitor.yaml"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= pods.items()
    assert monitor["spec"]["podMetricsEndpoints"][0]["port"] == PORT_NAME
    assert monitor["metadata"]["namespace"] == MOVED.namespace
    desk = [each for name, each in _all(MOVED) if name == "desk.yaml"]
    service = next(each for each in desk if each["kind"] == "Service")
    deployment = next(each for each in desk if each["kind"] == "Deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    policies = [each for name, each in _all(MOVED) if name == "networkpolicy.yaml"]
    assert [
        each["spec"]["podSelector"]["matchLabels"].items() <= (pods | labels).items() for each in policies
    ] == [True, True]
    settings = next(each for each in desk if each["kind"] == "ConfigMap")["data"]["desk.yaml"]
    assert yaml.safe_load(settings)["prometheus"] == MOVED.prometheus


def test_a_stale_folder_is_said(tmp_path: Path) -> None:
    command = (*THRASHOLD, "render", "kubernetes", "--out", str(tmp_path))
    assert call(command=command).returncode == 0
    assert call("--check", command=command).returncode == 0
    stale = call("--check", "--namespace", "other", command=command)
    assert stale.returncode == 1
    assert "sidecar.patch.yaml" in stale.stderr
