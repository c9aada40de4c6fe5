"""Runbooks: each alert has its page, and what pages say exists: signals, thresholds, commands, scenarios, links."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from alerts.alert import Alert, Expression
from alerts.catalogue import ALERTS, RECORDINGS
from alerts.command import alerts
from alerts.conditions import All, Compare, Condition, Either, OnGpus, Recorded, Unless
from alerts.runbooks import BASE, SECTIONS, head, runbook_url
from alerts.runbooks_index import index, shown
from alerts.thresholds import NAMES, THRESHOLDS
from drill.scenarios.catalogue import SCENARIOS
from exporter import own_signals, recorder_signals, sampler_signals, source_signals
from exporter.catalogue import DERIVED_SIGNALS
from exporter.derive.preemption import ENTER_GAIN_RATIO, LEAVE_AFTER_SECONDS, LEAVE_GAIN_RATIO
from exporter.signal import PEAK_SUFFIX, Signal
from tests.support.prometheus import tool
from thrashold import main

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / BASE
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}
SHARED = {name for name in PAGES if name[0].islower()}
OURS = {"--check", "--listen"}
"""Options of our own that pages name by themselves."""
TREES = [alert for alert in ALERTS.values() if not isinstance(alert.condition, Expression)]
_FENCE = re.compile(r"^( *)(?:\d+\. )?```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_SIGNAL = re.compile(r"(?<!:)\bthrashold_[a-z0-9_]+")
_RECORDED = re.compile(r"\b[a-z_]+:thrashold_[a-z0-9_]+:[a-z0-9_]+")
_SELECTOR = re.compile(r"(?<!:)\b(thrashold_[a-z0-9_]+)\{([^}]*)\}")
_MATCHER = re.compile(r'([a-z_]+)(?:=~|!~|!=|=)"')
_THRESHOLD = re.compile(r"thresholds?\s+`(\w+)`(?:\s+\(([\d.,]+)\))?")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def signals() -> dict[str, Signal]:
    """By the names that they are scraped under, twins included."""
    modules = (source_signals, sampler_signals, own_signals, recorder_signals)
    named: dict[str, Signal] = {}
    for signal in (*DERIVED_SIGNALS, *(each for module in modules for each in module.SIGNALS)):
        named[signal.full_name] = signal
        if signal.peak:
            named[signal.full_name + PEAK_SUFFIX] = signal
    return named


SIGNALS = signals()


def blocks(text: str, language: str) -> list[str]:
    """What stands in fenced blocks of a language."""
    return [found[3].strip() for found in _FENCE.finditer(text) if found[2] == language]


def commands(text: str) -> Iterator[list[str]]:
    """Command lines of our own, in sentences and in shell blocks."""
    prose = _FENCE.sub("", text)
    lines = [line.strip() for block in blocks(text, "sh") for line in block.splitlines()]
    for line in (*_CODE.findall(prose), *lines):
        if line.startswith("thrashold "):
            yield shlex.split(line, comments=True)[1:]


def parsed(command: click.Command, words: list[str]) -> dict[str, Any]:
    """The options and arguments of a command line. Raises click.UsageError, AssertionError."""
    context = click.Context(command)
    if isinstance(command, click.Group) and words and not words[0].startswith("-"):
        chosen = command.get_command(context, words[0])
        assert chosen is not None, f"no sub-command {words[0]}"
        return parsed(chosen, words[1:])
    options, left, _ = command.make_parser(context).parse_args(args=list(words))
    assert not left, f"too many arguments: {left}"
    for parameter in command.params:
        value = options.get(parameter.name or "")
        if parameter.required:
            assert isinstance(value, str | tuple), f"{parameter.name} is missing"
        if isinstance(parameter.type, click.Choice) and value is not None:
            parameter.type.convert(value, parameter, context)
    return options


def anchors(text: str) -> set[str]:
    """Of headings, as GitHub makes them."""
    seen: Counter[str] = Counter()
    made = set()
    for title in re.findall(r"^#+ (.+)$", _FENCE.sub("", text), re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        made.add(f"{plain}-{seen[plain]}" if seen[plain] else plain)
        seen[plain] += 1
    return made


def limits(condition: Condition) -> Iterator[str]:
    """Names of the thresholds that a tree of comparisons looks at."""
    if isinstance(condition, Compare):
        if isinstance(condition.limit, str):
            yield condition.limit
    elif isinstance(condition, OnGpus):
        yield from limits(condition.of_gpu)
    elif isinstance(condition, Recorded):
        yield from limits(condition.of)
    elif isinstance(condition, All | Either | Unless):
        for part in condition.parts:
            yield from limits(part)


def test_every_alert_has_a_page_and_every_page_an_alert() -> None:
    assert PAGES.keys() - SHARED - {"README"} == ALERTS.keys()


@pytest.mark.parametrize("alert", ALERTS.values(), ids=lambda alert: alert.name)
def test_a_page_begins_as_its_alert_says_and_has_all_sections_in_order(alert: Alert) -> None:
    text = PAGES[alert.name]
    assert text.startswith(head(alert) + "\n## Meaning\n\n")
    parts = re.split(r"^## (.+)$", _FENCE.sub("", text), flags=re.MULTILINE)
    assert tuple(parts[1::2]) == SECTIONS
    assert all(part.strip() for part in parts[2::2]), "a section is empty"


@pytest.mark.parametrize("alert", TREES, ids=lambda alert: alert.name)
def test_a_page_names_each_threshold_that_its_alert_compares_with(alert: Alert) -> None:
    assert not isinstance(alert.condition, Expression)
    missing = set(limits(alert.condition)) - {name for name, _ in _THRESHOLD.findall(PAGES[alert.name])}
    assert not missing


@pytest.mark.parametrize("name", PAGES)
def test_thresholds_are_those_that_are_shipped(name: str) -> None:
    for threshold, told in _THRESHOLD.findall(PAGES[name]):
        assert threshold in NAMES
        if told:
            assert float(told) == getattr(THRESHOLDS, threshold), threshold


def test_every_threshold_is_explained_where_an_alert_or_triage_looks_at_it() -> None:
    told = {name for text in PAGES.values() for name, _ in _THRESHOLD.findall(text)}
    assert told == {field.name for field in fields(THRESHOLDS)}


def test_the_bounds_of_thrashing_are_told_as_they_are() -> None:
    told = " ".join(PAGES["KvThrashing"].split())
    assert f"entered below {ENTER_GAIN_RATIO:g} of the tokens that a sequence holds" in told
    assert f"left after {LEAVE_AFTER_SECONDS:g} s above {LEAVE_GAIN_RATIO:g} " in told
    # how many tokens a preemption are few depends on the sequences: no page may tell a number of them
    number = re.compile(r"tokens_per_preemption\b[^#]{0,120}?([Bb]elow|[Aa]bove|under|over) \d")
    assert not [name for name, text in PAGES.items() if number.search(text)]


@pytest.mark.parametrize("name", PAGES)
def test_signals_and_their_labels_exist(name: str) -> None:
    unknown = set(_SIGNAL.findall(PAGES[name])) - SIGNALS.keys()
    unknown |= set(_RECORDED.findall(PAGES[name])) - {
        each.name for group in RECORDINGS.values() for each in group.recordings
    }
    assert not unknown
    for signal, selector in _SELECTOR.findall(PAGES[name]):
        labels = set(_MATCHER.findall(selector))
        assert labels <= set(SIGNALS[signal].label_names), f"{signal}{{{selector}}}"


def test_all_promql_is_promql(tmp_path: Path) -> None:
    expressions = [block for text in PAGES.values() for block in blocks(text, "promql")]
    assert len(expressions) > len(ALERTS)
    rules = [{"record": f"runbook:{number}", "expr": each} for number, each in enumerate(expressions)]
    file = tmp_path / "rules.yml"
    file.write_text(json.dumps({"groups": [{"name": "runbooks", "rules": rules}]}))
    checked = subprocess.run(
        [tool("promtool"), "check", "rules", "--lint=none", file],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("name", PAGES)
def test_our_own_commands_parse_and_scenarios_exist(name: str) -> None:
    for words in commands(PAGES[name]):
        options = parsed(main, words)
        if words[:2] == ["drill", "run"]:
            named = {str(options["scenario"]), *options.get("others", ())}
            assert named <= SCENARIOS.keys(), " ".join(words)


@pytest.mark.parametrize("name", ALERTS)
def test_flags_of_engines_are_those_that_actions_tells_of(name: str) -> None:
    named = {code.split()[0] for code in _CODE.findall(_FENCE.sub("", PAGES[name])) if code.startswith("--")}
    assert named - OURS <= set(re.findall(r"`(--[\w-]+)", PAGES["actions"]))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("drill walk overload", "no sub-command walk"),
        ("exporter --chekc", "No such option"),
        ("drill run", "scenario is missing"),
        ("drill run overload --size huge", "is not one of"),
        ("drill run overload kv-leak", "too many arguments"),
    ],
)
def test_a_command_that_does_not_exist_would_be_noticed(words: str, told: str) -> None:
    with pytest.raises((click.UsageError, AssertionError), match=told):
        parsed(main, words.split())


@pytest.mark.parametrize("name", PAGES)
def test_links_resolve(name: str) -> None:
    for link in _LINK.findall(_FENCE.sub("", PAGES[name])):
        target, _, anchor = link.partition("#")
        page = FOLDER / target if target else FOLDER / f"{name}.md"
        assert page.is_file(), link
        if anchor:
            assert anchor in anchors(page.read_text(encoding="utf-8")), link


def test_shared_pages_are_told_of_in_the_index() -> None:
    assert {f"{name}.md" for name in SHARED} <= set(_LINK.findall(PAGES["README"]))


def test_the_committed_index_is_fresh() -> None:
    assert PAGES["README"] == index(), "run `make docs`"


@pytest.mark.parametrize(
    ("summary", "words"),
    [
        ("{{ $labels.engine }} answers no more", "ENGINE answers no more"),
        ('{{ $labels.gateway }}: {{ $value | printf "%.1f" }} attempts', "GATEWAY: N attempts"),
        (
            '{{ if lt $value 1.0 }}none{{ else }}{{ $value | printf "%.2g" | humanize }}{{ end }} of it',
            "N of it",
        ),
        ("{{ $value | humanizePercentage }} of {{ $value | humanizeDuration }}", "N % of N s"),
    ],
)
def test_summaries_are_shown_without_templates(summary: str, words: str) -> None:
    assert shown(summary) == words


def test_no_template_is_left_in_the_index() -> None:
    assert "{{" not in index()


def test_where_a_page_is_by_default_and_where_a_setting_says() -> None:
    alert = ALERTS["KvThrashing"]
    assert runbook_url(alert) == "docs/runbooks/KvThrashing.md"
    assert (ROOT / runbook_url(alert)).is_file()
    for base in ("https://wiki.example/runbooks", "https://wiki.example/runbooks/"):
        assert runbook_url(alert, base) == "https://wiki.example/runbooks/KvThrashing.md"


@pytest.mark.parametrize("base", ["", "my wiki", "https://wiki.example/?page=", "https://wiki.example/#top"])
def test_a_base_that_nothing_can_be_put_behind_is_refused(base: str, tmp_path: Path) -> None:
    file = tmp_path / "pack.yaml"
    file.write_text(json.dumps({"runbooks": base}))
    told = CliRunner().invoke(alerts, ["explain", "KvThrashing", "--config", str(file)])
    assert told.exit_code == 2, told.output
    assert "runbooks" in told.output


def test_no_page_asks_for_the_increase_of_a_counter_that_begins_at_1() -> None:
    """The first XID of a number has no rise: its series isn't there before."""
    for name, text in PAGES.items():
        assert not re.search(r"(increase|rate)\(thrashold_gpu_xid_errors_total", text), name
