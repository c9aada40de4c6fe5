"""What a Kubernetes cluster needs beside the rules and the boards: sidecar, scraping, desk, and who may reach them.

Plain data, one file each. The sidecar is a patch: an engine's Deployment is its owner's, and stays as it is otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Resource = dict[str, Any]
PORT, DESK_PORT = 9807, 9808
PORT_NAME = "thrashold"
_LABEL = "app.kubernetes.io/name"
_PART = "app.kubernetes.io/component"
_NOBODY = 65532
"""As the image has it."""
_CLOSED: Resource = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "runAsUser": _NOBODY,
    "runAsGroup": _NOBODY,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
_WEB = "/etc/thrashold"


@dataclass(frozen=True, slots=True)
class Place:
    """Where it goes.

    ``deployment``: the engine's, in ``namespace``; ``monitoring``: the namespace of Prometheus and Alertmanager, where
    the desk goes too; ``prometheus``: the server's URL from inside the cluster.
    """

    image: str = "REGISTRY/thrashold:0.1.0"
    namespace: str = "inference"
    monitoring: str = "monitoring"
    deployment: str = "vllm"
    engine_port: int = 8000
    prometheus: str = "http://prometheus-operated.monitoring.svc:9090"


def resources(place: Place) -> Mapping[str, tuple[Resource, ...]]:
    """All of it by the name of its file."""
    return {
        "sidecar.patch.yaml": (sidecar(place, _gpus()),),
        "sidecar-dcgm.patch.yaml": (sidecar(place, _dcgm()),),
        "podmonitor.yaml": (pod_monitor(place),),
        "networkpolicy.yaml": (_sidecar_policy(place), _desk_policy(place)),
        "desk.yaml": (_desk_settings(place), _desk_claim(place), _desk_service(place), desk(place)),
    }


def sidecar(place: Place, gpus: tuple[tuple[str, ...], tuple[Resource, ...]]) -> Resource:
    """A strategic merge patch of an engine's Deployment. ``gpus``: flags and variables by which they are read."""
    flags, variables = gpus
    engine = f"$(POD)=http://localhost:{place.engine_port}"
    listen = ("--listen", f"0.0.0.0:{PORT}", "--web-config", f"{_WEB}/web.yml")
    recorder = ("--recorder", "/recording/flight.db")
    alive = {"httpGet": {"path": "/-/healthy", "port": PORT_NAME}}
    container = {
        "name": "thrashold",
        "image": place.image,
        "args": ["exporter", "--engine", engine, *listen, *recorder, *flags],
        "env": [
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "THRASHOLD_SIDECAR_USER", "value": "prometheus"},
            {"name": "THRASHOLD_SIDECAR_PASSWORD_FILE", "value": f"{_WEB}/password"},
            *variables,
        ],
        "ports": [{"name": PORT_NAME, "containerPort": PORT}],
        # `/-/ready` says whether an engine answers: a slow engine must not take its own pod out of service
        "readinessProbe": alive,
        "livenessProbe": {**alive, "periodSeconds": 30},
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
        "securityContext": _CLOSED,
        "volumeMounts": [
            {"name": "thrashold", "mountPath": _WEB, "readOnly": True},
            {"name": "thrashold-recording", "mountPath": "/recording"},
        ],
    }
    pod = {
        "containers": [container],
        "volumes": [
            {"name": "thrashold", "secret": {"secretName": "thrashold"}},
            {"name": "thrashold-recording", "emptyDir": {"sizeLimit": "512Mi"}},
        ],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": place.deployment, "namespace": place.namespace},
        "spec": {"template": {"metadata": {"labels": {"thrashold": "sidecar"}}, "spec": pod}},
    }


def _gpus() -> tuple[tuple[str, ...], tuple[Resource, ...]]:
    """All GPUs of the node are seen, none is reserved: the runtime's own variables, without privileges."""
    return (), (
        {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
        {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "utility"},
    )


def _dcgm() -> tuple[tuple[str, ...], tuple[Resource, ...]]:
    """Where containers that reserve no GPU are shown none: dcgm-exporter of the node, which listens on its address."""
    node = {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}
    return ("--gpus", "never", "--dcgm", "http://$(NODE):9400"), (node,)


def pod_monitor(place: Place) -> Resource:
    """For the Prometheus operator: scrape each sidecar."""
    user = {"key": "username", "name": "thrashold"}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": _named("thrashold", place.namespace, "sidecar"),
        "spec": {
            "selector": {"matchLabels": {"thrashold": "sidecar"}},
            "podMetricsEndpoints": [
                {
                    "port": PORT_NAME,
                    "interval": "15s",
                    "scrapeTimeout": "10s",
                    "basicAuth": {"username": user, "password": {"key": "password", "name": "thrashold"}},
                }
            ],
        },
    }


def desk(place: Place) -> Resource:
    """The desk: one, since it is one that has the incidents."""
    container = {
        "name": "desk",
        "image": place.image,
        "args": ["desk", "--config", f"{_WEB}/desk.yaml"],
        "ports": [{"name": "desk", "containerPort": DESK_PORT}],
        "readinessProbe": {"tcpSocket": {"port": "desk"}},
        "livenessProbe": {"tcpSocket": {"port": "desk"}, "periodSeconds": 30},
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}},
        "securityContext": _CLOSED,
        "volumeMounts": [
            {"name": "settings", "mountPath": _WEB, "readOnly": True},
            {"name": "secrets", "mountPath": "/run/secrets/thrashold", "readOnly": True},
            {"name": "data", "mountPath": "/data"},
            {"name": "scratch", "mountPath": "/tmp"},  # noqa: S108 - of the container
        ],
    }
    labels = _labels("desk")
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _named("thrashold-desk", place.monitoring, "desk"),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "automountServiceAccountToken": False,
                    "securityContext": {"fsGroup": _NOBODY},
                    "containers": [container],
                    "volumes": [
                        {"name": "settings", "configMap": {"name": "thrashold-desk"}},
                        {"name": "secrets", "secret": {"secretName": "thrashold-desk"}},
                        {"name": "data", "persistentVolumeClaim": {"claimName": "thrashold-desk"}},
                        {"name": "scratch", "emptyDir": {}},
                    ],
                },
            },
        },
    }


def _desk_settings(place: Place) -> Resource:
    settings = (
        f'listen: "0.0.0.0:{DESK_PORT}"\ndata: /data\nweb_config: /run/secrets/thrashold/web.yml\n'
        f"webhook_token_file: /run/secrets/thrashold/webhook-token\nprometheus: {place.prometheus}\n"
    )
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _named("thrashold-desk", place.monitoring, "desk"),
        "data": {"desk.yaml": settings},
    }


def _desk_claim(place: Place) -> Resource:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": _named("thrashold-desk", place.monitoring, "desk"),
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}},
    }


def _desk_service(place: Place) -> Resource:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _named("thrashold-desk", place.monitoring, "desk"),
        "spec": {
            "selector": _labels("desk"),
            "ports": [{"name": "desk", "port": DESK_PORT, "targetPort": "desk"}],
        },
    }


def _sidecar_policy(place: Place) -> Resource:
    """Who monitors may reach the sidecar.

    A pod that any policy selects is closed but for what policies allow: the engine's own port stays open to all.
    """
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _named("thrashold-sidecar", place.namespace, "sidecar"),
        "spec": {
            "podSelector": {"matchLabels": {"thrashold": "sidecar"}},
            "policyTypes": ["Ingress"],
            "ingress": [
                {"from": [_from(place.monitoring)], "ports": [{"protocol": "TCP", "port": PORT}]},
                {"ports": [{"protocol": "TCP", "port": place.engine_port}]},
            ],
        },
    }


def _desk_policy(place: Place) -> Resource:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _named("thrashold-desk", place.monitoring, "desk"),
        "spec": {
            "podSelector": {"matchLabels": _labels("desk")},
            "policyTypes": ["Ingress"],
            "ingress": [
                {"from": [_from(place.monitoring)], "ports": [{"protocol": "TCP", "port": DESK_PORT}]}
            ],
        },
    }


def _from(namespace: str) -> Resource:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}


def _named(name: str, namespace: str, part: str) -> Resource:
    return {"name": name, "namespace": namespace, "labels": _labels(part)}


def _labels(part: str) -> dict[str, str]:
    return {_LABEL: "thrashold", _PART: part}
