"""The page of settings: fresh, whole, and its examples are what the sidecar takes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from exporter.settings import load
from exporter.settings_reference import all_levels, reference
from exporter.sidecar_settings import SidecarSettings
from exporter.web_config import WebConfig
from tests.exporter.running import ROOT
from tests.exporter.settings_files import write

PAGE = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
EXAMPLE, WEB_EXAMPLE = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
KEYS = re.findall(r"^\| `([^`]+)` \| (.*?) \| (.*?) \| (.*) \|$", PAGE, re.MULTILINE)
SECRETS = {"engines[].bearer_token", "engines[].basic_auth.password"}


def test_the_page_is_fresh() -> None:
    assert reference() == PAGE, "run: make docs"


def test_the_command_writes_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "exporter.settings_reference"]
    subprocess.run([*command, str(tmp_path / "settings.md")], cwd=ROOT, timeout=60, check=True)
    assert (tmp_path / "settings.md").read_text(encoding="utf-8") == PAGE
    done = subprocess.run(command, cwd=ROOT, timeout=60, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "usage: python -m exporter.settings_reference PATH\n")


def paths_in(value: Any, path: str = "") -> set[str]:  # noqa: ANN401 - YAML holds anything
    """The key paths of what a file holds, as the page writes them."""
    if isinstance(value, list):
        return set().union(*(paths_in(item, f"{path}[]") for item in value))
    if not isinstance(value, dict) or path == "engines[].headers":
        return set()
    named = {f"{path}.{key}" if path else key: item for key, item in value.items()}
    return set(named).union(*(paths_in(item, key) for key, item in named.items()))


def test_the_example_loads_and_shows_every_key_but_plain_secrets(tmp_path: Path) -> None:
    settings = load(SidecarSettings, file=write(tmp_path, EXAMPLE))
    assert [engine.name for engine in settings.engines] == [
        "worker-1:8000",
        "worker-7",
        "worker-8:8443",
        "worker-9:8443",
    ]
    assert settings.engines[1].model_config == tmp_path / "llama/config.json"
    keys = {key for key, *_ in KEYS}
    connection = {
        key
        for key in keys
        for part in ("gpus.dcgm.", "gateways[].")
        if key.startswith(part) and key.replace(part, "engines[].") in keys
    }
    assert paths_in(yaml.safe_load(EXAMPLE)) - connection == keys - SECRETS - connection


def test_the_example_of_a_web_config_loads(tmp_path: Path) -> None:
    web = load(WebConfig, file=write(tmp_path, WEB_EXAMPLE))
    assert web.tls_server_config is not None
    assert list(web.basic_auth_users) == ["prometheus"]


def test_every_key_of_every_level_stands_there_with_its_meaning() -> None:
    assert (
        len(KEYS) == len({key for key, *_ in KEYS}) == sum(len(level.kind.fields) for level in all_levels())
    )
    for key, kind, default, meaning in KEYS:
        assert kind, key
        assert default, key
        assert re.match(r"[A-Z`].*\.$", meaning), key


@pytest.mark.parametrize(
    ("key", "kind", "default"),
    [
        ("listen", "text", "`127.0.0.1:9807`"),
        ("engines", "a list, each [keys](#engines) or its URL alone, or `NAME=URL`", "not set"),
        ("engines[].url", "text", "needed"),
        ("recorder", "[keys](#recorder) or its path alone", "not set"),
        ("recorder.path", "a file", "needed"),
        ("engines[].deadline_seconds", "a number above 0, at most 86400", "`10`"),
        ("engines[].tensor_parallel", "a whole number from 1 to 1024", "not set"),
        ("engines[].block_group_tokens", "a list, each a whole number from 1 to 1048576", "not set"),
        ("engines[].model_config", "a file", "not set"),
        ("engines[].tls", "[keys](#enginestls)", "those below"),
        ("engines[].tls.insecure_skip_verify", "true or false", "`false`"),
        ("engines[].long_prompt_tokens", "a whole number at least 1", "`65536`"),
    ],
)
def test_types_limits_and_defaults_are_said_in_words(key: str, kind: str, default: str) -> None:
    assert [row[1:3] for row in KEYS if row[0] == key] == [(kind, default)]


def test_flags_and_variables_stand_with_their_keys() -> None:
    ways = {key: re.findall(r"`(--[a-z-]+|THRASHOLD_[A-Z_]+)`", meaning) for key, _, _, meaning in KEYS}
    for key, found in ways.items():
        if key.startswith("gpus.dcgm.") and found:
            assert found == ["THRASHOLD_" + key.replace(".", "_").upper()]
    assert {key: found for key, found in ways.items() if found and not key.startswith("gpus.dcgm.")} == {
        "listen": ["--listen", "THRASHOLD_LISTEN"],
        "interval_seconds": ["THRASHOLD_INTERVAL_SECONDS"],
        "web_config": ["--web-config", "THRASHOLD_WEB_CONFIG"],
        "recorder": ["--recorder"],
        "recorder.path": ["THRASHOLD_RECORDER_PATH"],
        "recorder.keep_hours": ["THRASHOLD_RECORDER_KEEP_HOURS"],
        "recorder.max_bytes": ["THRASHOLD_RECORDER_MAX_BYTES"],
        "gpus.nvml": ["--gpus", "THRASHOLD_GPUS_NVML"],
        "gpus.dcgm": ["--dcgm"],
        "gpus.processes": ["THRASHOLD_GPUS_PROCESSES"],
        "gpus.pcie_window": ["THRASHOLD_GPUS_PCIE_WINDOW"],
        "gateways": ["--gateway", "THRASHOLD_GATEWAYS"],
        "engines": ["--engine", "THRASHOLD_ENGINES"],
    }


def test_links_within_the_page_lead_somewhere() -> None:
    headings = re.findall(r"^#+ (.*)$", PAGE, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\(#([^)]*)\)", PAGE)) <= anchors
