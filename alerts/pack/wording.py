"""How a pager says a number: two digits, and in words where the digits would say nothing.

Templates of Prometheus know no arithmetic: ``printf`` rounds to two digits, and what follows reads that as a number.
"""

from __future__ import annotations

from alerts.conditions import Rendering

AN_ENGINE, A_GATEWAY = "{{ $labels.engine }}", "{{ $labels.gateway }}"
"""Whom it is about."""
_ROUNDED = '$value | printf "%.2g"'
PERCENT = f"{{{{ {_ROUNDED} | humanizePercentage }}}}"
"""Of a ratio from 0 to 1: 27%, 5.3%."""
FINE_PERCENT = '{{ $value | printf "%.3g" | humanizePercentage }}'
"""The same about 1, where two digits would all be 100%: 103%, 98.7%."""
DURATION = f"{{{{ {_ROUNDED} | humanizeDuration }}}}"
"""Of seconds: 800ms, 45s, 2m 30s."""
NUMBER = f"{{{{ {_ROUNDED} | humanize }}}}"
"""How many times something is something else, from 1 on: 2.4, 12, 130."""


def named(query: str, title: str, each: str, rendering: Rendering) -> str:
    """Whom the labels don't name: ``each`` of a ``query`` that Prometheus answers when the alert fires.

    ``%s`` in the query stands for matchers of the alert's cluster. A label that isn't there is empty, and so is what
    it's matched with.
    """
    matchers = ",".join(f"{label}=%q" for label in rendering.cluster_labels)
    values = "".join(f" $labels.{label}" for label in rendering.cluster_labels)
    asked = f"query (printf `{query.replace('%s', matchers)}`{values})"
    return f"{{{{ with {asked} }}}}{title}{{{{ range . }}}} {each}{{{{ end }}}}.{{{{ end }}}}"


def either(condition: str, special: str, usual: str) -> str:
    """One wording where ``condition`` is true of the value, in the language of templates, another where it isn't."""
    return f"{{{{ if {condition} }}}}{special}{{{{ else }}}}{usual}{{{{ end }}}}"
