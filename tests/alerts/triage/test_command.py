"""``thrashold triage`` as its user meets it: on pages that are served, at a terminal of 80 columns."""

from __future__ import annotations

import contextlib
import json
import shlex
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from exporter.render import PLAIN, Rendering
from tests.evaluation.triage_stage import Pages, Stage, serving
from tests.exporter.running import COMMAND, call, free_port, hanging_engine, running
from tests.exporter.web_files import HASH
from tests.support.captures import recording
from tests.support.gateways import envoy_page, written
from tests.support.pages import advanced
from tests.support.replay import ENGINE, replayed
from thrashold import main

TRIAGE = (*COMMAND[:2], "triage")
NAME = "vllm-0.32.0"
IDLE, OVERLOAD = 3, 90
"""Scrapes of the recording."""


def pages(scrape: int) -> Iterator[Pages]:
    """An engine as it was recorded, moved on by the second, and the sidecar's page beside it."""
    body = recording(NAME).files[f"{scrape:03d}.prom"]
    told = next(cycle for cycle in replayed(NAME) if cycle.seconds and _number(cycle.at) == scrape)
    sidecar = Rendering(told.snapshot).body(PLAIN)
    for second in range(8):
        yield Pages({ENGINE: advanced(body, float(second))}, sidecar)


def _number(at: float) -> int:
    return next(entry["i"] for entry, _ in recording(NAME).scrapes() if entry["t"] == at)


@dataclass(frozen=True)
class Asked:
    code: int
    out: str
    err: str


def asked(*arguments: str) -> Asked:
    """In this process: the command's own exit code, output and errors."""
    result: Result = CliRunner(env={"THRASHOLD_CONFIG": None}).invoke(main, ["triage", *arguments])
    return Asked(result.exit_code, result.stdout, result.stderr)


@contextlib.contextmanager
def engine(body: bytes) -> Iterator[str]:
    """A page that stands still; gives its URL."""
    with serving() as stage:
        stage.show([Pages({"engine": body}, b"")])
        yield stage.engine_url("engine")


@contextlib.contextmanager
def recorded(scrape: int) -> Iterator[tuple[Stage, str]]:
    """The stage and the engine's URL."""
    with serving() as stage:
        stage.show([*pages(scrape)])
        yield stage, stage.engine_url(ENGINE)


def test_an_idle_engine_is_healthy() -> None:
    with recorded(IDLE) as (_, url):
        done = call(url, "--sidecar", "none", command=TRIAGE)
    assert (done.returncode, done.stderr) == (0, "")
    assert "VERDICT  healthy\n" in done.stdout
    assert "\033" not in done.stdout


def test_an_overloaded_one_ends_with_what_to_set_its_gateway_to_and_fits_a_terminal() -> None:
    with recorded(OVERLOAD) as (stage, url):
        done = asked(url, "--sidecar", stage.sidecar_url(), "--name", ENGINE)
    assert (done.code, done.err) == (1, "")
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line[:2] for line in lines if line[:1].isdigit() and line[1:2] == " "] == ["1 ", "2 ", "3 ", "4 "]
    assert "VERDICT  overload (certain), by KvCachePressure" in done.out
    assert "beside the sidecar at" in done.out
    assert 'curl -sX POST "$ENVOY/runtime_modify?$KEY=' in done.out
    assert lines[-1].strip() == "docs/runbooks/KvCachePressure.md"
    assert Path(lines[-1].strip()).is_file()


def told(*arguments: str) -> tuple[dict[str, Any], int]:
    done = asked(*arguments, "--json")
    said: dict[str, Any] = json.loads(done.out)
    return said, done.code


def test_json_says_the_same_with_its_sources() -> None:
    with recorded(OVERLOAD) as (stage, url):
        beside, code = told(url, "--sidecar", stage.sidecar_url(), "--name", ENGINE)
        alone, _ = told(url, "--sidecar", "none")
    assert (beside["verdict"], beside["exit_code"], code) == ("overload", 1, 1)
    assert beside["sidecar"]["used"]
    assert [step["name"] for step in beside["steps"]] == ["memory", "backpressure", "prompts", "zero swap"]
    (usage,) = (each for each in beside["finding"]["evidence"] if each["signal"] == "kv_usage_ratio")
    assert usage["origin"] == "sidecar"
    assert usage["value"] >= usage["bound"] == 0.9
    assert alone["sidecar"] is None
    assert {each["origin"] for each in alone["finding"]["evidence"]} == {"this look"}
    assert {each["what"] for each in alone["unknown"]} >= {"whether it thrashes"}


def test_a_sidecar_that_reads_another_engine_is_not_taken_for_this_ones() -> None:
    with recorded(OVERLOAD) as (stage, url), engine(b"vllm:num_requests_running 1\n") as other:
        same, _ = told(url, "--sidecar", stage.sidecar_url())
        another, _ = told(other, "--sidecar", stage.sidecar_url())
    # the one engine that it reads has the same model and the same pool
    assert same["sidecar"]["used"]
    assert not another["sidecar"]["used"]
    assert f"it reads {ENGINE}: say with --name" in another["sidecar"]["problem"]


def test_a_sidecar_that_answers_and_has_other_names_is_no_fault_of_the_fleet() -> None:
    with recorded(OVERLOAD) as (stage, url), engine(b"vllm:num_requests_running 1\n") as other:
        misnamed, _ = told(url, "--sidecar", stage.sidecar_url(), "--name", "worker-7")
        strange, _ = told(other, "--sidecar", stage.sidecar_url())
        words = asked(other, "--sidecar", stage.sidecar_url()).out
        gone = asked(f"http://127.0.0.1:{free_port()}", "--sidecar", stage.sidecar_url())
    assert not misnamed["sidecar"]["used"]
    assert misnamed["verdict"] == "overload"
    assert strange["verdict"] == "metric-rename"  # it tells no KV usage
    assert "SidecarDown" not in words
    assert f"it reads {ENGINE}: say with --name" in " ".join(words.split())
    # which may know why the engine is silent
    assert gone.code == 2
    assert f"may know more: it reads {ENGINE}: say with --name" in gone.err


def test_an_engine_that_went_this_moment_is_down_though_its_sidecar_has_yet_to_see_it() -> None:
    with contextlib.ExitStack() as alive:
        url = alive.enter_context(engine(recording(NAME).files[f"{IDLE:03d}.prom"]))
        with running("--engine", url) as sidecar:
            sidecar.wait_until_ready()
            alive.close()
            said, code = told(url, "--sidecar", sidecar.url)
    assert (said["verdict"], code) == ("engine-down", 1), said


class Locked(BaseHTTPRequestHandler):
    """Asks everybody for a password, as a sidecar's web config does."""

    def do_GET(self) -> None:
        self.send_response(HTTPStatus.UNAUTHORIZED)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""


@pytest.fixture
def locked() -> Iterator[int]:
    """The port of a sidecar that asks for a password."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Locked) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_a_sidecar_behind_a_password_is_no_fault_of_the_fleet(tmp_path: Path, locked: int) -> None:
    (tmp_path / "web.yml").write_text(f'basic_auth_users: {{prometheus: "{HASH}"}}')
    file = tmp_path / "sidecar.yaml"
    with recorded(IDLE) as (_, url):
        file.write_text(json.dumps({"listen": f":{locked}", "web_config": "web.yml", "engines": [url]}))
        named = asked(url, "--sidecar", f"http://127.0.0.1:{locked}")
        by_settings = asked(url, "--config", str(file))
    for done in (named, by_settings):
        assert "VERDICT  healthy" in done.out
        said = " ".join(done.out.split())
        assert (
            f"without the sidecar at http://127.0.0.1:{locked}/metrics: it asks for a password, and triage has none"
            in said
        )


def test_a_sidecar_behind_a_password_is_read_with_the_password_of_a_file(tmp_path: Path) -> None:
    web, password, wrong = tmp_path / "web.yml", tmp_path / "password", tmp_path / "wrong"
    web.write_text(f'basic_auth_users: {{prometheus: "{HASH}"}}')
    password.write_text("right\n")
    wrong.write_text("secret-and-wrong\n")
    file = tmp_path / "sidecar.yaml"
    with (
        recorded(IDLE) as (_, url),
        running("--engine", f"{ENGINE}={url}", "--web-config", str(web)) as sidecar,
    ):
        listen = sidecar.url.removeprefix("http://")
        file.write_text(json.dumps({"listen": listen, "web_config": "web.yml", "engines": [url]}))
        flags = (url, "--name", ENGINE, "--sidecar", sidecar.url)
        login = ("--sidecar-user", "prometheus", "--sidecar-password-file")
        by_flags, _ = told(*flags, *login, str(password))
        refused = asked(*flags, *login, str(wrong))
        # as README's pod has it: two variables, and nothing on the command line
        variables = {
            "THRASHOLD_SIDECAR_USER": "prometheus",
            "THRASHOLD_SIDECAR_PASSWORD_FILE": str(password),
        }
        by_environment = call(*flags, "--json", environ=variables, command=TRIAGE)
        # whom the web config lets in is known
        by_settings, _ = told(
            url, "--name", ENGINE, "--config", str(file), "--sidecar-password-file", str(password)
        )
    for said in (by_flags, json.loads(by_environment.stdout), by_settings):
        assert said["sidecar"]["used"], said["sidecar"]
    assert "VERDICT  healthy" in refused.out
    assert "it refuses the user prometheus or this password" in " ".join(refused.out.split())
    assert "secret-and-wrong" not in refused.out + refused.err


def test_a_password_that_can_not_be_sent_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "password").write_text("right")
    user = ("--sidecar-user", "prometheus")
    for arguments, words in (
        (
            (*user, "--sidecar-password-file", str(tmp_path / "nowhere")),
            "nowhere can't be read: No such file",
        ),
        ((*user, "--sidecar-password-file", str(tmp_path / "empty")), "empty is empty"),
        (("--sidecar-password-file", str(tmp_path / "password")), "say whose it is with --sidecar-user NAME"),
        (user, "--sidecar-user: has no use without --sidecar-password-file"),
    ):
        done = asked("http://127.0.0.1:1", *arguments)
        assert (done.code, done.out) == (2, "")
        assert words in " ".join(done.err.split())


def test_a_sidecar_that_is_asked_for_and_silent_is_a_finding() -> None:
    with recorded(IDLE) as (_, url):
        gone = f"http://127.0.0.1:{free_port()}"
        said, code = told(url, "--sidecar", gone)
    assert (said["verdict"], code) == ("not-watched", 1)
    assert "refused" in said["sidecar"]["problem"]


def test_settings_of_the_sidecar_tell_name_and_place(tmp_path: Path) -> None:
    with recorded(OVERLOAD) as (stage, url):
        file = tmp_path / "sidecar.yaml"
        port = stage.url.rpartition(":")[2]
        file.write_text(
            json.dumps({"listen": f"127.0.0.1:{port}", "engines": [{"name": ENGINE, "url": url}]})
        )
        said, _ = told(ENGINE, "--config", str(file))
    assert said["engine"]["name"] == ENGINE
    # nothing is at /metrics of this port: nobody asked for the sidecar, so that it isn't missed
    assert (said["verdict"], said["sidecar"]["used"]) == ("overload", False)


def test_gateways_tell_whose_prompts_are_long_and_whom_they_turn_away() -> None:
    bodies = {"engine": recording(NAME).files[f"{IDLE:03d}.prom"], "envoy": envoy_page("whole/03-err")}
    with serving() as stage:
        stage.show([Pages({**bodies, "litellm": written("litellm-1.110")}, b"")])
        url = stage.engine_url("engine")
        (step_2, step_3), _ = _of_gateway(url, stage.engine_url("litellm"))
        (envoy_2, envoy_3), said = _of_gateway(url, stage.engine_url("envoy"))
    assert any("keys of prompts of 64k tokens and more at" in line for line in step_3)
    assert any("in flight" in line for line in step_2)
    assert any("in flight" in line for line in envoy_2)
    assert any("(envoy) tells no keys: its access log does" in line for line in envoy_3)
    assert [each["kind"] for each in said["gateways"]] == ["envoy"]


def _of_gateway(url: str, gateway: str) -> tuple[tuple[list[str], list[str]], dict[str, Any]]:
    """What the second and the third step say of it."""
    said, _ = told(url, "--sidecar", "none", "--gateway", gateway)
    return (said["steps"][1]["lines"], said["steps"][2]["lines"]), said


def test_what_the_gateway_tells_of_itself_stands_in_the_command_that_clamps_it() -> None:
    envoy = envoy_page("whole/03-err")
    with serving() as stage:
        stage.show([replace(each, engines={**each.engines, "envoy": envoy}) for each in pages(OVERLOAD)])
        url, base = stage.engine_url(ENGINE), stage.engine_url("envoy").removesuffix("/metrics")
        by_admin, _ = told(url, "--sidecar", "none", "--gateway", f"{base}/stats/prometheus")
        elsewhere, _ = told(url, "--sidecar", "none", "--gateway", f"{base}/metrics")
        unread, _ = told(url, "--sidecar", "none")
    at, key, order = by_admin["next"]["commands"][-3:]
    assert (at, key) == (f"ENVOY={base}", "KEY=circuit_breakers.engine.default.max_requests")
    assert order.startswith('curl -sX POST "$ENVOY/runtime_modify?$KEY=')
    assert not any("ENVOY is" in note or "CLUSTER" in note for note in by_admin["next"]["notes"])
    assert elsewhere["next"]["commands"][-2:] == [key, order]
    assert any("ENVOY is the URL of its admin port; " in note for note in elsewhere["next"]["notes"])
    assert unread["next"]["commands"][-2] == "KEY=circuit_breakers.CLUSTER.default.max_requests"
    assert any("ENVOY is the URL of its admin port, CLUSTER" in note for note in unread["next"]["notes"])


def test_a_gateway_that_is_none_is_told_and_the_rest_goes_on() -> None:
    with recorded(IDLE) as (stage, url):
        said, code = told(url, "--sidecar", "none", "--gateway", stage.sidecar_url())
    assert (said["verdict"], code) == ("healthy", 0)
    assert any("thrashold sidecar" in problem for problem in said["problems"])


STANDING = b"vllm:num_requests_running 1\nvllm:kv_cache_usage_perc 0.1\nvllm:generation_tokens_total 5\n"


def test_the_longer_look_that_it_proposes_is_at_the_same_as_this_one(tmp_path: Path) -> None:
    bodies = {"engine": STANDING, "envoy": envoy_page("whole/03-err")}
    with serving() as stage:
        stage.show([Pages(bodies, b"")])
        url, gateway = f"{stage.engine_url('engine')}?a=1&b=2", stage.engine_url("envoy")
        file = tmp_path / "the sidecar's.yaml"
        file.write_text(json.dumps({"engines": [{"name": "worker-7", "url": url}]}))
        first, _ = told("worker-7", "--config", str(file), "--sidecar", "none", "--gateway", gateway)
        program, triage, *arguments = shlex.split(first["next"]["commands"][0])
        seconds = arguments[arguments.index("--wait") + 1]
        again, _ = told(*arguments, "--wait", "1")
    assert (first["certainty"], program, triage) == ("possible", "thrashold", "triage")
    assert float(seconds) > 30
    assert again.pop("watched_seconds") > 0
    same = ("engine", "sidecar", "gateways", "problems", "verdict")
    assert {key: again[key] for key in same} == {key: first[key] for key in same}


def own(folder: Path, text: str) -> tuple[str, str]:
    """A file of settings of the pack, as the command is given it."""
    file = folder / "the fleet's.yml"
    file.write_text(text)
    return "--thresholds", str(file)


SWAPPED = (
    b"vllm:num_requests_running 4\nvllm:num_requests_waiting 0\nvllm:num_requests_swapped 2\n"
    b"vllm:gpu_cache_usage_perc 0.92\nvllm:cpu_cache_usage_perc 0.1\n"
)


def test_a_file_of_thresholds_decides_what_is_healthy(tmp_path: Path) -> None:
    """What a fleet allows is no finding, and what it doesn't allow is one; neither is told as if it weren't there."""
    with engine(SWAPPED) as url:
        shipped, broken = told(url, "--sidecar", "none")
        more, carried = told(
            url,
            "--sidecar",
            "none",
            *own(tmp_path, "thresholds: {swapped_sequences: 2, kv_usage_full_ratio: 0.95}"),
        )
        less, again = told(url, "--sidecar", "none", *own(tmp_path, "thresholds: {swapped_sequences: 1}"))
    assert (shipped["verdict"], shipped["finding"]["evidence"][0]["bound"], broken) == ("swap-thrash", 0.0, 1)
    assert (more["verdict"], carried) == ("healthy", 0)
    assert more["steps"][3]["answer"] == "kept: 2 swapped out now, 2 within the minute, and that many may be"
    assert (less["verdict"], less["finding"]["evidence"][0]["bound"], again) == ("swap-thrash", 1.0, 1)
    answers = [said["steps"][0]["answer"] for said in (shipped, more, less)]
    assert answers == ["FULL: 92 % taken (over 90 %)", "BUSY: 92 % taken (80 % to 95 %)", answers[0]]


def test_a_fleet_that_is_paged_at_95_percent_is_judged_by_it_and_led_to_its_own_pages(tmp_path: Path) -> None:
    pack = own(tmp_path, "thresholds: {kv_usage_full_ratio: 0.95}\nrunbooks: https://wiki.example/runbooks/")
    with recorded(OVERLOAD) as (stage, url):
        place = (url, "--sidecar", stage.sidecar_url(), "--name", ENGINE)
        shipped, _ = told(*place)
        own_lines, _ = told(*place, *pack)
    with recorded(IDLE) as (_, url):
        idle, _ = told(url, "--sidecar", "none", *pack)
    assert 0.9 <= shipped["steps"][0]["values"]["kv_usage_ratio"] < 0.95
    assert shipped["finding"]["alert"] == "KvCachePressure"
    assert "KvCachePressure" not in {each["alert"] for each in (own_lines["finding"], *own_lines["others"])}
    assert own_lines["steps"][0]["answer"].startswith("BUSY: 93 %")
    page = f"https://wiki.example/runbooks/{own_lines['finding']['alert']}.md"
    assert own_lines["next"]["page"] == page
    assert own_lines["next"]["notes"][-1].endswith(
        ": https://wiki.example/runbooks/actions.md#clamp-the-gateway"
    )
    assert idle["next"]["page"] == "https://wiki.example/runbooks/triage.md"


def test_the_longer_look_judges_by_the_same_file(tmp_path: Path) -> None:
    flag, file = own(tmp_path, "thresholds: {kv_usage_full_ratio: 0.95}")
    with engine(STANDING) as url:
        said, _ = told(url, "--sidecar", "none", flag, file)
    words = shlex.split(said["next"]["commands"][0])
    assert words[words.index(flag) + 1] == file


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "thresholds:\n  kv_usage_ful_ratio: 0.95",
            "the fleet's.yml:2: thresholds.kv_usage_ful_ratio: unknown key; did you mean kv_usage_full_ratio?",
        ),
        (
            "thresholds: {kv_usage_full_ratio: 95}",
            "the fleet's.yml:1: thresholds.kv_usage_full_ratio: expected a number <= 1.0",
        ),
        (
            "thresholds: {kv_usage_full_ratio: 0.7}",
            "kv_usage_calm_ratio: 0.8 is not below kv_usage_full_ratio (0.7)",
        ),
    ],
)
def test_thresholds_that_can_not_be_used_are_refused(text: str, words: str, tmp_path: Path) -> None:
    done = asked("http://127.0.0.1:1", *own(tmp_path, text))
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert done.err.count("\n") == 1


def test_an_address_in_a_command_means_nothing_to_a_shell_and_tells_no_secret() -> None:
    with engine(STANDING) as url:
        said, _ = told(f"{url};x?token=secret&b=2", "--sidecar", "none")
    command = said["next"]["commands"][0]
    assert shlex.split(command)[:3] == ["thrashold", "triage", f"{url};x?..."]
    assert "secret" not in command


PROMETHEUS = b"prometheus_build_info 1\nprometheus_tsdb_head_series 5\n"
BAD = {
    "html": (b"<!doctype html><title>Grafana</title>", 'is an HTML page called "Grafana"; check the path'),
    "login": (b"<html><title>Sign in</title><input type=password>", "is a login page"),
    "sidecar": (b"thrashold_build_info 1\n", "is the page of a thrashold sidecar; set the URL to the engine"),
    "prometheus": (PROMETHEUS, "is a metrics page of something else (prometheus_build_info"),
    "empty": (b"", "answers with an empty page; the engine may still be loading its model"),
    "json": (b'{"status": "ok"}', "is JSON"),
    "half": (b"vllm:prompt_tokens_total 5\n", "tells neither who runs nor how full its pool is"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_page_of_something_else_is_told_with_what_to_do(name: str) -> None:
    body, words = BAD[name]
    with engine(body) as url:
        done = asked(url, "--sidecar", "none")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"Error: {url}: ")
    assert words in done.err


def test_an_engine_that_hangs_or_is_gone_is_told_with_where_and_what_to_do(tmp_path: Path) -> None:
    gone = f"http://127.0.0.1:{free_port()}"
    done = asked(gone, "--sidecar", "none", "--json")
    assert done.code == 2
    assert json.loads(done.out)["error"].startswith(f"{gone}/metrics: refused: nothing listens there; look")
    with hanging_engine() as url:
        file = tmp_path / "sidecar.yaml"
        file.write_text(json.dumps({"engines": [{"url": url, "deadline_seconds": 0.2}]}))
        done = asked(url, "--config", str(file), "--sidecar", "none")
    assert (done.code, done.out) == (2, "")
    assert "did not answer within 0.2 s; look whether the engine is overloaded or hangs" in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["engine:8000"], "Error: URL: 'engine:8000' is not a URL; did you mean http://engine:8000?"),
        (
            ["http://engine:8000", "--sidecar", "ftp://sidecar"],
            "--sidecar: 'ftp://sidecar' must start with http",
        ),
        (["http://engine:8000", "--gateway", "envoy"], "'envoy' is not a URL"),
        (["http://engine:8000", "--config", "nowhere.yaml"], "nowhere.yaml"),
        (["http://engine:8000", "--wait", "-1"], "-1.0 is not in the range"),
        (["http://engine:8000", "--wait", "nan"], "nan is no number to reckon with"),
    ],
)
def test_what_can_not_be_asked_is_refused(arguments: list[str], words: str) -> None:
    done = asked(*arguments)
    assert (done.code, done.out) == (2, "")
    assert words in " ".join(done.err.split())


def test_a_name_that_settings_do_not_have_is_refused_with_those_that_they_have(tmp_path: Path) -> None:
    file = tmp_path / "sidecar.yaml"
    file.write_text("engines: [{name: worker-7, url: http://a:1}, {name: worker-8, url: http://b:1}]")
    done = asked("worker-9", "--config", str(file))
    assert (done.code, done.out) == (2, "")
    assert f"no engine in {file} is called 'worker-9': there are worker-7, worker-8" in done.err
