"""What the probe counts of a scheduler, and that the scheduler doesn't notice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.probe import thrashold_probe
from exporter.probe.thrashold_probe import MANY_VICTIMS, install
from tests.exporter.probe.schedulers import (
    ABORTED,
    STOPPED,
    FullAttentionManager,
    MambaManager,
    Request,
    SlidingWindowManager,
    scheduler_class,
)

NOWHERE = "/nonexistent/probe.sock"


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent here: what would be is asked for."""
    monkeypatch.setattr(thrashold_probe.Probe, "_tell", lambda *_: None)


def watched(*managers: Any, **how: object) -> Any:  # noqa: ANN401 - a made-up scheduler
    made = scheduler_class()
    install(made, NOWHERE)
    return made(*managers, **how)


def told(scheduler: Any) -> dict[str, Any]:  # noqa: ANN401
    message: dict[str, Any] = scheduler._thrashold.message(scheduler, "1-1", 0)  # noqa: SLF001
    return message


def looks(scheduler: Any) -> dict[str, Any]:  # noqa: ANN401
    """The message after a step that was asked to look."""
    scheduler._thrashold._is_due = True  # noqa: SLF001
    scheduler.schedule()
    return told(scheduler)


def test_the_scheduler_is_asked_and_answers_as_ever() -> None:
    scheduler = watched()
    assert scheduler.schedule() == ("scheduled", False)
    assert scheduler.schedule(True) == ("scheduled", True)
    assert scheduler.schedule(throttle_prefills=True) == ("scheduled", True)
    assert scheduler.finish_requests("nobody", ABORTED) == []
    assert type(scheduler).schedule.__name__ == "schedule"


def test_an_error_of_the_scheduler_s_own_passes_through_and_changes_nothing() -> None:
    scheduler = watched()
    with pytest.raises(TypeError, match="unexpected keyword"):
        scheduler.schedule(no_such=1)
    with pytest.raises(ValueError, match="not in list"):
        scheduler._preempt_request(Request("a"), 0.0)  # noqa: SLF001
    assert told(scheduler)["preemptions"] == 0
    assert looks(scheduler)["steps"] == 1


def test_tails_are_the_slots_that_no_token_fills() -> None:
    scheduler = watched(FullAttentionManager(16))
    scheduler.admit(Request("a", num_computed_tokens=17), Request("b", num_computed_tokens=32), blocks=2)
    said = looks(scheduler)
    assert (said["running"], said["groups"]) == (2, ((16, 4, 15),))


def test_each_group_has_its_own_tails() -> None:
    scheduler = watched(FullAttentionManager(16), SlidingWindowManager(64), MambaManager(1))
    scheduler.admit(Request("a", num_computed_tokens=17), blocks=2)
    # a sliding window gives blocks back behind it, and a state space holds states, no tokens
    assert looks(scheduler)["groups"] == ((16, 2, 15), (64, None, 111), (1, None, None))


def test_a_request_without_blocks_holds_nothing() -> None:
    scheduler = watched()
    scheduler.admit(Request("a"), blocks=0)
    said = looks(scheduler)
    assert (said["running"], said["groups"]) == (1, ((16, 0, 0),))
    assert "b" not in scheduler.kv_cache_manager.coordinator.single_type_managers[0].req_to_blocks


requests = st.lists(st.tuples(st.integers(1, 400), st.integers(0, 3)), max_size=30)


@given(requests, st.sampled_from([1, 16, 32]))
def test_tails_are_what_a_second_count_says(held: list[tuple[int, int]], size: int) -> None:
    scheduler = watched(FullAttentionManager(size))
    for number, (tokens, spare) in enumerate(held):
        blocks = -(-tokens // size) + spare
        scheduler.admit(Request(str(number), num_computed_tokens=tokens), blocks=blocks)
    slots = sum((-(-tokens // size) + spare) * size for tokens, spare in held)
    assert looks(scheduler)["groups"] == ((size, slots // size, slots - sum(tokens for tokens, _ in held)),)


def test_what_is_held_is_added_up_only_when_asked_and_stays_with_its_step() -> None:
    scheduler = watched()
    scheduler.admit(Request("a", num_computed_tokens=10))
    assert looks(scheduler)["groups"] == ((16, 1, 6),)
    scheduler.running[0].num_computed_tokens = 12
    scheduler.schedule()
    said = told(scheduler)
    assert (said["steps"], said["groups"]) == (1, ((16, 1, 6),))
    assert said["age"] > 0


def test_once_nothing_runs_nothing_is_held_without_another_step() -> None:
    scheduler = watched()
    scheduler.admit(Request("a", num_computed_tokens=10))
    looks(scheduler)
    scheduler.schedule()
    scheduler.finish_requests(["a"], STOPPED)
    said = told(scheduler)
    assert (said["steps"], said["running"], said["groups"], said["age"]) == (2, 0, ((16, 0, 0),), 0.0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    yield now
    monkeypatch.undo()


def preempt(scheduler: Any, request: Request) -> None:  # noqa: ANN401
    scheduler._preempt_request(request, timestamp=0.0)  # noqa: SLF001
    scheduler.running.append(request)


def test_a_preemption_within_30_s_of_the_last_is_a_repeat_with_the_tokens_made_between(
    clock: list[float],
) -> None:
    scheduler, victim, other = watched(), Request("a", num_output_tokens=3), Request("b")
    scheduler.admit(victim, other)
    for at, tokens in ((0.0, 3), (10.0, 5), (40.0, 6), (70.5, 90), (71.0, 91)):
        clock[0] = 1000.0 + at
        victim.num_output_tokens = tokens
        preempt(scheduler, victim)
    preempt(scheduler, other)
    said = told(scheduler)
    assert (said["preemptions"], said["repeats"], said["repeat_tokens"]) == (6, 3, 2 + 1 + 1)


def test_another_request_under_the_name_of_an_earlier_one_is_another_sequence(clock: list[float]) -> None:
    """A client that asks again may bear the same name, which some releases and settings of vLLM leave as it is."""
    scheduler = watched()
    for hits in (2, 1, 3):
        request = Request("chatcmpl-1")
        scheduler.admit(request)
        for number in range(1, hits + 1):
            clock[0] += 1.0
            request.num_preemptions = number  # type: ignore[attr-defined]
            request.num_output_tokens += 10
            preempt(scheduler, request)
        scheduler.finish_requests(["chatcmpl-1"], STOPPED)
    said = told(scheduler)
    assert (said["preemptions"], said["repeats"], said["repeat_tokens"]) == (6, 3, 30)


def test_victims_of_long_ago_are_forgotten(clock: list[float]) -> None:
    scheduler = watched()
    for number in range(MANY_VICTIMS + 1):
        request = Request(str(number))
        scheduler.admit(request)
        preempt(scheduler, request)
    clock[0] += 31.0
    looks(scheduler)
    assert scheduler._thrashold._hits == {}  # noqa: SLF001


def test_a_request_ended_from_outside_is_an_abort() -> None:
    scheduler = watched()
    scheduler.admit(*(Request(name) for name in "abcdefg"))
    scheduler.finish_requests("a", ABORTED)
    scheduler.finish_requests(["b", "b", "gone"], ABORTED)
    scheduler.finish_requests(request_ids={"c"}, finished_status=ABORTED)
    scheduler.finish_requests(["d"], STOPPED)
    assert told(scheduler)["aborts"] == 3
    scheduler.finish_requests(dict.fromkeys("e").keys(), ABORTED)
    assert told(scheduler)["aborts"] == 4
    scheduler.finish_requests(None, ABORTED)
    said = told(scheduler)
    assert (said["aborts"], said["unclear_aborts"]) == (6, 0)


def test_one_that_may_have_come_to_its_stop_string_is_none_for_sure() -> None:
    scheduler = watched()
    scheduler.admit(Request("a", stop=("###",)), Request("b"))
    scheduler.finish_requests(["a", "b"], ABORTED)
    said = told(scheduler)
    assert (said["aborts"], said["unclear_aborts"]) == (1, 1)


def test_a_session_is_ended_from_outside_when_all_goes_well() -> None:
    """vLLM's own way to end one whose client sends its prompt bit by bit, as audio comes: it is no abort for sure."""
    scheduler = watched()
    scheduler.admit(Request("a", streaming_queue=[]), Request("b"))
    scheduler.finish_requests(["a", "b"], ABORTED)
    said = told(scheduler)
    assert (said["aborts"], said["unclear_aborts"]) == (1, 1)


def test_a_request_that_the_scheduler_doesn_t_end_is_no_abort() -> None:
    made = scheduler_class()
    made.finish_requests = lambda self, request_ids, finished_status: []  # noqa: ARG005
    install(made, NOWHERE)
    scheduler = made()
    scheduler.admit(Request("a"))
    scheduler.finish_requests(["a"], ABORTED)
    assert told(scheduler)["aborts"] == 0


def test_the_time_between_steps_counts_while_something_runs(clock: list[float]) -> None:
    scheduler = watched()
    scheduler.schedule()
    clock[0] += 100.0
    scheduler.admit(Request("a"))
    scheduler.running.clear()
    scheduler.schedule()  # idle until here
    scheduler.admit(Request("b"))
    clock[0] += 0.25
    scheduler.schedule()
    clock[0] += 0.5
    scheduler.schedule()
    said = told(scheduler)
    assert (said["busy_seconds"], said["longest_step"]) == (0.75, 0.5)
    clock[0] += 14.0
    assert told(scheduler)["longest_step"] == 14.0, "a step that hasn't ended yet"


@pytest.mark.parametrize(("rank", "said"), [(0, "0"), (7, "7"), (None, "0"), ("x", "0")])
def test_the_rank_is_the_data_parallel_one(rank: object, said: str) -> None:
    scheduler = watched(rank=rank)
    assert told(scheduler)["rank"] == said


def test_it_tells_what_it_costs() -> None:
    scheduler = watched()
    before = told(scheduler)["own_seconds"]
    for _ in range(100):
        scheduler.schedule()
    assert scheduler._thrashold.own_seconds > 0  # noqa: SLF001
    assert told(scheduler)["own_seconds"] > before
