"""Which lines the demo speaks of, and when."""

from __future__ import annotations

import pytest

from drill.sidecar import Reading
from drill.story import LINES, new_events
from tests.drill.readings import reading, without


def test_each_line_speaks_once_and_in_80_columns() -> None:
    first = new_events((), 1.0, reading())
    assert [event.key for event in first] == [
        "demand",
        "memory",
        "swap",
        "preemptions",
        "full",
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


def test_whether_it_thrashes_is_the_sidecars_word() -> None:
    def said(shown: Reading) -> list[str]:
        return [event.text for event in new_events((), 0.0, shown) if event.key in {"thrashing", "full"}]

    assert said(reading(each=2, thrashing=1)) == ["thrashing: 2 tokens for each preemption"]
    assert said(reading(each=2)) == ["2 tokens per preemption: full, but not thrashing"]
    assert said(without(reading(thrashing=1), "tokens_per_preemption")) == ["thrashing"]
    assert said(without(reading(), "thrashing")) == [], "absent is not known yet"


def test_thrash_that_comes_later_is_told_too() -> None:
    before = new_events((), 1.0, reading())
    assert [event.key for event in new_events(before, 2.0, reading(thrashing=1))] == ["thrashing"]


def test_usage_that_is_high_already_is_not_still_low() -> None:
    def said(usage: float) -> str:
        return new_events((), 0.0, reading(usage=usage, demand=1.9))[0].text

    assert said(0.25) == "asked for 1.9 x the KV pool, with usage still at 25%"
    assert said(0.97) == "asked for 1.9 x the KV pool, with usage at 97%"
