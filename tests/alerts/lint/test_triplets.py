"""A check is a file, a test and a page of one name; what the page shows is what the check does."""

from __future__ import annotations

import re
import subprocess
import textwrap
from pathlib import Path

import pytest

from alerts.lint.catalogue import CHECKS
from alerts.lint.check import Check
from alerts.lint.reference import readme
from tests.alerts.lint.linting import alert, finds, rules
from tests.support.prometheus import tool

ROOT = Path(__file__).resolve().parents[3]
PAGES = ROOT / "docs" / "lint"
EVERY = pytest.mark.parametrize("check", CHECKS.values(), ids=list(CHECKS))
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_check_has_a_file_a_test_and_a_page_of_its_name_and_nothing_else_has() -> None:
    names = set(CHECKS)
    files = {path.stem.replace("_", "-") for path in (ROOT / "alerts" / "lint" / "checks").glob("*.py")}
    tests = {
        path.stem.removeprefix("test_").replace("_", "-")
        for path in Path(__file__).parent.glob("checks/test_*.py")
    }
    pages = {path.stem for path in PAGES.glob("*.md")}
    assert files - {"--init--"} == names
    assert tests == names
    assert pages - {"README"} == names


@EVERY
def test_a_page_begins_as_its_check_says_and_has_its_sections(check: Check) -> None:
    text = (PAGES / f"{check.name}.md").read_text(encoding="utf-8")
    assert text.startswith(
        f"# {check.name}\n\n{check.severity.value.capitalize()}. {check.summary}\n\n## Why\n\n"
    )
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Why", "Found", "Instead"]


def examples(check: Check, section: str) -> list[str]:
    """As files that can be linted."""
    text = (PAGES / f"{check.name}.md").read_text(encoding="utf-8")
    part = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    found = []
    for language, block in _FENCE.findall(part):
        if language == "promql":
            found.append(rules(alert(block.strip())))
        elif language == "yaml":
            found.append("groups:\n- name: g\n  rules:\n" + textwrap.indent(block, "  "))
        else:
            assert language == "json"
            found.append(block)
    assert found
    return found


@EVERY
def test_what_a_page_shows_as_wrong_is_found(check: Check) -> None:
    for text in examples(check, "Found"):
        assert finds(check.name, text), text


@EVERY
def test_what_a_page_shows_instead_is_right_to_this_check(check: Check) -> None:
    for text in examples(check, "Instead"):
        assert not finds(check.name, text), text


def test_promtool_takes_all_that_pages_show_instead(tmp_path: Path) -> None:
    promtool = tool("promtool")
    files = []
    for check in CHECKS.values():
        for text in examples(check, "Instead"):
            if not text.startswith("{"):
                file = tmp_path / f"{len(files)}.yml"
                file.write_text(text)
                files.append(file)
    checked = subprocess.run(
        [promtool, "check", "rules", *files], capture_output=True, text=True, check=False, timeout=60
    )
    assert checked.returncode == 0, checked.stderr


def test_the_committed_index_is_fresh() -> None:
    assert (PAGES / "README.md").read_text(encoding="utf-8") == readme(), "run `make docs`"
