"""Writes docs/lint/README.md from the checks: ``python -m alerts.lint.reference docs/lint/README.md``."""

from __future__ import annotations

import sys
import typing
from collections.abc import Iterator
from pathlib import Path

from msgspec import Meta

from alerts.lint.catalogue import GROUPS
from alerts.lint.report import for_people
from alerts.lint.run import lint_text
from alerts.lint.settings import Allowance, LintSettings
from exporter.settings_schema import fields_of

_EXAMPLE = """\
groups:
- name: engines
  rules:
  - alert: HighPreemptions
    expr: |
      sum by (pod) (rate(vllm:num_preemptions[5m])) > 1
    labels: {severity: page}
    annotations: {summary: "{{ $labels.instance }} preempts"}
"""
_HEAD = """\
# The linter

Written by `make docs` from the checks (`alerts/lint/`); a test fails when it is stale.

`thrashold alerts lint` looks for faults in rules and boards about LLM serving: alerts that can never fire, panels that
are always empty, numbers that are something else than they say. It reads files and asks no Prometheus. It needs the
extra `lint` (`pip install 'thrashold[lint]'`); the sidecar doesn't.

```sh
thrashold alerts lint rules/ boards/         # your own: files, or folders to look through
thrashold alerts lint --config lint.yml rules/
thrashold alerts lint --json rules/          # for programs
thrashold alerts lint                        # the pack that is shipped
thrashold alerts lint --list                 # all checks
```

Of `rules.yml` with this in it

```yaml
{example}```

it says

```
{told}
```

Exit code 0: nothing was found. 1: something was. 2: something can't be read (which, where and why is said first; the
other files are checked all the same), there is no rule file and no board to look at, or the command can't be used so.

## What it reads

- Rule files of Prometheus, PrometheusRule resources, Lists of them, several documents in one file; rule files and
  boards in ConfigMaps. Templates of Helm have to be rendered first (`helm template`).
- Boards of Grafana in JSON: exported, wrapped by the API (`{{"dashboard": ...}}`), with rows of before Grafana 5,
  library panels, resources of Grafana 12. Panels in rows, variables and annotations are looked at; what asks Loki or
  another source isn't. Variables are taken for whatever may stand in their place.
- In a folder, YAML and JSON of other kinds are passed over, and counted in the last line. A file that is named itself
  has to be a rule file or a board.
- Alertmanager's configuration is not looked at (`amtool check-config`).

Line and column are those of the thing itself, within YAML's blocks and JSON's strings too. An expression that only
newer grammars can read is told of by [promql-release](promql-release.md) and not looked at further.

An **error** never works. A **warning** works until something else comes: a second cluster, a failed scrape, another
release.

## What is left alone

A comment in YAML, in a rule or right before it, with a reason:

```yaml
  # thrashold: allow rate-window: this exporter is scraped each second
  - alert: ShortWindow
```

`# thrashold: allow-file missing-runbook: runbooks are found by the alert's name` holds for the whole file; several
checks are written with commas. Without a reason it allows nothing, and is a problem itself. JSON has no comments; for
boards, and for whatever else, the settings have a list:

```yaml
# lint.yml
scrape_interval_seconds: 30
releases: {{vllm: "0.10.2", prometheus: "3.5"}}   # in quotes: 0.10 is not 0.1
allow:
  - check: counter-without-rate
    file: boards/capacity.json
    name: "* > Tokens since the start"           # of the alert, the recorded series or the panel's path
    reason: a total is what this panel is for
```

## The settings
"""


def readme() -> str:
    """The page."""
    told = "\n".join(for_people(lint_text("rules.yml", _EXAMPLE, LintSettings())))
    lines = [_HEAD.format(example=_EXAMPLE, told=told), "| key | |", "|---|---|"]
    lines += [f"| `{key}` | {meaning} |" for key, meaning in _keys(LintSettings)]
    lines += [f"| `allow[].{key}` | {meaning} |" for key, meaning in _keys(Allowance)]
    lines += [
        "",
        "Numbers and texts may be set in the environment too, as `THRASHOLD_LINT_SCRAPE_INTERVAL_SECONDS`.",
        "",
    ]
    lines.append("## The checks")
    for group, checks in GROUPS.items():
        lines += ["", f"### {group}", "", "| check | | what it finds |", "|---|---|---|"]
        lines += [f"| [{each.name}]({each.name}.md) | {each.severity} | {each.summary} |" for each in checks]
    return "\n".join(lines) + "\n"


def _keys(kind: type) -> Iterator[tuple[str, str]]:
    """Each key of a dataclass of settings, with what it means."""
    for name, annotation in fields_of(kind).items():
        said = (each.description for each in typing.get_args(annotation) if isinstance(each, Meta))
        yield name, next(text for text in said if text)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(readme(), encoding="utf-8")
