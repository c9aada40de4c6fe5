"""``thrashold alerts lint``: what it prints, how it ends, what it takes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from alerts.command import alerts
from alerts.lint.catalogue import CHECKS
from alerts.pack_settings import PackSettings
from alerts.render import rule_file
from tests.alerts.lint.linting import alert, board, rules

ROOT = Path(__file__).resolve().parents[3]


def invoked(*arguments: str | Path) -> Any:  # noqa: ANN401 -- click's own
    return CliRunner().invoke(alerts, ["lint", *map(str, arguments)])


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    file = tmp_path / "rules.yml"
    file.write_text("groups:\n- name: g\n  rules:\n  - alert: A\n    expr: rate(vllm:num_preemptions[5m]) > 1\n"
                    "    annotations: {runbook_url: x}\n")  # fmt: skip
    return file


def test_the_pack_that_is_shipped_is_clean_as_rendered_and_as_committed() -> None:
    made = yaml.safe_load(rule_file(PackSettings()))
    count = sum(len(group["rules"]) for group in made["groups"])
    result = invoked()
    assert (result.exit_code, result.output) == (0, f"1 file, {count} expressions: 0 problems\n")
    committed = invoked(ROOT / "deploy" / "prometheus")
    assert (committed.exit_code, committed.output) == (
        0,
        f"2 files, {2 * count} expressions: 0 problems, 1 file of other kinds passed over\n",
    )


def test_the_pack_is_clean_with_another_clusters_labels_too(tmp_path: Path) -> None:
    settings, lint = tmp_path / "pack.yml", tmp_path / "lint.yml"
    settings.write_text('cluster_labels: [region, k8s]\nselector: job="thrashold"\n')
    lint.write_text("cluster_labels: [region, k8s]\nseveral_clusters: true\n")
    made = CliRunner().invoke(alerts, ["render", "--config", str(settings), "-o", str(tmp_path / "out")])
    assert made.exit_code == 0
    result = invoked("--config", lint, tmp_path / "out" / "thrashold.rules.yml")
    assert result.exit_code == 0, result.output


def test_a_problem_is_told_with_its_line_a_caret_and_the_fix(faulty: Path) -> None:
    result = invoked(faulty)
    assert result.exit_code == 1
    assert result.output == (
        f"{faulty}:5:16: error: dead-metric (A)\n"
        "    vllm:num_preemptions is never there: vLLM writes it with _total\n"
        "    | expr: rate(vllm:num_preemptions[5m]) > 1\n"
        "    |            ^\n"
        "    fix: use vllm:num_preemptions_total\n"
        "\n"
        "1 file, 1 expression: 1 problem\n"
    )


def test_a_long_line_is_cut_around_the_caret(tmp_path: Path) -> None:
    file = tmp_path / "board.json"
    file.write_text(board(f"{'(' * 300}vllm:num_preemptions{')' * 300} > 1"))
    lines = invoked(file).output.splitlines()
    shown, caret = lines[2], lines[3]
    assert len(shown) < 130
    assert shown[caret.index("^") :].startswith("vllm:num_preemptions")


def test_json_for_programs(faulty: Path) -> None:
    (faulty.parent / "broken.yml").write_text("groups: [")
    result = invoked("--json", faulty.parent)
    assert result.exit_code == 2
    told = json.loads(result.output)
    assert told == {
        "files": 1,
        "expressions": 1,
        "allowed": 0,
        "passed_over": 0,
        "problems": [
            {
                "file": str(faulty),
                "line": 5,
                "column": 16,
                "check": "dead-metric",
                "severity": "error",
                "where": "A",
                "what": "vllm:num_preemptions is never there: vLLM writes it with _total",
                "fix": "use vllm:num_preemptions_total",
            }
        ],
        "unreadable": [
            {
                "file": str(faulty.parent / "broken.yml"),
                "line": 1,
                "column": 10,
                "problem": "is no YAML: did not find expected node content",
            }
        ],
    }


def test_what_cannot_be_read_ends_with_2_and_the_others_are_checked(faulty: Path) -> None:
    (faulty.parent / "broken.json").write_text("{")
    result = invoked(faulty.parent / "broken.json", faulty)
    assert result.exit_code == 2
    assert f"{faulty.parent}/broken.json:1:2: unreadable: is no JSON" in result.output
    assert "dead-metric (A)" in result.output
    assert result.output.endswith("1 file, 1 expression: 1 problem, 1 unreadable\n")


def test_a_path_that_is_not_there_and_settings_that_cannot_be(tmp_path: Path) -> None:
    assert invoked(tmp_path / "gone").exit_code == 2
    file = tmp_path / "lint.yml"
    for text, words in (
        ("allow: [{check: dead-metric}]", "reason"),
        (
            "allow:\n- {check: dead-metrik, reason: x}",
            "2: allow[0].check: there is no check dead-metrik: did you mean dead-metric?",
        ),
        ("releases: {vlm: '1'}", "releases.vlm: nothing is known of vlm"),
        ("releases: {vllm: 'new'}", "releases.vllm: 'new' is no release"),
        ("releases: {vllm: 0.10}", "releases.vllm"),
        ("scrape_interval_seconds: 0", "scrape_interval_seconds"),
        ("cluster_labels: []", "cluster_labels"),
        ("scrape: 5", "scrape: unknown key"),
    ):
        file.write_text(text)
        result = invoked("--config", file)
        assert (result.exit_code, words in result.output, str(file) in result.output) == (2, True, True), (
            result.output
        )


def test_settings_reach_the_checks(tmp_path: Path) -> None:
    rule, file = tmp_path / "rules.yml", tmp_path / "lint.yml"
    rule.write_text(rules(alert("rate(x[1m]) > 1 and vllm:gpu_cache_usage_perc > 0.9")))
    assert invoked(rule).output.count("error: ") == 1
    file.write_text("scrape_interval_seconds: 60\nreleases: {vllm: '0.8.5'}\n")
    result = invoked("--config", file, rule)
    assert "rate-window" in result.output
    assert "dead-metric" not in result.output


def test_all_checks_are_named() -> None:
    result = invoked("--list")
    assert result.exit_code == 0
    assert [line.split()[1] for line in result.output.splitlines()] == list(CHECKS)


def test_without_the_parser_it_says_what_to_install_and_the_rest_works() -> None:
    """As in a base install: the parser's module can't be found."""
    code = (
        "import sys, importlib.abc\n"
        "class Gone(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'promql_parser': raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Gone())\n"
        "sys.modules['promql_parser'] = None\n"
        "from thrashold import main\n"
        "main(prog_name='thrashold')\n"
    )

    def called(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, "alerts", *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)

    missing = called("lint")
    assert (missing.returncode, missing.stderr) == (
        1,
        "Error: the linter needs promql-parser: pip install 'thrashold[lint]'\n",
    )
    assert called("list").returncode == 0
    assert called("lint", "--help").returncode == 0


@pytest.mark.parametrize("others", [(), ("values.yaml",)])
def test_where_there_is_nothing_to_look_at_nothing_is_well(tmp_path: Path, others: tuple[str, ...]) -> None:
    for name in others:
        (tmp_path / name).write_text("replicas: 3\n")
    result = invoked(tmp_path)
    assert result.exit_code == 2
    assert f"no rule file and no board in {tmp_path}" in result.output
