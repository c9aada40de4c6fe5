"""``le="1"``, which Prometheus 3 stores as ``le="1.0"``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found, at, readings
from alerts.lint.problem import Severity
from alerts.lint.reading.query import Query

_NORMALISED = frozenset({"le", "quantile"})
_WHOLE = re.compile(r"\d+(?:\|\d+)*")


def _find(query: Query, _context: Context) -> Iterator[Found]:
    for selector, _ in readings(query):
        for matcher in selector.matchers:
            if matcher.label not in _NORMALISED or matcher.operator.startswith("!"):
                continue
            if _WHOLE.fullmatch(matcher.value):
                either = "|".join(f"{each}([.]0)?" for each in matcher.value.split("|"))
                yield Found(
                    at(query, selector),
                    f'{matcher.label}{matcher.operator}"{matcher.value}" finds nothing on Prometheus 3, which stores'
                    " whole bounds with .0, as Python's client does",
                    f'{matcher.label}=~"{either}"',
                )


CHECK = Check(
    "le-equality", Severity.WARNING, 'A bucket picked by le="1", which Prometheus 3 calls 1.0.', _find
)
