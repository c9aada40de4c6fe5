"""The command on a dump, and on a real Prometheus that holds the same: one answer, and every refusal to the point."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from analysis.backtest_command import backtest
from exporter.derive.blocks import KV_USAGE
from exporter.derive.preemption import PREEMPTION_RATE, THRASHING
from exporter.derive.traffic import SEQUENCES
from tests.support.asked_server import Reply, Request, answering
from tests.support.prometheus import Labels, openmetrics, serving

START = 1_790_000_010
STEP = 15
COUNT = 240
SINCE = START + 100 * STEP
RULES = """
groups:
- name: mine
  interval: 30s
  rules:
  - alert: Full
    expr: |
      thrashold_kv_usage_ratio > 0.9
      or vllm:kv_cache_usage_perc > 0.9
    for: 1m
    keep_firing_for: 2m
    labels: {severity: critical, team: "{{ $labels.engine }}"}
  - alert: Nothing
    expr: absent(thrashold_thrashing{engine="z"})
    labels: {severity: info}
"""


def data() -> dict[tuple[str, Labels], dict[int, float]]:
    """Two engines; one fills, waits and preempts for a while, with failed scrapes amid it."""
    rows: dict[tuple[str, Labels], dict[int, float]] = {}
    for engine, begin, end in (("a", 80, 140), ("b", 0, 0)):
        rank = (("cluster", "east"), ("engine", engine), ("model_name", "m"), ("rank", "0"))
        ill = range(begin, end)
        for name, labels, high, low in (
            (KV_USAGE.full_name, rank, 0.97, 0.3),
            (SEQUENCES.full_name, (*rank, ("state", "waiting")), 40.0, 0.0),
            (PREEMPTION_RATE.full_name, rank, 2.0, 0.0),
            (THRASHING.full_name, rank, 1.0, 0.0),
        ):
            rows[name, tuple(sorted(labels))] = {
                # not at the instants at which rules are evaluated
                START + place * STEP + 4: high if place in ill else low
                for place in range(COUNT)
                if place not in (100, 101, 120)
            }
    return rows


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("backtest") / "metrics.om"
    path.write_text(openmetrics(data()))
    return path


@pytest.fixture(scope="module")
def server(dump: Path) -> Iterator[str]:
    with serving(dump, dump.parent) as prometheus:
        yield prometheus.url


@pytest.fixture(autouse=True)
def _no_cache_of_the_user_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(backtest, arguments)


def told(*arguments: str) -> dict[str, Any]:
    found = run(*arguments, "--json")
    assert found.exit_code == 0, found.output
    answer: dict[str, Any] = json.loads(found.output)
    return answer


BOUNDS = ("--start", str(START), "--end", str(START + COUNT * STEP))


def test_a_dump_and_a_server_that_holds_it_give_the_same_episodes(dump: Path, server: str) -> None:
    names = ("KvCachePressure", "KvThrashing", "KvLeaking")
    chosen = [word for name in names[:2] for word in ("--alert", name)]
    of_file = told(str(dump), *BOUNDS, *chosen, "--since", str(SINCE))
    of_server = told(server, *BOUNDS, *chosen, "--since", str(SINCE))
    for here, there in zip(of_file["alerts"], of_server["alerts"], strict=True):
        assert here["name"] == there["name"]
        assert len(here["episodes"]) == 1
        for episode, other in zip(here["episodes"], there["episodes"], strict=True):
            assert {**episode, "labels": None} == {**other, "labels": None}
            assert episode["labels"].items() <= other["labels"].items()
    assert of_file["pages"] == of_server["pages"]
    assert of_file["pages"] == {
        "told": 1,
        "lead_seconds": 18 * STEP,
        "noise": 0,
        "noise_per_week": 0.0,
    }
    # thrashing explains pressure, which nobody is told of
    assert of_file["others"]["told"] == of_server["others"]["told"] == 0


def test_people_read_when_and_how_early(dump: Path) -> None:
    shown = run(str(dump), *BOUNDS, "--since", str(SINCE))
    assert shown.exit_code == 0, shown.output
    assert "told 4 min 30 s before by a page" in shown.output
    assert "engine=a" in shown.output
    assert "not tested (needs a server" in shown.output
    assert "says little of noise" in shown.output


def test_a_restart_makes_it_wait_again(dump: Path) -> None:
    at = START + 110 * STEP
    (once,) = told(str(dump), *BOUNDS, "--alert", "KvThrashing")["alerts"]
    (twice,) = told(str(dump), *BOUNDS, "--alert", "KvThrashing", "--restart", str(at - 1))["alerts"]
    assert len(once["episodes"]) == 1
    first, second = twice["episodes"]
    assert first["ended_at"] == second["active_at"] == at
    assert second["fired_at"] == at + 15


def test_settings_and_a_sweep(dump: Path, tmp_path: Path) -> None:
    settings = tmp_path / "pack.yml"
    settings.write_text("thresholds: {waiting_sequences: 50}\nalerts: {KvThrashing: {disabled: true}}\n")
    alerts = told(str(dump), *BOUNDS, "--thresholds", str(settings))["alerts"]
    by_name = {alert["name"]: alert for alert in alerts}
    assert "KvThrashing" not in by_name
    assert by_name["KvCachePressure"]["episodes"] == []
    grid = ("--sweep", "waiting_sequences=10:60:6", "--sweep", "for=0:60:3", "--since", str(SINCE))
    (swept,) = told(str(dump), *BOUNDS, *grid)["sweeps"]
    assert swept["alert"] == "KvCachePressure"
    leads = {tuple(point["at"]): point["lead_seconds"] for point in swept["points"]}
    assert leads[10.0, 0.0] == 19 * STEP
    assert leads[10.0, 60.0] == 15 * STEP
    assert leads[50.0, 0.0] is None
    assert "KvCachePressure: 18 settings" in run(str(dump), *BOUNDS, *grid).output


def test_a_sweep_reads_a_server_s_signals(dump: Path, server: str) -> None:
    grid = ("--sweep", "KvCachePressure", "--since", str(SINCE))
    here, there = (told(source, *BOUNDS, *grid)["sweeps"] for source in (str(dump), server))
    assert here == there
    assert len(here[0]["points"]) >= 1000


def test_rules_of_one_s_own(server: str, tmp_path: Path) -> None:
    rules = tmp_path / "mine.yml"
    rules.write_text(RULES)
    answer = told(server, *BOUNDS, "--rules", str(rules), "--since", str(SINCE))
    full, nothing = answer["alerts"]
    (episode,) = full["episodes"]
    assert episode["labels"]["engine"] == "a"
    assert "team" not in episode["labels"]
    begins = START + 81 * STEP
    begins += -begins % 30
    assert (episode["active_at"], episode["fired_at"]) == (begins, begins + 60)
    assert episode["ended_at"] > START + 140 * STEP + 120
    assert (full["wakes"], full["for_seconds"], full["keep_firing_seconds"]) == (True, 60.0, 120.0)
    assert nothing["episodes"][0]["ended_at"] is None
    assert answer["pages"]["told"] == 1


def test_a_page_has_charts_and_works_by_itself(dump: Path, server: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run(str(dump), *BOUNDS, "--html", str(page)).exit_code == 0
    text = page.read_text()
    assert "KvThrashing: thrashold_thrashing" in text
    assert "default-src &#39;none&#39;" in text or "default-src 'none'" in text
    rules = tmp_path / "mine.yml"
    rules.write_text(RULES)
    for asked in (("--alert", "KvThrashing"), ("--rules", str(rules))):
        found = run(server, *BOUNDS, *asked, "--html", str(page))
        assert found.exit_code == 0, found.output
        assert "has no charts" not in found.output
        assert "All that fired" in page.read_text()
    assert "Full: thrashold_kv_usage_ratio" in page.read_text()
    sweep = ("--sweep", "KvCachePressure", "--since", str(SINCE), "--html", str(page))
    assert run(str(dump), *BOUNDS, *sweep).exit_code == 0
    assert "<svg" in page.read_text()


BAD_RULES = (
    ("expr: thrashold_kv_usge_ratio > 1", "mine.yml:4: A reads thrashold_kv_usge_ratio, of which"),
    ("expr: thrashold_kv_usge_ratio > 1", "did you mean thrashold_kv_usage_ratio?"),
    ("expr: frobnicate(thrashold_thrashing) > 1", "mine.yml:4: A: unknown function with name 'frobnicate'"),
    ("expr: job:x:rate5m > 1", "the rule at"),
    ("expr: job:x:rate5m > 1", "isn't recorded there"),
    ("expr: mad_over_time(thrashold_thrashing[5m]) > 1", "is not taken there"),
    ("for: 1m", "mine.yml:4:5: rule 'A' has no expression"),
    ("expr: thrashold_thrashing > 1\n    for: soon", "'soon' is no duration"),
)


@pytest.mark.parametrize(("line", "words"), BAD_RULES)
def test_rules_that_can_not_be_tested_are_told_with_their_place(
    server: str, tmp_path: Path, line: str, words: str
) -> None:
    rules = tmp_path / "mine.yml"
    fields = ", ".join(_quoted(each) for each in line.splitlines())
    recording = "{record: 'job:x:rate5m', expr: 'vector(1)'}"
    rules.write_text(f"groups:\n- name: mine\n  rules: [{recording},\n    {{alert: A, {fields}}}]\n")
    found = run(server, *BOUNDS, "--rules", str(rules))
    assert found.exit_code == 2, found.output
    assert words in found.output


def _quoted(line: str) -> str:
    key, _, value = line.strip().partition(": ")
    return f"{key}: '{value}'"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("nothing.db",), 1, "nothing.db"),
        (("FILE", "--alert", "KvTrashing"), 2, "did you mean KvThrashing?"),
        (("FILE", "--alert", "EngineDown"), 2, "EngineDown: needs a server"),
        (("FILE", "--sweep", "kv_usage_full_ratio=1:2"), 2, "is no THRESHOLD=FROM:TO:N"),
        (("FILE", "--sweep", "for=0:60:3"), 2, "needs --alert NAME"),
        (("FILE", "--sweep", "EngineDown"), 2, "only a server evaluates"),
        (("FILE", "--sweep", "RanksOutOfBalance"), 1, "holds none of"),
        (("FILE", "--sweep", "KvExhaustionNear"), 2, "the history has no"),
        (("FILE", "--alert", "KvThrashing", "--sweep", "for=0:1e400:3"), 2, "is no time to wait"),
        (("FILE", "--rules", "x.yml"), 2, "which a server evaluates"),
        (("SERVER", "--rules", "nothing.yml"), 2, "can't be read"),
        (("http://127.0.0.1:1",), 1, "http://127.0.0.1:1"),
        (("FILE", "--start", "20", "--end", "10"), 2, "nothing lies between"),
        (("FILE", "--start", "-2h"), 2, "counts back from the end"),
        (("SERVER", "--start", "-2h", "--end", "never"), 2, "'never' is neither seconds"),
        (("FILE", "--every", "3600", "--end", str(START + 3000)), 2, "longer than what"),
        (("FILE", "--since", "2020-01-01"), 2, "is not within what is tested, 2026-09-21T14:13:"),
        (("FILE", "--html", "/no/such/folder/a.html"), 2, "no folder /no/such/folder"),
    ],
)
def test_what_can_not_be_used_is_one_line(
    dump: Path, server: str, arguments: tuple[str, ...], code: int, words: str
) -> None:
    put = {"FILE": str(dump), "SERVER": server}
    found = run(*(put.get(word, word) for word in arguments))
    assert found.exit_code == code, found.output
    assert words in found.output
    assert found.output.count("\n") <= 2


def _odd(reply: Reply) -> Callable[[Request], Reply]:
    return lambda _: reply


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(b'{"status":"error","errorType":"execution","error":"too many"}', 422), "try a shorter range"),
        (Reply(b'{"status":"error","errorType":"bad_data","error":"no such"}', 400), "is not taken there"),
        (Reply(b'{"status":"success","data":[["a"],{"b":1}]}'), "is no Prometheus"),
    ],
)
def test_a_server_that_does_not_say_what_it_has_is_one_line(reply: Reply, words: str) -> None:
    with answering(_odd(reply)) as server:
        found = run(server.url)
        assert (found.exit_code, words in found.output) == (1, True), found.output
        assert found.output.startswith(f"Error: {server.url}: ")
        assert found.output.count("\n") == 1


def test_a_server_is_one_however_its_scheme_is_spelled(server: str) -> None:
    loud = server.replace("http", "HTTP")
    names = ("--alert", "KvThrashing", "--json", *BOUNDS)
    assert json.loads(run(loud, *names).output) == json.loads(run(server, *names).output)
    refused = run("http://me:secret@127.0.0.1:1")
    assert (refused.exit_code, "secret" in refused.output) == (1, False)


def test_numbers_that_are_none_and_times_without_an_evaluation_are_said(
    server: str, dump: Path, tmp_path: Path
) -> None:
    refused = run(str(dump), "--since", "20", "--within", "nan")
    assert (refused.exit_code, "nan is no number" in refused.output) == (2, True)
    rules = tmp_path / "mine.yml"
    rules.write_text("groups: [{name: mine, interval: 30s, rules: [{alert: A, expr: vector(1)}]}]")
    short = ("--rules", str(rules), "--start", str(START + 1), "--end", str(START + 29))
    (outcome,) = told(server, *short)["alerts"]
    assert (outcome["tested"], "too short" in outcome["not_tested_because"]) == (False, True)


def test_how_often_is_as_fine_as_servers_know_time(dump: Path) -> None:
    assert told(str(dump), "--alert", "KvThrashing", "--every", "15.00049")["step_seconds"] == 15.0
