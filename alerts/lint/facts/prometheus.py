"""Which Prometheus knows what of PromQL and of rule files.

Tried with promtool 2.42, which refuses all of it, and read in Prometheus's changelog up to 3.14.
"""

from __future__ import annotations

from dataclasses import dataclass

from alerts.lint.facts.metric import Release

_EXPERIMENTAL = "promql-experimental-functions"


@dataclass(frozen=True, slots=True)
class Since:
    """A release, and the feature that has to be enabled for it."""

    release: Release
    feature: str = ""


@dataclass(frozen=True, slots=True)
class Syntax:
    """Something that a regular expression finds in an expression without what stands in its quotes."""

    pattern: str
    title: str
    since: Since


FUNCTIONS = {
    "mad_over_time": Since((2, 49), _EXPERIMENTAL),
    "sort_by_label": Since((2, 49), _EXPERIMENTAL),
    "sort_by_label_desc": Since((2, 49), _EXPERIMENTAL),
    "histogram_avg": Since((2, 51)),
    "histogram_stddev": Since((2, 48)),
    "histogram_stdvar": Since((2, 48)),
    "limitk": Since((2, 54), _EXPERIMENTAL),
    "limit_ratio": Since((2, 54), _EXPERIMENTAL),
    "info": Since((2, 55), _EXPERIMENTAL),
    "double_exponential_smoothing": Since((3, 0), _EXPERIMENTAL),
    "ts_of_max_over_time": Since((3, 5), _EXPERIMENTAL),
    "ts_of_min_over_time": Since((3, 5), _EXPERIMENTAL),
    "ts_of_last_over_time": Since((3, 5), _EXPERIMENTAL),
    "first_over_time": Since((3, 7), _EXPERIMENTAL),
    "ts_of_first_over_time": Since((3, 7), _EXPERIMENTAL),
}
REMOVED = {
    "holt_winters": (
        "3.0",
        "3 calls it double_exponential_smoothing, behind a flag; avg_over_time() and deriv() are in both",
    ),
}
SYNTAX = (
    Syntax(r"\]\s*(?:offset\s+\S+\s*)?\b(?:anchored|smoothed)\b", "anchored or smoothed", Since((3, 7))),
    Syntax(r"\[[^\]$:]*\d[a-z]*\s*[-+*/]\s*\d[^\]]*\]", "arithmetic in a range", Since((3, 4))),
    Syntax(
        r"[-+*/%^]\s*(?:(?:on|ignoring)\s*\([^)]*\)\s*)?fill(?:_left|_right)?\s*\(", "fill()", Since((3, 10))
    ),
    Syntax(r"\{\s*\"[^\"]*\"\s*[,}=!]", "a name in quotes", Since((3, 0))),
)
GROUP_KEYS = {"query_offset": Since((2, 53)), "labels": Since((3,))}
