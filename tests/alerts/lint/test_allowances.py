"""What is left alone: by a comment, by the settings, each with a reason."""

from __future__ import annotations

import pytest

from alerts.lint.settings import Allowance, LintSettings
from tests.alerts.lint.linting import alert, board, linted, rules

RULE = "  - alert: {name}\n    expr: {expr}\n    annotations: {{runbook_url: x}}\n"
DEAD, SHORT = "vllm:num_preemptions > 1", "rate(x[10s]) > 1"


def file(*parts: str) -> str:
    return "groups:\n- name: g\n  rules:\n" + "".join(parts)


def rule(name: str, expr: str = DEAD) -> str:
    return RULE.format(name=name, expr=expr)


def told(text: str) -> list[tuple[str, str]]:
    return [(problem.where, problem.check) for problem in linted(text).problems]


ALLOW = "  # thrashold: allow dead-metric: our fork still has it\n"


def test_a_comment_before_a_rule_is_for_that_rule_alone() -> None:
    assert told(file(rule("A"), ALLOW, rule("B"), rule("C"))) == [("A", "dead-metric"), ("C", "dead-metric")]
    assert linted(file(ALLOW, rule("B"))).allowed == 1


def test_a_comment_before_the_first_and_the_last_rule() -> None:
    assert told(file(ALLOW, rule("A"), rule("B"))) == [("B", "dead-metric")]
    assert told(file(rule("A"), "  # about B\n\n", ALLOW, "  # more about B\n", rule("B"))) == [
        ("A", "dead-metric")
    ]


def test_a_comment_within_a_rule_at_the_end_of_a_line_and_in_a_block() -> None:
    behind = (
        "  - alert: A\n    expr: vllm:num_preemptions > 1  # thrashold: allow dead-metric: a fork\n"
        "    annotations: {runbook_url: x}\n"
    )
    assert told(file(behind, rule("B"))) == [("B", "dead-metric")]
    block = (
        "  - alert: A\n    annotations: {runbook_url: x}\n    expr: |\n"
        "      # thrashold: allow dead-metric: a fork\n      vllm:num_preemptions > 1\n"
    )
    assert told(file(block, rule("B"))) == [("B", "dead-metric")]


def test_a_check_is_allowed_and_no_other() -> None:
    both = f"{DEAD} and {SHORT}"
    assert told(file(ALLOW, rule("A", both))) == [("A", "rate-window")]
    several = "  # thrashold: allow dead-metric, rate-window: a fork\n"
    assert told(file(several, rule("A", both))) == []


def test_a_whole_file() -> None:
    text = "# thrashold: allow-file dead-metric: a fork\n" + file(rule("A"), rule("B", f"{DEAD} and {SHORT}"))
    assert told(text) == [("B", "rate-window")]


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("# thrashold: allow dead-metric", "says no reason"),
        ("# thrashold: allow dead-metric:", "says no reason"),
        ("# thrashold: allow dead-metrics: why", "there is no check dead-metrics"),
        ("# thrashold: allow", "names no check"),
        ("# thrashold: allow : why", "names no check"),
    ],
)
def test_a_comment_that_cannot_be_is_a_problem_itself_and_allows_nothing(comment: str, words: str) -> None:
    problems = linted(file(f"  {comment}\n", rule("A"))).problems
    assert [problem.check for problem in problems] == ["allowance", "dead-metric"]
    assert words in problems[0].what
    assert problems[0].place == (4, 3)


def test_a_comment_behind_the_last_rule_is_for_none() -> None:
    problems = linted(file(rule("A", SHORT), rule("B"), ALLOW)).problems
    assert [(problem.where, problem.check) for problem in problems] == [
        ("A", "rate-window"),
        ("B", "dead-metric"),
        ("", "allowance"),
    ]
    assert "no rule stands behind this" in problems[2].what


def test_what_begins_otherwise_is_a_comment_like_any() -> None:
    assert told(file("  # allow dead-metric: why\n", rule("A"))) == [("A", "dead-metric")]


@pytest.mark.parametrize(
    ("allowance", "left"),
    [
        (Allowance("dead-metric", "a fork"), []),
        (Allowance("dead-metric", "a fork", name="A"), ["B"]),
        (Allowance("dead-metric", "a fork", name="[AB]"), []),
        (Allowance("dead-metric", "a fork", file="file"), []),
        (Allowance("dead-metric", "a fork", file="other.yml"), ["A", "B"]),
        (Allowance("rate-window", "a fork"), ["A", "B"]),
    ],
)
def test_settings_allow_by_check_file_and_name(allowance: Allowance, left: list[str]) -> None:
    text = rules({**alert(DEAD), "alert": "A"}, {**alert(DEAD), "alert": "B"})
    report = linted(text, LintSettings(allow=(allowance,)))
    assert [problem.where for problem in report.problems] == left
    assert report.allowed == 2 - len(left)


def test_a_panel_goes_by_its_path() -> None:
    text = board(DEAD)
    assert linted(text, LintSettings(allow=(Allowance("dead-metric", "old engines", name="P"),))).allowed == 1
