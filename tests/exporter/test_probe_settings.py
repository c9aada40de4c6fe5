from __future__ import annotations

from pathlib import Path

import pytest

from exporter.settings import load, load_with_places
from exporter.sidecar_settings import SidecarSettings
from tests.exporter.settings_files import refusal, write

ENGINES = "engines:\n  - {url: 'http://a:1', probe: "


def test_there_is_no_probe_unless_it_is_set(tmp_path: Path) -> None:
    file = write(tmp_path, "engines:\n  - http://127.0.0.1:8000\n")
    assert load(SidecarSettings, file=file).engines[0].probe is None


def test_a_socket_need_not_be_there_and_a_relative_one_lies_beside_the_file(tmp_path: Path) -> None:
    loaded = load_with_places(SidecarSettings, file=write(tmp_path, ENGINES + "run/p.sock}\n"))
    loaded.check_files()
    assert loaded.settings.engines[0].probe == tmp_path / "run/p.sock"


@pytest.mark.parametrize("length", [108, 300])
def test_a_path_that_no_socket_can_have_is_one_clear_line(tmp_path: Path, length: int) -> None:
    long = "/" + "p" * (length - 1)
    file = write(tmp_path, ENGINES + long + "}\n")
    assert refusal(SidecarSettings, file=file) == (
        f"{file}:2: engines[0].probe: {long} is longer than the 107 bytes that a Unix socket's path may have"
    )
    assert load(SidecarSettings, file=write(tmp_path, ENGINES + long[:107] + "}\n")).engines[0].probe


def test_two_engines_can_not_share_a_socket(tmp_path: Path) -> None:
    file = write(tmp_path, ENGINES + "/r/p.sock}\n  - {url: 'http://b:1', probe: /r/p.sock}\n")
    assert refusal(SidecarSettings, file=file) == (
        f"{file}:3: engines[1].probe: /r/p.sock is already that of engines[0]; each engine needs its own"
    )


def test_an_engine_can_not_have_the_name_of_another_s_probe(tmp_path: Path) -> None:
    file = write(tmp_path, ENGINES + "/r/p.sock, name: w}\n  - {url: 'http://x:1', name: w/probe}\n")
    line = refusal(SidecarSettings, file=file)
    assert line.endswith("the name w/probe is that of the probe of engines[0]; give it another")
