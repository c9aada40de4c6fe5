"""A ratio that a text shows as per cent without multiplying it: 0.93 is told as 1 %."""

from __future__ import annotations

import re
from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found, within
from alerts.lint.problem import Severity
from alerts.lint.promql.shape import share, told
from alerts.lint.reading.query import Query

_SHOWN = re.compile(r"\{\{-?(?P<inside>[^{}]*\$value[^{}]*)-?\}\}(?P<behind>\s*%)?")
_FORMAT_WITH_PERCENT = re.compile(r"%[-+ 0-9.]*[a-z]\s*%%")
_MULTIPLIED = re.compile(r"humanizePercentage|\bmul\b|\bmulf\b|100")


def _find(query: Query, _context: Context) -> Iterator[Found]:
    if query.alert is None:
        return
    found = share(told(query.tree))
    if found is None or found.factor != 1:
        return
    for value in (*query.alert.annotations.values(), *query.alert.labels.values()):
        if not isinstance(value.value, str):
            continue
        for shown in _SHOWN.finditer(value.value):
            inside = shown["inside"]
            as_percent = shown["behind"] is not None or _FORMAT_WITH_PERCENT.search(inside)
            if as_percent and not _MULTIPLIED.search(inside):
                yield Found(
                    within(query, value, shown.start()),
                    "the value goes from 0 to 1 and is told as per cent: 0.93 reads as 0.93 % or 1 %",
                    "write {{ $value | humanizePercentage }}, which puts the sign behind it too",
                )


CHECK = Check(
    "percent-of-ratio", Severity.ERROR, "A text that tells a ratio as per cent without multiplying it.", _find
)
