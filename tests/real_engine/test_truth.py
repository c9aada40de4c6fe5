from __future__ import annotations

import json

import pytest

from tests.real_engine import truth
from tests.real_engine.truth import End, Preemption, Request, Step, Toggled

STEPS = [Step(10.0, 2, 30), Step(10.5, 2, 28), Step(11.0, 3, 60), Step(14.0, 1, 5)]


def line(kind: str, at: float, **what: object) -> str:
    return json.dumps({"t": at, "kind": kind, **what}) + "\n"


def request(first: float | None, last: float | None, tokens: int) -> Request:
    return Request("load", 0.0, 9.0, "done", tokens, first, last, 0.0)


def test_reads_the_oracle_and_leaves_out_the_line_that_a_kill_cut_off() -> None:
    seen = truth.read_oracle(
        [
            line("step", 1.0, running=2, waiting=1, tail_tokens=31),
            line("preempt", 1.1, id="a"),
            line("end", 1.2, id="a", aborted=True, preemptions=1, untold=1),
            '{"t": 1.3, "kind": "st',
        ]
    )
    assert seen == (
        [Step(1.0, 2, 31)],
        [Preemption(1.1, "a")],
        [End(1.2, "a", aborted=True, preemptions=1, untold=1)],
    )


def test_reads_a_client_that_never_saw_a_token() -> None:
    seen = Request("load", 1.0, 2.0, "error", 0, None, None, 0.0)
    assert truth.read_requests([json.dumps({**seen._asdict(), "error": "refused"})]) == [seen]


def test_tail_is_averaged_over_the_steps_of_the_time() -> None:
    assert truth.mean_tail(STEPS, 10.0, 10.5) == 29
    assert truth.tail_range(STEPS, 10.0, 11.0) == (28, 60)


def test_without_a_step_the_one_before_still_holds() -> None:
    assert truth.mean_tail(STEPS, 12.0, 13.0) == 60


def test_before_the_first_step_nothing_is_known() -> None:
    assert truth.mean_tail(STEPS, 1.0, 2.0) is None
    assert truth.tail_range([], 1.0, 2.0) is None


def test_repeat_share_of_finished_requests_leaves_out_aborts_and_other_times() -> None:
    ends = [
        End(1.0, "early", aborted=False, preemptions=9, untold=0),
        End(2.0, "a", aborted=False, preemptions=3, untold=0),
        End(3.0, "b", aborted=False, preemptions=1, untold=0),
        End(3.5, "never", aborted=False, preemptions=0, untold=0),
        End(4.0, "gone", aborted=True, preemptions=5, untold=2),
    ]
    assert truth.finished_repeat_share(ends, 1.0, 4.0) == (0.5, 4)
    assert truth.finished_repeat_share(ends, 3.0, 4.0) is None
    assert truth.aborts(ends) == 1
    assert truth.untold_preemptions(ends) == 2


def test_repeat_share_counts_a_sequence_once_in_the_window() -> None:
    hits = [Preemption(1.0, "a"), Preemption(2.0, "a"), Preemption(3.0, "b"), Preemption(4.0, "a")]
    assert truth.repeat_share(hits, 0.0, 4.0) == 0.5
    assert truth.repeat_share(hits, 2.0, 4.0) == 0.0
    assert truth.repeat_share(hits, 4.0, 5.0) is None


def test_a_repeat_comes_within_so_many_seconds_of_the_same_sequence_s_last() -> None:
    hits = [Preemption(1.0, "a"), Preemption(5.0, "b"), Preemption(31.0, "a"), Preemption(61.5, "a")]
    assert truth.repeats(hits, 30.0) == [hits[2]]
    assert truth.repeats(hits, 30.5) == [hits[2], hits[3]]


def test_reads_what_switched_the_probe_and_leaves_out_a_line_that_was_cut_off() -> None:
    lines = ["[true, 1.5, 0.001]\n", "[false, 2.0, 0.0]\n", "[true, 3"]
    assert truth.read_toggled(lines) == [Toggled(True, 1.5, 0.001), Toggled(False, 2.0, 0.0)]


def test_mean_gap_weighs_each_gap_alike() -> None:
    seen = [request(1.0, 2.0, 11), request(1.0, 5.0, 11), request(3.0, 3.0, 1), request(None, None, 0)]
    assert truth.mean_gap(seen, 0.0, 9.0) == pytest.approx(5 / 20)
    assert truth.mean_gap([], 0.0, 9.0) is None


def test_mean_gap_of_a_time_takes_the_share_of_a_request_that_lies_in_it() -> None:
    seen = [request(1.0, 2.0, 11), request(0.0, 8.0, 9)]
    assert truth.mean_gap(seen, 1.0, 3.0) == pytest.approx((1 + 2) / (10 + 2))
    assert truth.mean_gap(seen, 8.5, 9.0) is None
