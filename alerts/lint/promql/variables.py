"""Grafana's variables in a PromQL text, exchanged for something as long that can be parsed.

The text keeps its length, so that places in it stay what they are.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_VARIABLE = re.compile(r"\$\{[^}\n]*\}|\[\[[a-zA-Z_]\w*(?::\w+)?\]\]|\$[a-zA-Z_]\w*")
_STRING = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|`[^`]*`')
_RANGE_BEFORE = re.compile(r"(?:\[|\[[^\]]*:|\boffset\s+-?)\s*$", re.IGNORECASE)
_NUMBER_BEFORE = re.compile(
    r"(?:[-+*/%^<>]|[=!]=|\bbool|(?:topk|bottomk|quantile|limitk|limit_ratio|histogram_quantile)\s*"
    r"(?:(?:by|without)\s*\([^)]*\)\s*)?\()\s*$",
    re.IGNORECASE,
)
_AGGREGATES = re.compile(r"\s*(?:\(|(?:by|without)\b)", re.IGNORECASE)
_WORD = re.compile(r"[a-zA-Z0-9_:]")
_ANY_SECONDS, _ANY_NUMBER, _ANY_AGGREGATION = "1m", "1", "sum"


class Filled(NamedTuple):
    """``text`` without variables, and where they stood: (start, end)."""

    text: str
    variables: tuple[tuple[int, int], ...]

    def is_variable(self, at: int) -> bool:
        """Whether a variable stands there."""
        return any(start <= at < end for start, end in self.variables)


def filled(text: str) -> Filled:
    """``text`` with each variable exchanged for what may stand in its place."""
    strings = [found.span() for found in _STRING.finditer(text)]
    places: list[tuple[int, int]] = []
    made = text
    for found in _VARIABLE.finditer(text):
        start, end = found.span()
        quoted = any(first < start < last for first, last in strings)
        stand_in = "x" * (end - start) if quoted else _stand_in(made, start, end)
        made = made[:start] + stand_in + made[end:]
        places.append((start, end))
    return Filled(made, tuple(places))


def _stand_in(text: str, start: int, end: int) -> str:
    length, before, behind = end - start, text[:start], text[end:]
    if _RANGE_BEFORE.search(before):
        return _ANY_NUMBER.rjust(length, "0") if behind[:1].isalpha() else _ANY_SECONDS.ljust(length)
    if _WORD.match(behind) or _WORD.match(before[-1:]):
        return "v" * length
    if _AGGREGATES.match(behind) and length >= len(_ANY_AGGREGATION):
        return _ANY_AGGREGATION.ljust(length)
    if _NUMBER_BEFORE.search(before) and not behind.lstrip().startswith(("{", "[")):
        return _ANY_NUMBER.ljust(length)
    return "v" * length
