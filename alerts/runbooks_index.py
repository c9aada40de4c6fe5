"""Writes ``docs/runbooks/README.md`` from the catalogue, for ``make docs``."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from alerts.alert import Alert
from alerts.catalogue import GROUPS

_HEAD = """\
# Runbooks

Made by `make docs` from the catalogue of alerts (`alerts/catalogue.py`); don't edit it. The pages that it lists are
written by hand.

Woken up and new to this? Open the alert's page below and go from top to bottom. Pages use four names; set them once:

```sh
export PROM=http://prometheus:9090      # your Prometheus
export SIDECAR=http://127.0.0.1:9807    # thrashold exporter, on the engine's machine
export ENVOY=http://127.0.0.1:9901      # the gateway's admin port, on the gateway's machine
export ENGINE=http://127.0.0.1:8000     # the engine itself
```

PromQL goes into Prometheus's own page, or into `promtool query instant "$PROM" 'EXPRESSION'`. Put the alert's label in
place of `worker-7` (an engine), `envoy` (a gateway) and `GPU-1` (a GPU's UUID). Where several clusters share a
Prometheus, add `cluster="..."` as well. No answer is no zero: a signal that isn't there is unknown
([signals.md](../signals.md)). What is in capitals (`POD`, `CLUSTER`) is yours to fill in.

Shared pages: [triage.md](triage.md), four questions for any incident; [actions.md](actions.md), how to clamp a gateway,
drain and restart an engine, find whose prompts they are, keep evidence, and what each engine flag does in which
release; [slo-burn.md](slo-burn.md), all burn rates.

`thrashold alerts explain KvThrashing` prints what an alert compares. "Try it" plays a failure in the drill
(`thrashold drill list`): a run writes `metrics.om`, which a Prometheus of your own can take in with
`promtool tsdb create-blocks-from openmetrics metrics.om DATA`.

Notifications link here: `runbooks: https://...` in the settings of `thrashold alerts` says where the pages are served.

Numbers that alerts compare with are in `alerts/thresholds.py`, each with its reason.
"""
_EITHER = re.compile(r"\{\{ if [^}]+\}\}.*?\{\{ else \}\}(.*?)\{\{ end \}\}")
_TEMPLATE = re.compile(r"\{\{\s*\$(?:labels\.(\w+)|value\s*\|(?:[^}|]*\|)*\s*(\w+)[^}|]*)\s*\}\}")
_SHOWN_AS = {"humanizePercentage": "N %", "humanizeDuration": "N s", "humanize": "N", "printf": "N"}


def index(groups: Mapping[str, tuple[Alert, ...]] = GROUPS) -> str:
    """The page."""
    lines = [_HEAD]
    for group, alerts in groups.items():
        lines.append(
            f"## {group.capitalize()}\n\n| alert | severity | what it says | cause |\n|---|---|---|---|"
        )
        lines += [_row(alert) for alert in alerts]
        lines.append("")
    return "\n".join(lines)


def shown(summary: str) -> str:
    """A summary with its templates in words: labels in capitals, values as N. Raises KeyError: a new function.

    Of two wordings it is the usual one, behind ``else``.
    """
    usual = _EITHER.sub(r"\1", summary)
    return _TEMPLATE.sub(lambda found: found[1].upper() if found[1] else _SHOWN_AS[found[2]], usual)


def _row(alert: Alert) -> str:
    page = f"[{alert.name}]({alert.name}.md)"
    return f"| {page} | {alert.severity} | {shown(alert.summary)} | `{alert.cause}`: {alert.cause.sentence} |"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(index(), encoding="utf-8")
