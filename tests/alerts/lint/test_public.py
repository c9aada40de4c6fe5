"""The faults of public packs and boards: each is found where it stands, and nothing else is."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from alerts.lint.run import lint
from alerts.lint.settings import LintSettings
from tests.alerts.lint.linting import linted

FOLDER = Path(__file__).parent / "public"
_MARK = re.compile(r"#! ([a-z -]+)$")


def test_rule_packs() -> None:
    file = FOLDER / "rules.yml"
    wanted: Counter[tuple[int, str]] = Counter()
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        mark = _MARK.search(line)
        wanted.update((number, check) for check in (mark[1].split() if mark else ()))
    report = lint([file], LintSettings())
    assert not report.troubles
    assert Counter((problem.place.line, problem.check) for problem in report.problems) == wanted


@pytest.mark.parametrize("name", ["board.json", "old_board.json"])
def test_boards(name: str) -> None:
    """A panel's title names what has to be found in it; a variable's fault is told of the variable."""
    report = lint([FOLDER / name], LintSettings())
    assert not report.troubles
    in_panels = [problem for problem in report.problems if " > variable " not in problem.where]
    found: dict[str, list[str]] = {}
    for problem in in_panels:
        found.setdefault(problem.where.rpartition(" > ")[2], []).append(problem.check)
    assert all(title.split() == checks for title, checks in found.items()), found
    titles = set(re.findall(r'"title": "([a-z]+-[a-z -]+)"', (FOLDER / name).read_text(encoding="utf-8")))
    assert set(found) == titles
    variables = [(problem.where, problem.check) for problem in report.problems if problem not in in_panels]
    assert variables == ([("Engines > variable instance", "dead-metric")] if name == "board.json" else [])


def test_a_place_is_that_of_the_thing_itself() -> None:
    report = lint([FOLDER], LintSettings())
    names = {"dead-metric", "unknown-metric", "counter-without-rate", "peak-for"}
    for problem in report.problems:
        if problem.check in names:
            name = problem.what.split()[0].rstrip(":")
            name = name if ":" in name or "_" in name else problem.what.split()[-1]
            assert problem.line[problem.place.column - 1 :].startswith(name), problem


def test_a_board_that_is_wrapped_and_one_that_is_not_say_the_same() -> None:
    plain = json.loads((FOLDER / "board.json").read_text(encoding="utf-8"))["dashboard"]
    library = {"result": {"kind": 1, "model": plain["panels"][1]}}
    elements = {
        "apiVersion": "dashboard.grafana.app/v2",
        "spec": {
            "title": "Engines",
            "elements": {
                "panel-1": {
                    "kind": "Panel",
                    "spec": {
                        "title": "Rate",
                        "data": {
                            "spec": {
                                "queries": [
                                    {"spec": {"query": {"spec": {"expr": "rate(vllm:num_preemptions[5m])"}}}}
                                ]
                            }
                        },
                    },
                }
            },
        },
    }
    wrapped = [(each.where, each.check) for each in lint([FOLDER / "board.json"], LintSettings()).problems]
    assert [(each.where, each.check) for each in linted(json.dumps(plain)).problems] == wrapped
    assert [each.check for each in linted(json.dumps(library)).problems] == ["lifetime-average"]
    assert [(each.where, each.check) for each in linted(json.dumps(elements)).problems] == [
        ("Engines > Rate", "dead-metric")
    ]
    assert [each.check for each in linted(json.dumps([plain, plain])).problems] == 2 * [
        check for _, check in wrapped
    ]
