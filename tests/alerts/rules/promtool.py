"""Runs promtool's unit tests: one process for many files, each of which has its own verdict."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.prometheus import tool

_VERDICT = re.compile(r"^Unit Testing: +(\S+)$", re.MULTILINE)
OK = "SUCCESS"


def verdicts(files: Mapping[str, Mapping[str, Any]], folder: Path) -> dict[str, str]:
    """Writes the files, of rules and of tests, and gives of each file of tests what promtool says of it."""
    tests = []
    for name, content in files.items():
        path = folder / name
        # JSON is YAML, and quicker to write
        path.write_text(json.dumps(content), encoding="utf-8")
        if "tests" in content:
            tests.append(path)
    done = subprocess.run(
        [tool("promtool"), "test", "rules", *tests],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # what failed is said there, between the names of files that are said here
        text=True,
        timeout=240,
        check=False,
    )
    parts = _VERDICT.split(done.stdout)
    said = {Path(name).name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}
    return {path.name: said.get(path.name, done.stdout) for path in tests}
