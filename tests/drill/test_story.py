"""Which lines the demo speaks of, and when."""

from __future__ import annotations

import pytest

from drill.story import LINES, new_events
from tests.drill.readings import reading


def test_each_line_speaks_once_and_in_80_columns() -> None:
    first = new_events((), 1.0, reading())
    assert [event.key for event in first] == [
        "demand",
        "memory",
        "swap",
        "preemptions",
        "tokens per preemption",
    ]
    assert new_events(first, 2.0, reading()) == ()
    after = new_events(first, 3.0, reading(usage=0.3, waiting=0))
    assert [(event.key, event.is_good) for event in after] == [("relieved", True)]
    assert [event.key for event in new_events(first + after, 4.0, reading())] == ["clients"]
    assert max(len(event.text) for event in first + after) <= 80 - len(" 0:13  ")


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"demand": 1.0}, "demand"),
        ({"usage": 0.90}, "memory"),
        ({"waiting": 0}, "memory"),
        ({"swapped": 0}, "swap"),
        ({"preemptions": 0}, "preemptions"),
    ],
)
def test_a_line_that_is_only_reached_is_not_crossed(changed: dict[str, float], key: str) -> None:
    assert key in {line.key for line in LINES}
    assert key not in {event.key for event in new_events((), 0.0, reading(**changed))}


def test_tokens_per_preemption_tell_thrash_from_a_full_pool() -> None:
    def said(each: float) -> str:
        events = new_events((), 0.0, reading(each=each))
        return next(event.text for event in events if event.key == "tokens per preemption")

    assert said(2) == "only 2 tokens per preemption: thrash"
    assert said(100) == "100 tokens per preemption: close to thrash (that is below 50)"
    assert said(800) == "800 tokens per preemption: full, but not thrashing (that is below 50)"
