"""The command line: what it prints, how it ends, and what it refuses."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import CliRunner, Result
from prometheus_client.parser import text_string_to_metric_families

from exporter.command import exporter, warn_if_open
from exporter.sidecar_settings import DEFAULT_LISTEN, SidecarSettings
from exporter.web_config import WebConfig
from tests.exporter.running import COMMAND, PAGE, ROOT, call, clean_environment, engine, free_port, running
from tests.exporter.web_files import HASH
from thrashold import main

pytestmark = pytest.mark.long

MAIN = (sys.executable, str(ROOT / "thrashold.py"))


def test_once_prints_one_cycle_and_ends_well() -> None:
    with engine(PAGE) as url:
        done = call("--engine", url, "--once")
    assert (done.returncode, done.stderr) == (0, "")
    families = {family.name: family for family in text_string_to_metric_families(done.stdout)}
    assert families["thrashold_source_up"].samples[0].value == 1
    assert "thrashold_kv_usage_ratio" in families


def test_once_fails_when_nobody_answers_and_names_each() -> None:
    ports = [free_port(), free_port()]
    urls = [argument for port in ports for argument in ("--engine", f"http://127.0.0.1:{port}")]
    done = call("--once", *urls)
    assert done.returncode == 1
    assert "thrashold_source_up" in done.stdout
    lines = done.stderr.splitlines()
    assert len(lines) == 2, "one for each"
    for port, line in zip(ports, lines, strict=True):
        assert line.startswith(f"127.0.0.1:{port}: ")
        assert "refused" in line


def once_into(stdout: int) -> tuple[int, str]:
    """Exit code and stderr of one cycle that prints to a file descriptor, which is closed then."""
    try:
        with engine(PAGE) as url:
            done = subprocess.run(
                [*COMMAND, "--engine", url, "--once"],
                env=clean_environment(),
                stdout=stdout,
                stderr=subprocess.PIPE,
                text=True,
                timeout=60,
                check=False,
            )
    finally:
        os.close(stdout)
    return done.returncode, done.stderr


def test_once_on_a_full_disk_is_one_clear_line() -> None:
    said = "Error: can't write to standard output: No space left on device\n"
    assert once_into(os.open("/dev/full", os.O_WRONLY)) == (1, said)


def test_once_ends_quietly_when_its_reader_has_enough() -> None:
    reading, writing = os.pipe()
    os.close(reading)  # as head -1 does, but before the first byte, so that its speed doesn't matter
    assert once_into(writing) == (0, "")


def test_once_ends_well_when_one_of_two_answers() -> None:
    with engine(PAGE) as url:
        done = call("--engine", url, "--engine", f"http://127.0.0.1:{free_port()}", "--once")
    assert done.returncode == 0
    assert "refused" in done.stderr
    assert done.stderr.count("\n") == 1


def test_settings_come_from_file_and_environment(tmp_path: Path) -> None:
    with engine(PAGE) as url:
        file = tmp_path / "thrashold.yaml"
        file.write_text(f"engines:\n  - {{url: '{url}', name: prod-a}}\n")
        by_flag = call("--config", str(file), "--once")
        by_variable = call("--once", environ={"THRASHOLD_CONFIG": str(file)})
        without_file = call("--once", environ={"THRASHOLD_ENGINES": url})
    assert 'thrashold_source_up{source="prod-a"} 1.0' in by_flag.stdout
    assert 'thrashold_source_up{source="prod-a"} 1.0' in by_variable.stdout
    assert f'thrashold_source_up{{source="{url.removeprefix("http://")}"}} 1.0' in without_file.stdout


def test_a_password_file_reaches_the_engine_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hunter2\n")
    file = tmp_path / "thrashold.yaml"
    file.write_text(f"engines:\n  - {{url: 'http://127.0.0.1:{free_port()}', bearer_token_file: token}}\n")
    done = call("--config", str(file), "--once")
    assert "hunter2" not in done.stdout + done.stderr


BAD_INPUT = {
    "no engine": ((), None, "no engine to read"),
    "missing config": (("--config", "none.yaml"), None, "none.yaml: cannot be read: No such file"),
    "directory as config": (("--config", "."), None, ": cannot be read: Is a directory"),
    "unknown key": (("--config", "c.yaml"), "engines: []\nlisten_on: x\n", "c.yaml:2: listen_on: "),
    "wrong type": (("--config", "c.yaml"), "interval_seconds: often\n", "c.yaml:1: interval_seconds: expected a"),
    "doubled key": (("--config", "c.yaml"), "listen: :1\nlisten: :2\n", "c.yaml:2: listen: given twice"),
    "invalid YAML": (("--config", "c.yaml"), "engines: [\n", "c.yaml:2: not valid YAML"),
    "doubled names": (("--engine", "http://a", "--engine", "http://a"), None, "engines[1]: the name a:80 is already"),
    "not a URL": (("--engine", "worker-7"), None, "'worker-7' is not a URL; did you mean http://worker-7?"),
    "port out of range": (("--engine", "http://a", "--listen", "127.0.0.1:70000"), None, "port '70000' is not"),
    "engine port out of range": (("--engine", "http://a:70000"), None, "Port out of range"),
    "empty config": (("--config", "c.yaml"), "# nothing yet\n", "c.yaml is empty; list them there, give --engine URL"),
    "config without engines": (("--config", "c.yaml"), "listen: :1\n", "c.yaml lists no engines; list them there"),
    "missing web config": (
        ("--engine", "http://a", "--web-config", "none.yml"), None,
        "Error: --web-config: web_config: {folder}/none.yml: cannot be read: No such file",
    ),
    "missing model config": (
        ("--config", "c.yaml"), "engines:\n- url: http://a\n  model_config: none.json\n",
        "c.yaml:3: engines[0].model_config: {folder}/none.json: cannot be read: No such file or directory",
    ),
    "model config that is none": (
        ("--config", "c.yaml"), "engines:\n- url: http://a\n  model_config: c.yaml\n",
        "c.yaml:3: engines[0].model_config: {folder}/c.yaml: not a model's config.json: ",
    ),
    "missing certificate": (
        ("--config", "c.yaml"), "engines:\n- url: https://a\n  tls:\n    cert_file: /nope/a\n    key_file: /nope/b\n",
        "c.yaml:4: engines[0].tls.cert_file: /nope/a: cannot be read: No such file or directory",
    ),
    "missing token": (
        ("--config", "c.yaml"), "engines: [http://a, {url: http://b, bearer_token_file: /nope/token}]\n",
        "c.yaml:1: engines[1].bearer_token_file: /nope/token: cannot be read: No such file or directory",
    ),
}  # fmt: skip


def refused(*arguments: str) -> Result:
    """What the whole command says in this process: a new one takes most of a second, and these are many."""
    unset = dict.fromkeys((name for name in os.environ if name.startswith("THRASHOLD_")), None)
    return CliRunner(env=unset).invoke(main, ["exporter", *arguments])


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_is_one_clear_line_and_exit_code_2(tmp_path: Path, case: str) -> None:
    arguments, config, said = BAD_INPUT[case]
    if config is not None:
        (tmp_path / "c.yaml").write_text(config)
    places = {"none.yaml", "none.yml", "c.yaml", "."}
    done = refused(*(str(tmp_path / each) if each in places else each for each in arguments))
    assert done.exit_code == 2
    assert said.replace("{folder}", str(tmp_path)) in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("Error: ")


def test_a_misspelt_variable_is_warned_of_and_those_of_kubernetes_and_of_triage_are_not() -> None:
    kubernetes = {"THRASHOLD_PORT": "tcp://10.0.0.1:9807", "THRASHOLD_SERVICE_HOST": "10.0.0.1"}
    triage = {"THRASHOLD_SIDECAR_USER": "prometheus", "THRASHOLD_SIDECAR_PASSWORD_FILE": "/etc/password"}
    done = call("--once", environ={"THRASHOLD_ENGINE": "http://127.0.0.1:1", **kubernetes, **triage})
    assert done.returncode == 2
    warning, error = done.stderr.splitlines()
    assert warning.endswith("THRASHOLD_ENGINE is no setting; did you mean THRASHOLD_ENGINES?")
    assert error.startswith("Error: no engine to read: ")


def test_the_help_tells_the_default_address_that_the_settings_hold() -> None:
    help_text = call("--help").stdout
    assert f"[default: {DEFAULT_LISTEN}]" in " ".join(help_text.split())
    assert SidecarSettings().listen == DEFAULT_LISTEN


@pytest.mark.parametrize("arguments", [("--listne", "x"), ("--listen",), ("surplus",)])
def test_flags_that_do_not_exist_are_a_usage_error(arguments: tuple[str, ...]) -> None:
    done = refused(*arguments)
    assert done.exit_code == 2
    assert "Traceback" not in done.stderr


def test_a_port_in_use_is_one_clear_line_and_exit_code_1() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = call("--engine", "http://127.0.0.1:1", "--listen", address)
    assert done.returncode == 1
    remedy = "give another --listen HOST:PORT, or end what listens there"
    assert done.stderr == f"Error: can't listen on {address}: Address already in use; {remedy}\n"


def test_an_address_of_another_machine_is_one_clear_line() -> None:
    done = call("--engine", "http://127.0.0.1:1", "--listen", "192.0.2.1:9807")
    assert done.returncode == 1
    remedy = "give --listen an address of this machine, or none (as in :9807) for all of them"
    assert (
        done.stderr == f"Error: can't listen on 192.0.2.1:9807: Cannot assign requested address; {remedy}\n"
    )


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            PermissionError(errno.EACCES, "Permission denied"),
            "Permission denied; ports below 1024 need rights; give --listen a port from 1024 on",
        ),
        (
            socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
            "Name or service not known; check how the host of --listen is spelled",
        ),
        (OSError(errno.EMFILE, "x"), "Too many open files"),
    ],
    ids=["not allowed", "no such host", "anything else"],
)
def test_whatever_forbids_listening_comes_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, error: OSError, said: str
) -> None:
    def refuse(_host: str, _port: int) -> NoReturn:
        raise error

    monkeypatch.setattr("exporter.command.listening_socket", refuse)
    done = CliRunner().invoke(exporter, ["--engine", "http://127.0.0.1:1", "--listen", "host:80"])
    assert done.exit_code == 1
    assert done.output == f"Error: can't listen on host:80: {said}\n"


class Listener(socket.socket):
    """A socket that says it listens on ``address``; it listens on nothing."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address

    def getsockname(self) -> tuple[str, int]:
        return self.address, 9807


@pytest.mark.parametrize(
    ("address", "is_open"),
    [
        ("127.0.0.1", False),
        ("127.8.8.8", False),
        ("::1", False),
        ("0.0.0.0", True),  # noqa: S104 - only named here
        ("::", True),
        ("192.0.2.1", True),
        ("fe80::1%eth0", True),
    ],
)
def test_an_open_address_is_warned_of(
    caplog: pytest.LogCaptureFixture, address: str, *, is_open: bool
) -> None:
    with Listener(address) as listener:
        warn_if_open(listener, WebConfig())
        assert ("OPEN TO THE NETWORK" in caplog.text) is is_open
        caplog.clear()
        warn_if_open(listener, WebConfig(basic_auth_users={"user": HASH}))
        assert not caplog.text, "whoever asks for a password may be open"


def test_control_c_ends_it_as_well() -> None:
    with running("--engine", f"http://127.0.0.1:{free_port()}") as sidecar:
        sidecar.process.send_signal(signal.SIGINT)
        assert sidecar.process.wait(30) == 0
        assert "Traceback" not in sidecar.log()


def test_the_overview_loads_click_alone() -> None:
    script = (
        "import sys, thrashold\n"
        "from click.testing import CliRunner\n"
        "shown = CliRunner().invoke(thrashold.main, ['--help'])\n"
        "assert shown.exit_code == 0 and 'exporter' in shown.output, shown.output\n"
        "heavy = {'httpx', 'starlette', 'uvicorn', 'prometheus_client', 'yaml', 'msgspec', 'asyncio', 'ssl'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"


def test_version_and_an_unknown_part() -> None:
    version = call("--version", command=MAIN)
    assert version.returncode == 0
    assert version.stdout.startswith("thrashold ")
    unknown = call("exprter", command=MAIN)
    assert unknown.returncode == 2
    assert "No such command 'exprter'" in unknown.stderr


def test_the_sidecar_loads_nothing_heavy() -> None:
    script = (
        "import sys, exporter.command\n"
        "heavy = {'numpy', 'pandas', 'fastapi', 'httptools', 'uvloop', 'bcrypt'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"


def test_sources_that_nobody_asked_for_are_not_loaded() -> None:
    script = (
        "import sys, exporter.command\n"
        "from exporter.settings import load\n"
        "from exporter.sidecar_settings import SidecarSettings\n"
        "from exporter.sources.configured import configured_sources\n"
        "settings = load(SidecarSettings, flags={'engines': ('http://127.0.0.1:1',), 'gpus.nvml': 'never'})\n"
        "print([source.name for source in configured_sources(settings, float)])\n"
        "others = ('nvml', 'dcgm', 'gateway', 'kv_events', 'probe')\n"
        "print([name for name in others if f'exporter.sources.{name}' in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "['127.0.0.1:1']\n[]\n"
