"""``docker-compose.yml``: what Debian's docker-compose makes of it, and what is promised of each container."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from analysis.desk.settings import DeskSettings
from deploy.compose import Containers
from deploy.render_command import compose_files
from exporter.settings import load
from tests.exporter.running import ROOT, call
from tests.support.prometheus import tool
from thrashold import PARTS

FILE = ROOT / "docker-compose.yml"
THRASHOLD = (sys.executable, "-m", "thrashold")
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(FILE.read_text())["services"]
OURS = {name: each for name, each in SERVICES.items() if each["image"] == "thrashold:local"}
DESK = {
    "THRASHOLD_ALERTS_DESK": "http://desk:9808",
    "THRASHOLD_ALERTS_DESK_TOKEN_FILE": "/run/secrets/webhook-token",
}
EVERY = pytest.mark.parametrize("name", SERVICES)


def _composed(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: text for name, text in os.environ.items() if name != "GRAFANA_PASSWORD"}
    return subprocess.run(
        [tool("docker-compose", "docker-compose"), "-f", str(FILE), *arguments],
        cwd=ROOT,
        env=kept | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def _rendered(*arguments: str) -> subprocess.CompletedProcess[str]:
    return call("compose", *arguments, command=(*THRASHOLD, "render"))


def test_what_is_committed_is_what_is_rendered() -> None:
    for name, text in compose_files(Containers()).items():
        assert (ROOT / name).read_text() == text, f"{name}: run `thrashold render compose`"
    assert {path.name for path in (ROOT / "deploy/compose").iterdir()} == {
        Path(name).name for name in compose_files(Containers()) if "/" in name
    }


def test_a_file_that_was_changed_by_hand_is_named(tmp_path: Path) -> None:
    assert _rendered("--out", str(tmp_path)).returncode == 0
    assert _rendered("--out", str(tmp_path), "--check").returncode == 0
    for name in ("docker-compose.yml", "deploy/compose/desk.yaml"):
        (tmp_path / name).write_text((tmp_path / name).read_text() + "# by hand\n")
    told = _rendered("--out", str(tmp_path), "--check")
    assert told.returncode == 1
    assert "docker-compose.yml" in told.stderr
    assert "desk.yaml" in told.stderr
    assert "prometheus.yml" not in told.stderr


def test_in_another_place_all_that_is_mounted_comes_from_our_commands(tmp_path: Path) -> None:
    """With an image of one's own nothing of the checkout is needed."""
    options = ("--image", "ghcr.example/x:1", "--scenario", "retry-storm", "--cluster", "lab")
    made = _rendered("--out", str(tmp_path), *options)
    assert made.returncode == 0, made.stderr
    for part, folder in (("alerts", "prometheus"), ("dashboards", "grafana")):
        done = call("render", "--out", str(tmp_path / "deploy" / folder), command=(*THRASHOLD, part))
        assert done.returncode == 0, done.stderr
    services = yaml.safe_load((tmp_path / "docker-compose.yml").read_text())["services"]
    mounted = [mount.partition(":")[0] for each in services.values() for mount in each.get("volumes", ())]
    assert all((tmp_path / place).exists() for place in mounted if place.startswith("."))
    ours = [each for each in services.values() if each["image"] == "ghcr.example/x:1"]
    assert len(ours) == len(OURS)
    assert not any("build" in each for each in services.values())
    assert "retry-storm" in services["engine"]["command"]
    prometheus = yaml.safe_load((tmp_path / "deploy/compose/prometheus.yml").read_text())
    assert "lab" in str(prometheus["scrape_configs"])


def test_compose_takes_it_and_never_without_a_password() -> None:
    done = _composed("config", GRAFANA_PASSWORD="of this test")  # noqa: S106
    assert done.returncode == 0, done.stderr
    told = yaml.safe_load(done.stdout)["services"]
    assert told["grafana"]["environment"]["GF_SECURITY_ADMIN_PASSWORD"] == "of this test"  # noqa: S105
    refused = _composed("config")
    assert refused.returncode != 0
    assert "set GRAFANA_PASSWORD" in refused.stderr


def test_a_real_engine_comes_only_when_it_is_asked_for() -> None:
    def started(*profile: str) -> set[str]:
        return set(_composed(*profile, "config", "--services", GRAFANA_PASSWORD="x").stdout.split())  # noqa: S106

    assert {"vllm", "vllm-sidecar"} == {name for name, each in SERVICES.items() if each.get("profiles")}
    assert {"engine", "sidecar", "desk", "prometheus", "alertmanager", "grafana"} <= started()


@EVERY
def test_a_container_may_do_no_more_than_it_has_to(name: str) -> None:
    service = SERVICES[name]
    image, _, tag = service["image"].rpartition(":")
    assert image
    assert tag != "latest"
    if name != "vllm":  # it compiles kernels and keeps models where its image has them
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["restart"] == "unless-stopped"


@EVERY
def test_it_is_reached_from_this_machine_only(name: str) -> None:
    assert all(str(port).startswith("127.0.0.1:") for port in SERVICES[name].get("ports", ()))


@EVERY
def test_what_is_mounted_is_there(name: str) -> None:
    volumes = set(yaml.safe_load(FILE.read_text())["volumes"])
    for mount in SERVICES[name].get("volumes", ()):
        place = mount.partition(":")[0]
        assert (ROOT / place).exists() if place.startswith(".") else place in volumes


@pytest.mark.parametrize("name", OURS)
def test_our_commands_are_commands(name: str) -> None:
    command = OURS[name]["command"]
    assert command[0] in PARTS
    flags = {part for part in command if part.startswith("--")}
    words = command[: 2 if command[0] == "drill" else 1]
    done = call(*words[1:], "--help", command=(*THRASHOLD, words[0]))
    assert flags <= set(re.findall(r"--[a-z-]+", done.stdout)), done.stdout


def test_no_container_of_ours_is_root() -> None:
    assert re.search(r"^USER (?!root|0)\d+:\d+$", (ROOT / "deploy/Dockerfile").read_text(), re.MULTILINE)
    assert all(
        SERVICES[name]["user"].split(":")[0] not in {"", "0"}
        for name in ("prometheus", "alertmanager", "grafana")
    )


def test_people_are_told_through_the_desk_s_container(tmp_path: Path) -> None:
    done = call(
        "render",
        "--out",
        str(tmp_path),
        environ=DESK,
        command=(*THRASHOLD, "alerts"),
    )
    assert done.returncode == 0, done.stderr
    made = (tmp_path / "alertmanager.example.yml").read_text()
    assert (ROOT / "deploy/compose/alertmanager.yml").read_text() == made, (
        f"{' '.join(f'{name}={text}' for name, text in DESK.items())} thrashold alerts render --out DIR makes it"
    )


def test_the_desk_takes_its_settings_and_the_token_that_alertmanager_sends() -> None:
    settings = load(DeskSettings, file=ROOT / "deploy/compose/desk.yaml", environ={})
    (secret,) = SERVICES["desk"]["secrets"]
    assert SERVICES["alertmanager"]["secrets"] == [secret]
    assert (
        str(settings.webhook_token_file)
        == f"/run/secrets/{secret}"
        == DESK["THRASHOLD_ALERTS_DESK_TOKEN_FILE"]
    )
    assert settings.listen == "0.0.0.0:9808"
    assert "desk" in settings.host_names
    assert settings.open_pages  # of people on this machine: its port is published on loopback alone
    assert all(each.startswith("127.0.0.1:") for each in SERVICES["desk"]["ports"])
    told = yaml.safe_load(_composed("config", GRAFANA_PASSWORD="x", WEBHOOK_TOKEN_FILE="/a/token").stdout)  # noqa: S106
    assert told["secrets"][secret]["file"] == "/a/token"


@pytest.mark.parametrize(
    ("program", "package", "command", "file"),
    [
        ("promtool", "prometheus", ("check", "config", "--syntax-only"), "prometheus.yml"),
        ("amtool", "prometheus-alertmanager", ("check-config",), "alertmanager.yml"),
    ],
)
def test_what_the_servers_read_is_what_they_take(
    program: str, package: str, command: tuple[str, ...], file: str
) -> None:
    done = subprocess.run(
        [tool(program, package), *command, str(ROOT / "deploy/compose" / file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
