"""Aborts as vLLM counts them: not at all, where a client leaves."""

from __future__ import annotations

import re
from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found, at, readings
from alerts.lint.facts.lookup import known
from alerts.lint.facts.vllm import VLLM
from alerts.lint.problem import Severity
from alerts.lint.reading.query import Query

_REASON, _ABORT = "finished_reason", "abort"


def _find(query: Query, _context: Context) -> Iterator[Found]:
    for selector, _ in readings(query):
        found = known(selector.name)
        if found is None or found.exporter is not VLLM or found.metric.name != "request_success_total":
            continue
        for matcher in selector.matchers:
            if matcher.label == _REASON and _picks_aborts(matcher.operator, matcher.value):
                yield Found(
                    at(query, selector),
                    'vLLM counts no client that leaves under finished_reason="abort" (vllm-project/vllm#31503): this'
                    " stays where it is while all of them leave",
                    "take thrashold_client_aborts_total, or what the gateway counts",
                )


def _picks_aborts(operator: str, value: str) -> bool:
    if operator == "=":
        return value == _ABORT
    try:
        return (
            operator == "=~"
            and re.fullmatch(value, _ABORT) is not None
            and re.fullmatch(value, "stop") is None
        )
    except re.error:
        return False


CHECK = Check(
    "abort-reason", Severity.ERROR, 'Aborts by finished_reason="abort", which vLLM never counts.', _find
)
