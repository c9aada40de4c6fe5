"""Files that bring the boards into a Grafana: provisioning, and ConfigMaps for the sidecar that loads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from alerts.pack_settings import PackSettings
from alerts.render import as_yaml
from dashboards.board import TITLE
from dashboards.catalogue import boards
from dashboards.normalise import Json

SCRAPE_INTERVAL = "15s"
"""Of the Prometheus: Grafana makes windows of four of them."""
FOLDER_PATH = "/etc/grafana/dashboards/thrashold"
"""Where the provider looks for the boards."""
LOADER_LABEL = "grafana_dashboard"
"""By which Grafana's Helm chart and kube-prometheus-stack find ConfigMaps."""
HEAD = "# Made by `thrashold dashboards render`: don't edit it.\n"


def files(settings: PackSettings) -> dict[str, str]:
    """All files by their path below ``deploy/grafana``."""
    made = {name: board.to_json() for name, board in boards(settings).items()}
    return {
        **{f"dashboards/{name}.json": board_file(board) for name, board in made.items()},
        "provisioning/dashboards/thrashold.yml": _yaml(_provider()),
        "provisioning/datasources/prometheus.yml": _yaml(_datasource()),
        **{f"kubernetes/{name}.configmap.yml": config_map(name, board) for name, board in made.items()},
    }


def board_file(board: Mapping[str, Any]) -> str:
    """As it is imported."""
    return json.dumps(board, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def config_map(name: str, board: Json) -> str:
    """One board for the loader."""
    return _yaml(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": f"thrashold-board-{name}",
                "labels": {LOADER_LABEL: "1", "app.kubernetes.io/name": TITLE},
                "annotations": {"grafana_folder": TITLE},
            },
            "data": {f"thrashold-{name}.json": board_file(board)},
        }
    )


def _provider() -> Json:
    return {
        "apiVersion": 1,
        "providers": [
            {
                "name": TITLE,
                "folder": TITLE,
                "type": "file",
                "disableDeletion": True,
                "allowUiUpdates": False,
                "updateIntervalSeconds": 60,
                "options": {"path": FOLDER_PATH},
            }
        ],
    }


def _datasource() -> Json:
    return {
        "apiVersion": 1,
        "datasources": [
            {
                "name": "Prometheus",
                "uid": "prometheus",
                "type": "prometheus",
                "access": "proxy",
                "url": "http://prometheus:9090",
                "jsonData": {"httpMethod": "POST", "timeInterval": SCRAPE_INTERVAL},
            }
        ],
    }


def _yaml(what: Json) -> str:
    return HEAD + as_yaml(what)
