from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.probe import thrashold_probe
from exporter.probe_message import MessageError, read_message
from exporter.probe_sample import GroupHeld
from tests.exporter.probe.schedulers import Request, scheduler_class
from tests.support.probes import message, probe


def test_a_message_becomes_a_sample() -> None:
    data = message(
        sender="9-9",
        rank="3",
        age=0.5,
        steps=7,
        running=2,
        groups=[[16, 4, 15], [64, None, 3]],
        longest_step=0.25,
        preemptions=5,
        repeats=4,
        repeat_tokens=3,
        aborts=2,
        unclear_aborts=1,
        busy_seconds=10.5,
        own_seconds=0.125,
    )
    assert read_message(data, "e", 100.0) == probe(
        100.0,
        sender="9-9",
        rank="3",
        age_seconds=0.5,
        steps_total=7,
        running=2,
        groups=(GroupHeld(16, 4, 15), GroupHeld(64, None, 3)),
        longest_step_seconds=0.25,
        preemptions_total=5,
        repeats_total=4,
        repeat_tokens_total=3,
        aborts_total=2,
        unclear_aborts_total=1,
        busy_seconds_total=10.5,
        own_seconds_total=0.125,
    )


def test_what_the_probe_sends_is_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thrashold_probe.Probe, "_tell", lambda *_: None)
    made = scheduler_class()
    thrashold_probe.install(made, "/nonexistent/probe.sock")
    scheduler = made(rank=2)
    scheduler.admit(Request("a", num_computed_tokens=10))
    scheduler.schedule()
    sent = scheduler._thrashold.message(scheduler, "1-2", 0)  # noqa: SLF001
    sample = read_message(json.dumps(sent).encode(), "e", 100.0)
    assert (sample.rank, sample.sender, sample.steps_total) == ("2", "1-2", 1)
    assert (sample.tail_tokens, sample.blocks) == (6.0, 1.0)


def test_a_part_that_is_not_told_is_unknown() -> None:
    sample = read_message(message(groups=None, preemptions=None, repeats=None, aborts=None), "e", 1.0)
    assert (sample.groups, sample.tail_tokens, sample.blocks) == ((), None, None)
    assert (sample.preemptions_total, sample.repeats_total, sample.aborts_total) == (None, None, None)


def test_a_sum_over_groups_is_known_only_where_each_is() -> None:
    sample = probe(1.0, groups=(GroupHeld(16, 1, 5), GroupHeld(64, None, 7), GroupHeld(1, None, None)))
    assert (sample.tail_tokens, sample.blocks) == (None, None)
    assert probe(1.0, groups=(GroupHeld(16, 1, 5), GroupHeld(64, None, 7))).tail_tokens == 12


def test_what_is_told_exactly_is_said_in_words() -> None:
    assert probe(1.0).told == ("tails", "preemptions", "aborts")
    assert probe(1.0, groups=(), preemptions_total=None, unclear_aborts_total=1).told == ()


def test_a_field_of_a_later_probe_is_left_alone() -> None:
    assert read_message(message(more={"x": 1}), "e", 1.0) == probe(1.0)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "what comes is no message of a probe ("),
        (b"GET / HTTP/1.1\r\n", "what comes is no message of a probe ("),
        (b"\xff\xfe", "what comes is no message of a probe ("),
        (b"[]", "what comes is no message of a probe ("),
        (b"{}", "what comes is no message of a probe (Object missing required field `version`"),
        (
            message(version=2),
            "the probe speaks version 2 and this sidecar version 1; install the probe anew",
        ),
        (message(steps=-1), "what comes is no message of a probe (Expected `int` >= 0 - at `$.steps`"),
        (message(steps="7"), "what comes is no message of a probe (Expected `int`, got `str` - at `$.steps`"),
        (message(age=-0.5), "what comes is no message of a probe (Expected `float` >= 0.0 - at `$.age`"),
        (message(groups=[[0, 1, 1]]), "what comes is no message of a probe (Expected `int` >= 1"),
        (message(groups=[[16, 1]]), "what comes is no message of a probe (Expected `array` of length 3"),
        (message(rank=""), "what comes is no message of a probe (Expected `str` of length >= 1"),
        (message(groups=[[16, 1, 1]] * 65), "what comes is no message of a probe (Expected `array` of length <= 64"),
    ],
)  # fmt: skip
def test_what_is_no_message_is_one_clear_line(data: bytes, problem: str) -> None:
    with pytest.raises(MessageError) as caught:
        read_message(data, "e", 1.0)
    assert str(caught.value).startswith(problem)
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=200) | st.integers(1, 300).map(lambda size: message()[:size]))
def test_nothing_but_that_error_comes_of_wild_bytes(data: bytes) -> None:
    with contextlib.suppress(MessageError):
        read_message(data, "e", 1.0)


def test_another_sender_is_another_life() -> None:
    before = probe(1.0)
    assert probe(2.0, sender="2-2").restarted_since(before) is True
    assert probe(2.0).restarted_since(before) is False
