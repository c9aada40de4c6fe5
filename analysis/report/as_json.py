"""A report for programs."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from analysis.report.report import CauseFound, Report

FORMAT = 1
"""Of what is written; a reader of another one has to look twice."""


def as_json(report: Report) -> str:
    """One object. ``causes``: of all incidents, ranked. Times are seconds since the epoch, null is not known."""
    told = {"format": FORMAT, **_built(report)}
    told["causes"] = [_cause(each) for episode in report.episodes for each in episode.causes]
    return json.dumps(_finite(told), indent=1, ensure_ascii=False, allow_nan=False)


def _cause(cause: CauseFound) -> dict[str, Any]:
    return _built(cause)


def _built(value: object) -> dict[str, Any]:
    made: dict[str, Any] = msgspec.to_builtins(value)
    return made


def _finite(value: Any) -> Any:  # noqa: ANN401 -- JSON
    """JSON has no infinity: above a top bucket, and beside a spread of nothing, there is no number."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):  # noqa: PLR0124 -- NaN
        return None
    return value
