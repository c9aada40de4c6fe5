from __future__ import annotations

from pathlib import Path

import pytest

from exporter.kv_events_settings import KvEventsSettings
from exporter.settings import load
from exporter.sidecar_settings import SidecarSettings
from tests.exporter.settings_files import refusal, write

ENGINES = "engines:\n  - url: http://127.0.0.1:8000\n    kv_events: "


def kv_events(folder: Path, text: str) -> KvEventsSettings | None:
    return load(SidecarSettings, file=write(folder, ENGINES + text)).engines[0].kv_events


def test_events_are_off_unless_they_are_set(tmp_path: Path) -> None:
    file = write(tmp_path, "engines:\n  - http://127.0.0.1:8000\n")
    assert load(SidecarSettings, file=file).engines[0].kv_events is None


def test_an_endpoint_alone_is_enough(tmp_path: Path) -> None:
    assert kv_events(tmp_path, "tcp://worker-7:5557\n") == KvEventsSettings("tcp://worker-7:5557")


def test_all_of_it(tmp_path: Path) -> None:
    text = (
        '{endpoint: "tcp://[::1]:5557", replay_endpoint: "tcp://[::1]:5567", topic: kv@worker-7, ranks: 8}\n'
    )
    settings = kv_events(tmp_path, text)
    assert settings == KvEventsSettings("tcp://[::1]:5557", "tcp://[::1]:5567", "kv@worker-7", 8)
    assert settings.of_rank(0) == ("tcp://[::1]:5557", "tcp://[::1]:5567")
    assert settings.of_rank(7) == ("tcp://[::1]:5564", "tcp://[::1]:5574")
    assert KvEventsSettings("tcp://w:1").of_rank(2) == ("tcp://w:3", None)


def test_ports_of_ranks_may_follow_one_another() -> None:
    settings = KvEventsSettings("tcp://w:5557", "tcp://w:5559", ranks=2)
    assert [settings.of_rank(place)[1] for place in (0, 1)] == ["tcp://w:5559", "tcp://w:5560"]
    assert KvEventsSettings("tcp://w:5557", "tcp://x:5557", ranks=2).of_rank(1)[1] == "tcp://x:5558"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("http://worker-7:5557", "'http://worker-7:5557' is not tcp://HOST:PORT"),
        ("worker-7:5557", "'worker-7:5557' is not tcp://HOST:PORT"),
        ("tcp://worker-7", "'tcp://worker-7' is not tcp://HOST:PORT"),
        ("tcp://worker 7:5557", "'tcp://worker 7:5557' is not tcp://HOST:PORT"),
        ("tcp://user@worker-7:5557", "'tcp://user@worker-7:5557' is not tcp://HOST:PORT"),
        ("tcp://::1:5557", "'tcp://::1:5557' is not tcp://HOST:PORT"),
        ("ipc:///tmp/kv", "'ipc:///tmp/kv' is not tcp://HOST:PORT"),
        (
            "tcp://*:5557",
            "'tcp://*:5557' is what the engine binds; write the host to connect to in its place",
        ),
        ("tcp://w:0", "ports go from 1 to 65535, this is 0"),
        ("tcp://w:65536", "ports go from 1 to 65535, this is 65536"),
        (
            "{endpoint: 'tcp://w:65530', ranks: 8}",
            "ports go from 1 to 65535, this is 65530 and rank 7 would have 65537",
        ),
    ],
)
def test_an_endpoint_that_can_not_be_is_one_clear_line(tmp_path: Path, text: str, problem: str) -> None:
    quoted = text if text.startswith("{") else f'"{text}"'
    file = write(tmp_path, ENGINES + quoted + "\n")
    line = refusal(SidecarSettings, file=file)
    assert line == f"{file}:3: engines[0].kv_events.endpoint: {problem}"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "{endpoint: 'tcp://w:5557', replay_endpoint: 'tcp://w:5558', ranks: 2}",
            "replay_endpoint: its ports and those of endpoint overlap over 2 ranks, each of which takes the next port",
        ),
        (
            "{endpoint: 'tcp://w:1', replay_endpoint: nowhere}",
            "replay_endpoint: 'nowhere' is not tcp://HOST:PORT",
        ),
        ("{endpoint: 'tcp://w:1', ranks: 0}", "ranks: expected a whole number >= 1"),
        (
            "{endpoint: 'tcp://w:1', hwm: 5}",
            "hwm: unknown key; known here: endpoint, ranks, replay_endpoint, topic",
        ),
    ],
)
def test_what_does_not_go_together_is_one_clear_line(tmp_path: Path, text: str, line: str) -> None:
    file = write(tmp_path, ENGINES + text + "\n")
    assert refusal(SidecarSettings, file=file) == f"{file}:3: engines[0].kv_events.{line}"


def test_an_engine_can_not_have_the_name_of_another_s_events(tmp_path: Path) -> None:
    text = ENGINES + "tcp://w:5557\n    name: w\n  - {url: 'http://x:1', name: w/kv_events}\n"
    line = refusal(SidecarSettings, file=write(tmp_path, text))
    assert line.endswith("the name w/kv_events is that of the KV events of engines[0]; give it another")
