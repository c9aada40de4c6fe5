"""What a probe says, made up."""

from __future__ import annotations

import json
from typing import Any

from exporter.probe_sample import GroupHeld, ProbeSample

Fields = dict[str, Any]


def probe(at: float, **fields: Any) -> ProbeSample:  # noqa: ANN401 -- any field of a sample
    """A sample of an engine ``e`` in which nothing has happened yet."""
    whole: Fields = {
        "at": at,
        "engine": "e",
        "rank": "0",
        "sender": "1-1",
        "age_seconds": 0.0,
        "steps_total": 0,
        "running": 0,
        "groups": (GroupHeld(16, 0, 0),),
        "longest_step_seconds": 0.0,
        "preemptions_total": 0,
        "repeats_total": 0,
        "repeat_tokens_total": 0,
        "aborts_total": 0,
        "unclear_aborts_total": 0,
        "busy_seconds_total": 0.0,
        "own_seconds_total": 0.0,
    }
    return ProbeSample(**{**whole, **fields})


def message(**fields: Any) -> bytes:  # noqa: ANN401 -- any field of a message
    """A message as it comes over the socket."""
    whole: Fields = {
        "version": 1,
        "sender": "1-1",
        "rank": "0",
        "age": 0.0,
        "steps": 0,
        "running": 0,
        "groups": [[16, 0, 0]],
        "longest_step": 0.0,
        "preemptions": 0,
        "repeats": 0,
        "repeat_tokens": 0,
        "aborts": 0,
        "unclear_aborts": 0,
        "busy_seconds": 0.0,
        "own_seconds": 0.0,
        "dropped": 0,
    }
    return json.dumps({**whole, **fields}).encode()
