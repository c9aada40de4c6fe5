"""Files: each value with its place, whatever style it is written in; what can't be read, said with its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from alerts.lint.reading.document import Scalar, Table, spots
from alerts.lint.reading.json_file import read_json
from alerts.lint.reading.rules import duration_seconds
from alerts.lint.reading.source import Place, Source
from alerts.lint.reading.yaml_file import read_yaml
from alerts.lint.run import lint, lint_text
from alerts.lint.settings import LintSettings
from tests.alerts.lint.linting import alert, finds, linted, rules

SHORT = 700
"""Operators, or brackets: fewer than are refused unseen, and more than some of what goes through a tree can bear."""
TEXTS = st.text(st.sampled_from("ab c\n\t\"'\\{}[]#:,|>-%&*!é😀 "), min_size=1, max_size=40)


def scalar(source: Source, *, as_json: bool) -> Scalar:
    document = read_json(source) if as_json else read_yaml(source)[0]
    assert isinstance(document, Table)
    held = document.table("outer")
    assert held is not None
    found = held.entries["key"]
    assert isinstance(found, Scalar)
    return found


def holds(source: Source, found: Scalar, text: str) -> None:
    """Each character stands where it is said to, or an escape of it begins there."""
    assert found.value == text
    places = spots(source, found)
    assert len(places) == len(text)
    assert list(places) == sorted(places)
    for letter, place in zip(text, places, strict=True):
        if not letter.isspace():
            assert source.text[place] in (letter, "\\"), (letter, source.text[place:])


@given(TEXTS, st.sampled_from([None, '"', "'", "|", ">"]), st.integers(12, 60))
def test_a_character_of_yaml_stands_where_it_is_said_to(text: str, style: str | None, width: int) -> None:
    written = yaml.safe_dump(
        {"outer": {"key": text, "next": 1}}, default_style=style, width=width, allow_unicode=True
    )
    source = Source.of("x.yml", written)
    holds(source, scalar(source, as_json=False), text)


@given(TEXTS, st.booleans())
def test_a_character_of_json_stands_where_it_is_said_to(text: str, plain: bool) -> None:  # noqa: FBT001
    source = Source.of("x.json", json.dumps({"outer": {"key": text}}, indent=1, ensure_ascii=plain))
    holds(source, scalar(source, as_json=True), text)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


def plain(node: object) -> object:
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Table):
        return {key: plain(value) for key, value in node.entries.items()}
    return [plain(item) for item in node.items]  # type: ignore[attr-defined]


@given(JSON, st.sampled_from([None, 1]))
def test_json_is_read_as_pythons_own_reader_reads_it(value: object, indent: int | None) -> None:
    assert plain(read_json(Source.of("x.json", json.dumps(value, indent=indent)))) == value


RULE_KEYS = ("groups", "rules", "alert", "record", "expr", "for", "labels", "annotations", "interval", "name")
RESOURCE_KEYS = ("kind", "spec", "items", "type", "title", "value", "list", "query", "datasource")
BOARD_KEYS = (
    "panels",
    "rows",
    "targets",
    "templating",
    "fieldConfig",
    "defaults",
    "unit",
    "thresholds",
    "steps",
)
KEYS = (*RULE_KEYS, *RESOURCE_KEYS, *BOARD_KEYS)
SHAPES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from(["a > 1", "rate(x", "5m", "query", "prometheus", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=25,
)


@given(SHAPES)
def test_whatever_a_file_holds_it_is_found_fault_with_or_refused_and_never_crashes(value: object) -> None:
    for text in (json.dumps(value), yaml.safe_dump(value), yaml.safe_dump({"groups": value})):
        report = lint_text("file", text, LintSettings())
        assert report.files + len(report.troubles) >= 1


BLOCKS = """\
groups:
- name: g
  rules:
  - alert: Literal
    expr: |
      up == 0
        or vllm:num_preemptions > 1
    annotations: {runbook_url: x}
  - alert: Folded
    expr: >-
      up == 0
      or
      vllm:num_preemptions > 1
    annotations: {runbook_url: x}
  - alert: Double
    expr: "up{a=\\"\\u0041\\"} == 0 or \\
      vllm:num_preemptions > 1"
    annotations: {runbook_url: x}
  - alert: Single
    expr: 'up{a=''b''} == 0 or vllm:num_preemptions > 1'
    annotations: {runbook_url: x}
  - alert: Plain
    expr: up == 0 or
      vllm:num_preemptions > 1
    annotations: {runbook_url: x}
---
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
spec:
  groups:
  - name: h
    rules:
    - &again
      alert: Resource
      expr: vllm:num_preemptions > 1
      annotations: {runbook_url: x}
---
kind: List
items:
- kind: PrometheusRule
  spec: {groups: [{name: i, rules: [{record: a:b, expr: vllm:num_preemptions}]}]}
"""


def test_places_in_every_style_of_yaml_and_in_every_document() -> None:
    problems = linted(BLOCKS).problems
    assert [(each.where, each.place.line) for each in problems] == [
        ("Literal", 7),
        ("Folded", 13),
        ("Double", 17),
        ("Single", 20),
        ("Plain", 24),
        ("Resource", 35),
        ("a:b", 41),
    ]
    for each in problems:
        assert each.line[each.place.column - 1 :].startswith("vllm:num_preemptions"), each


MAPS = """\
apiVersion: v1
kind: ConfigMapList
items:
- kind: ConfigMap
  data:
    board.json: |-
      {"title": "B", "panels": [
        {"type": "timeseries", "title": "P", "targets": [
          {"expr": "rate(vllm:num_preemptions{pod=\\"$pod\\"}[5m])"}]}]}
    settings.json: '{"a": 1}'
    notes.txt: "groups: ["
---
kind: ConfigMap
data:
  rules.yml: |
    groups:
    - name: g
      rules:
      # thrashold: allow rate-window: why not
      - alert: A
        expr: |
          rate(x[10s]) > 1
          and vllm:num_preemptions > 1
        annotations: {runbook_url: x}
"""


def test_config_maps_hold_boards_and_rules_and_places_are_the_files_own(tmp_path: Path) -> None:
    report = linted(MAPS)
    assert [(each.where, each.check, each.place.line) for each in report.problems] == [
        ("B > P", "dead-metric", 9),
        ("A", "dead-metric", 23),
    ]
    assert (report.files, report.queries, report.allowed) == (1, 2, 1)
    for each in report.problems:
        assert each.line[each.place.column - 1 :].startswith("vllm:num_preemptions")
    file = tmp_path / "maps.yml"
    file.write_text(MAPS.replace('[5m])"}', '[5m]"}'))
    (trouble,) = lint([file], LintSettings()).troubles
    assert trouble.place.line == 9
    file.write_text("kind: ConfigMap\ndata: {settings.json: '{}'}\n")
    assert not lint([tmp_path], LintSettings()).troubles
    assert lint([file], LintSettings()).troubles


def test_a_text_of_a_config_map_that_cannot_be_read_costs_itself_alone() -> None:
    good = rules(alert(expr="up == 0")).replace("\n", "\n    ")
    report = lint_text(
        "map.yml",
        f"kind: ConfigMap\ndata:\n  broken.json: '{{\"panels\": ['\n  rules.yml: |\n    {good}\n",
        LintSettings(),
    )
    assert [(each.file, each.place.line) for each in report.troubles] == [("map.yml", 3)]
    assert (report.files, report.queries) == (1, 1)


@pytest.mark.parametrize("value", ["!!int ''", "!!float ''", "!!bool perhaps", "!!timestamp soon", "!mine x"])
def test_a_value_that_does_not_fit_its_tag_is_read_as_the_text_it_is(value: str) -> None:
    source = Source.of("x.yml", f"outer: {{key: {value}}}\n")
    found = scalar(source, as_json=False)
    assert found.value == value.partition(" ")[2].strip("'")


def test_aliases_and_merges_are_read() -> None:
    text = "x: &base\n  expr: vllm:num_preemptions > 1\n  annotations: {runbook_url: x}\n"
    text += "groups:\n- name: g\n  rules:\n  - {<<: *base, alert: A}\n  - {<<: [*base], alert: B}\n"
    assert [each.place for each in finds("dead-metric", text)] == [Place(2, 9)], "the same place, told once"
    assert linted(text).queries == 2


@pytest.mark.parametrize(
    ("name", "text", "place", "words"),
    [
        ("a.yml", "groups:\n- name: [", (2, 10), "is no YAML"),
        ("a.yml", "groups:\n- name: g\n\trules: []\n", (3, 1), "is no YAML"),
        ("a.yml", "groups:\n{{- range .Values.x }}\n- name: g\n{{- end }}\n", (3, 1), "helm template"),
        ("a.yml", "{{- if .Values.x }}\ngroups: []\n{{- end }}\n", (1, 3), "helm template"),
        ("a.yml", "a: 1\n", (1, 1), "is no rule file"),
        ("a.yml", "- a\n- b\n", (1, 1), "is no rule file"),
        ("a.yml", "", (1, 1), "is no rule file"),
        ("a.yml", "x: \x07\n", (1, 4), "is no YAML"),
        ("a.yml", "groups: &a\n- *a\n", (1, 1), "holds itself"),
        ("a.yml", "groups:\n- g\n", (2, 3), "a group has to be a table"),
        ("a.yml", "groups:\n- name: g\n  rules: 5\n", (3, 3), "'g' has no list of rules"),
        ("a.yml", "groups:\n- name: g\n  rules:\n  - 5\n", (4, 5), "a rule has to be a table"),
        ("a.yml", "groups:\n- name: g\n  rules:\n  - expr: up\n", (4, 5), "one of alert and record"),
        ("a.yml", "groups:\n- name: g\n  rules:\n  - {alert: A, record: b, expr: up}\n", (4, 5), "alert and record"),
        ("a.yml", "groups:\n- name: g\n  rules:\n  - alert: A\n", (4, 5), "rule 'A' has no expression"),
        ("a.yml", "groups:\n- name: g\n  rules:\n  - alert: A\n    expr: [up]\n", (5, 5), "'A' has no expression"),
        ("a.yml", "groups:\n- name: g\n  rules:\n  - {alert: A, expr: up, for: soon}\n", (4, 31), "'soon' is no"),
        ("a.yml", "groups:\n- name: g\n  interval: 1 m\n  rules: []\n", (3, 13), "'1 m' is no duration"),
        ("a.yml", "groups:\n- name: g\n  rules:\n  - alert: A\n    expr: rate(x[5m]\n", (5, 11), "A: no PromQL"),
        ("a.yml", "groups:\n- name: g\n  rules:\n  - alert: A\n    expr: rate(x)\n", (5, 11), "expected type matrix"),
        ("a.json", '{"panels": [}', (1, 13), "is no JSON: a value is missing"),
        ("a.json", '{"panels": []', (1, 14), "is no JSON: ',' is missing"),
        ("a.json", '{\n "panels": [],\n}', (3, 1), "a comma stands before the end"),
        ("a.json", "{}\n{}", (2, 1), "something stands behind its end"),
        ("a.json", "[" * 100_000, (1, 1), "nested too deeply"),
        ("a.json", '{"a": 1}', (1, 1), "is no board of Grafana"),
        ("a.json", "5", (1, 1), "is no board of Grafana"),
        ("a.json", '{"panels": [{"title": "P", "targets": [{"expr": "rate(x[5m"}]}]}', (1, 50), "P: no PromQL"),
        ("a.json", '{"panels": [{"title": "P", "targets": [{"expr": "$a $b"}]}]}', (1, 50), "put in for its variables"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said_with_its_place_and_the_rest_is_checked(
    name: str, text: str, place: tuple[int, int], words: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "good.yml").write_text(rules(alert("vllm:num_preemptions > 1")))
    report = lint([tmp_path / name, tmp_path / "good.yml"], LintSettings())
    (trouble,) = report.troubles
    assert words in trouble.problem
    assert (trouble.file, trouble.place) == (str(tmp_path / name), place)
    assert [problem.check for problem in report.problems if problem.file.endswith("good.yml")] == [
        "dead-metric"
    ]


def test_files_that_are_no_text_or_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_bytes(b"groups:\n- name: \xff\n")
    (tmp_path / "b.yml").symlink_to(tmp_path / "gone")
    report = lint([tmp_path], LintSettings())
    assert [(each.place, each.problem) for each in report.troubles] == [
        (Place(2, 9), "is no text in UTF-8"),
        (Place(1, 1), "can't be read: No such file or directory"),
    ]


def test_a_folder_is_looked_through_and_other_kinds_are_passed_over(tmp_path: Path) -> None:
    inner = tmp_path / "in" / "ner"
    inner.mkdir(parents=True)
    (inner / "rules.yaml").write_text(
        "\ufeff" + rules(alert("vllm:num_preemptions > 1")).replace("\n", "\r\n")
    )
    (inner / "values.yaml").write_text("image: {tag: v1}\n")
    (tmp_path / "package.json").write_text('{"name": "x"}')
    (tmp_path / "notes.txt").write_text("groups: [")
    report = lint([tmp_path, inner / "rules.yaml"], LintSettings())
    assert (report.files, report.passed_over, len(report.problems)) == (1, 2, 1)
    assert not report.troubles


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90.0), ("1h30m", 5400.0), ("0", 0.0), ("250ms", 0.25), ("1w1d", 691_200.0)]
)
def test_durations(text: str, seconds: float) -> None:
    assert duration_seconds(text) == seconds


@pytest.mark.parametrize(
    "shape",
    [
        lambda n: "(" * n + "up" + ")" * n,
        lambda n: "-" * n + "up",
        lambda n: "up + " * n + "up",
        lambda n: "up or " * n + "up",
        lambda n: "a ^ " * n + "a",
        lambda n: "abs(" * n + "up" + ")" * n,
    ],
)
@pytest.mark.parametrize("times", [SHORT, 100_000])
def test_an_expression_that_no_parser_can_take_costs_itself_alone(
    shape: Callable[[int], str], times: int
) -> None:
    text = rules(alert(shape(times)), alert("vllm:kv_cache_usage_perc > 85"))
    report = lint_text("file", text, LintSettings())
    assert all(
        "nested too deeply, or too long: record parts of it" in each.problem for each in report.troubles
    )
    assert report.troubles or times == SHORT
    assert "ratio-scale" in {problem.check for problem in report.problems}
