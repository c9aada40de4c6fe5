"""JSON Schema of Grafana's own types, made from npm's ``@grafana/schema``; kept beside the packages in ``.boards``.

``python -m tests.dashboards.schema`` makes it, and holds the boards that are shipped against it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import jsonschema

from dashboards.lint.finding import panels_of
from tests.dashboards import browser_tools

KINDS = {
    "timeseries": "timeseries",
    "stat": "stat",
    "bargauge": "bargauge",
    "table": "table",
    "state-timeline": "statetimeline",
}
"""The panel types that are used, and the folders of their types."""
_ASKED = {"expr", "step", "tagKeys", "textFormat", "titleFormat"}
_MADE = browser_tools.HOME / "schema"
SHIPPED = browser_tools.ROOT / "deploy" / "grafana" / "dashboards"


def make() -> None:
    """A schema for the board, for each kind of panel, and for the queries. A minute or several."""
    _MADE.mkdir(parents=True, exist_ok=True)
    for name, text in _entries().items():
        out, entry = _MADE / f"{name}.json", _MADE / f"{name}.ts"
        if out.is_file() and entry.is_file() and entry.read_text() == text:
            continue
        entry.write_text(text)
        (_MADE / "tsconfig.json").write_text(_TSCONFIG)
        browser_tools.node(
            browser_tools.MODULES / "ts-json-schema-generator" / "bin" / "ts-json-schema-generator.js",
            "--path",
            entry,
            "--tsconfig",
            _MADE / "tsconfig.json",
            "--type",
            "Root",
            "--no-type-check",
            "--out",
            out,
        )


_TSCONFIG = json.dumps(
    {
        "compilerOptions": {
            "module": "esnext",
            "moduleResolution": "bundler",
            "strict": True,
            "skipLibCheck": True,
        }
    }
)


def _entries() -> dict[str, str]:
    types = browser_tools.MODULES / "@grafana" / "schema" / "dist" / "types"
    board = types / "raw/dashboard/x/types.gen"
    found = {
        "board": f"import * as raw from '{board}';\n"
        "export interface Root { dashboard: raw.Dashboard; panel: raw.Panel }\n"
    }
    for kind, folder in KINDS.items():
        path = types / f"raw/composable/{folder}/panelcfg/x/types.gen"
        own = (
            " custom: t.FieldConfig;" if "FieldConfig" in path.with_name("types.gen.d.ts").read_text() else ""
        )
        found[kind] = f"import * as t from '{path}';\nexport interface Root {{ options: t.Options;{own} }}\n"
    return found


def errors(board: dict[str, Any]) -> Iterator[str]:
    """What Grafana's types say against a board. Types call what has a default required: that alone is let pass."""
    schema = {name: json.loads((_MADE / f"{name}.json").read_text()) for name in ("board", *KINDS)}
    whole = {key: value for key, value in board.items() if key != "panels"}
    # what an annotation asks its data source for is that source's own, of which the types know nothing
    marks = [
        {key: value for key, value in each.items() if key not in _ASKED}
        for each in board["annotations"]["list"]
    ]
    whole["annotations"] = {"list": marks}
    yield from _said("board", schema["board"], "dashboard", whole)
    for panel in panels_of(board):
        title, kind = panel["title"], panel["type"]
        yield from _said(title, schema["board"], "panel", panel)
        yield from _said(title, schema[kind], "options", panel["options"])
        if "custom" in schema[kind]["definitions"]["Root"]["properties"]:
            yield from _said(
                title, schema[kind], "custom", panel["fieldConfig"]["defaults"].get("custom", {})
            )


def _said(where: str, schema: dict[str, Any], part: str, value: object) -> Iterator[str]:
    root = schema["definitions"]["Root"]["properties"][part]
    validator = jsonschema.Draft7Validator({"definitions": schema["definitions"], **root})
    for error in validator.iter_errors(value):
        if error.validator != "required":
            yield f"{where}: {part} {'/'.join(map(str, error.absolute_path))}: {error.message[:200]}"


def main() -> int:
    """Gives the exit code."""
    browser_tools.install()
    make()
    found = [
        f"{path.name}: {error}"
        for path in sorted(SHIPPED.glob("*.json"))
        for error in errors(json.loads(path.read_text()))
    ]
    sys.stdout.write("\n".join([*found, f"{len(found)} errors"]) + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
