"""Whatever a vLLM to come does differently: the engine goes on as if the probe were not there, the log has one line."""

from __future__ import annotations

import ast
import inspect
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from exporter.probe import thrashold_probe
from exporter.probe.thrashold_probe import SOCKET_VARIABLE, install, register
from tests.exporter.probe.schedulers import ABORTED, FullAttentionManager, Request, scheduler_class

NOWHERE = "/nonexistent/probe.sock"
METHODS = ("schedule", "__init__", "_preempt_request", "finish_requests")
Change = Callable[[Any], None]


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(thrashold_probe.Probe, "_tell", lambda *_: None)
    caplog.set_level(logging.INFO)


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module that holds the scheduler, where vLLM has it."""
    path = ""
    for part in ("vllm", "v1", "core", "sched", "scheduler"):
        path = f"{path}.{part}" if path else part
        module = ModuleType(path)
        monkeypatch.setitem(sys.modules, path, module)
    monkeypatch.setenv(SOCKET_VARIABLE, NOWHERE)
    yield module
    monkeypatch.undo()


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


def test_without_the_variable_nothing_is_touched(vllm: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401
    monkeypatch.delenv(SOCKET_VARIABLE)
    vllm.Scheduler = scheduler_class()
    before = dict(vars(vllm.Scheduler))
    register()
    assert dict(vars(vllm.Scheduler)) == before


def test_loaded_twice_it_is_there_once(vllm: Any) -> None:  # noqa: ANN401
    vllm.Scheduler = scheduler_class()
    register()
    once = vllm.Scheduler.schedule
    register()
    assert vllm.Scheduler.schedule is once


def without(name: str) -> Change:
    return lambda made: delattr(made, name)


def replaced(name: str, value: object) -> Change:
    return lambda made: setattr(made, name, value)


@pytest.mark.parametrize(
    "change",
    [
        without("schedule"),
        replaced("schedule", None),
        replaced("schedule", staticmethod(lambda: None)),
        replaced("schedule", SimpleNamespace()),
    ],
    ids=["renamed", "nothing", "static", "an object"],
)
def test_a_scheduler_that_can_t_be_wrapped_is_left_alone(
    vllm: Any,  # noqa: ANN401
    caplog: pytest.LogCaptureFixture,
    change: Change,
) -> None:
    vllm.Scheduler = scheduler_class()
    change(vllm.Scheduler)
    before = dict(vars(vllm.Scheduler))
    register()
    assert dict(vars(vllm.Scheduler)) == before
    assert warnings(caplog) == [
        "thrashold's probe stays out: TypeError('Scheduler has no schedule() of its own')"
    ]


def test_a_vllm_without_that_module_or_class_is_left_alone(
    vllm: ModuleType, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    register()
    monkeypatch.setitem(sys.modules, vllm.__name__, None)
    register()
    assert len(warnings(caplog)) == 2
    assert all(line.startswith("thrashold's probe stays out: ") for line in warnings(caplog))


def old_preempt(self: Any, victim: Request) -> None:  # noqa: ANN401
    self.running.remove(victim)


def old_finish(self: Any, ids: object, status: object) -> None:  # noqa: ANN401
    """The same under other names."""


@pytest.mark.parametrize(
    ("change", "part", "fields"),
    [
        (without("_preempt_request"), "preemptions", ("preemptions", "repeats", "repeat_tokens")),
        (
            replaced("_preempt_request", old_preempt),
            "preemptions",
            ("preemptions", "repeats", "repeat_tokens"),
        ),
        (without("finish_requests"), "aborts", ("aborts", "unclear_aborts")),
        (replaced("finish_requests", old_finish), "aborts", ("aborts", "unclear_aborts")),
    ],
    ids=["preempt gone", "preempt differs", "finish gone", "finish differs"],
)
def test_a_part_that_this_vllm_lacks_costs_itself(
    caplog: pytest.LogCaptureFixture, change: Change, part: str, fields: tuple[str, ...]
) -> None:
    made = scheduler_class()
    change(made)
    install(made, NOWHERE)
    scheduler = made()
    scheduler.admit(Request("a", num_computed_tokens=10))
    assert scheduler.schedule() == ("scheduled", False)
    said = scheduler._thrashold.message(scheduler, "1-1", 0)  # noqa: SLF001
    assert {name for name, value in said.items() if value is None} == set(fields)
    assert said["groups"] == ((16, 1, 6),)
    assert warnings(caplog) == [
        f"thrashold's probe watches the scheduler of rank 0 for {NOWHERE}; this vLLM lacks what it needs for {part}"
    ]


class OddManager(FullAttentionManager):
    def __init__(self, **fields: object) -> None:
        super().__init__()
        vars(self).update(fields)


@pytest.mark.parametrize(
    "manager",
    [SimpleNamespace(), OddManager(block_size="16"), OddManager(block_size=0), OddManager(req_to_blocks=[])],
    ids=["no fields", "size is text", "size is 0", "tables are a list"],
)
def test_kv_groups_that_can_t_be_read_cost_the_tails(
    caplog: pytest.LogCaptureFixture, manager: object
) -> None:
    made = scheduler_class()
    install(made, NOWHERE)
    scheduler = made(manager)
    scheduler.running.append(Request("a"))
    assert scheduler.schedule() == ("scheduled", False)
    said = scheduler._thrashold.message(scheduler, "1-1", 0)  # noqa: SLF001
    assert (said["groups"], said["steps"], said["aborts"]) == (None, 1, 0)
    assert len(warnings(caplog)) == 1
    assert warnings(caplog)[0].endswith("lacks what it needs for tails")


class Bare:
    """A request without a word of what the probe asks it."""

    request_id = "a"
    num_computed_tokens: object = None


def step(scheduler: Any) -> object:  # noqa: ANN401
    scheduler._thrashold._is_due = True  # noqa: SLF001
    result: object = scheduler.schedule(throttle_prefills=True)
    return result


def preempt(scheduler: Any) -> object:  # noqa: ANN401
    scheduler._preempt_request(scheduler.running[0], 0.0)  # noqa: SLF001
    return scheduler.running


def abort(scheduler: Any) -> object:  # noqa: ANN401
    scheduler.requests = {}
    result: object = scheduler.finish_requests(["a"], SimpleNamespace(value=1))
    return result


def abort_by_generator(scheduler: Any) -> object:  # noqa: ANN401
    request = Request("b")
    scheduler.admit(request)
    return scheduler.finish_requests((each for each in ["b"]), ABORTED) == [request]


def abort_of_what_can_t_say_that_it_ended(scheduler: Any) -> object:  # noqa: ANN401
    scheduler.requests = {"a": scheduler.running[0]}
    return len(scheduler.finish_requests(["a"], ABORTED))


def more_tokens_than_slots(scheduler: Any) -> object:  # noqa: ANN401
    scheduler.running.clear()
    scheduler.admit(Request("b", num_computed_tokens=17), blocks=1)
    return step(scheduler)


def preempted_elsewhere(scheduler: Any) -> object:  # noqa: ANN401
    request = Request("b")
    for count in (1, 3):
        scheduler.running = [request]
        request.num_preemptions = count  # type: ignore[attr-defined]
        scheduler._preempt_request(request, 0.0)  # noqa: SLF001
    return scheduler.running


def scheduler_of_another_shape(scheduler: Any) -> object:  # noqa: ANN401
    del scheduler.running
    return scheduler.schedule(True)


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (step, ("scheduled", True)),
        (preempt, []),
        (abort, []),
        (abort_by_generator, True),
        (abort_of_what_can_t_say_that_it_ended, 1),
        (more_tokens_than_slots, ("scheduled", True)),
        (preempted_elsewhere, []),
        (scheduler_of_another_shape, ("scheduled", True)),
    ],
)
def test_a_surprise_at_work_takes_the_probe_out_for_good_and_the_call_goes_through(
    caplog: pytest.LogCaptureFixture, call: Callable[[Any], object], answer: object
) -> None:
    made = scheduler_class()
    plain = {name: vars(made)[name] for name in METHODS}
    install(made, NOWHERE)
    scheduler = made()
    scheduler.running.append(Bare())
    assert call(scheduler) == answer
    assert {name: vars(made)[name] for name in METHODS} == plain
    assert scheduler.schedule() == ("scheduled", False)
    assert made().schedule() == ("scheduled", False)
    assert len(warnings(caplog)) == 1
    assert warnings(caplog)[0].startswith(
        "thrashold's probe has taken itself out, the engine goes on without it: "
    )


def test_running_that_is_no_list_takes_the_probe_out_before_the_first_step(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = scheduler_class()

    class Tuples(made):  # type: ignore[misc]
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, () if name == "running" else value)

    install(made, NOWHERE)
    assert Tuples().schedule() == ("scheduled", False)
    assert len(warnings(caplog)) == 1


def test_a_scheduler_that_takes_no_further_attribute_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    class Scheduler:
        __slots__ = ("running",)

        def __init__(self) -> None:
            self.running: list[object] = []

        def schedule(self) -> str:
            return "scheduled"

    install(Scheduler, NOWHERE)
    assert Scheduler().schedule() == "scheduled"
    assert len(warnings(caplog)) == 1


def test_a_wrapper_that_somebody_put_around_ours_stays() -> None:
    made = scheduler_class()
    install(made, NOWHERE)
    ours = made.schedule

    def around(self: Any, *args: Any, **kwargs: Any) -> object:  # noqa: ANN401
        return "around", ours(self, *args, **kwargs)

    made.schedule = around
    scheduler = made()
    scheduler.running.append(Bare())
    scheduler._thrashold._is_due = True  # noqa: SLF001
    for _ in range(2):
        assert scheduler.schedule() == ("around", ("scheduled", False))
    assert made.schedule is around


def test_a_scheduler_whose_own_class_overrides_schedule_is_watched_through_super() -> None:
    made = scheduler_class()
    install(made, NOWHERE)

    class Custom(made):  # type: ignore[misc]
        def schedule(self) -> object:
            return "custom", super().schedule()

    scheduler = Custom()
    assert scheduler.schedule() == ("custom", ("scheduled", False))
    assert scheduler._thrashold.message(scheduler, "1-1", 0)["steps"] == 1  # noqa: SLF001


def test_the_signatures_stay_as_they_were() -> None:
    made = scheduler_class()
    before = {name: inspect.signature(vars(made)[name]) for name in METHODS}
    install(made, NOWHERE)
    assert {name: inspect.signature(vars(made)[name]) for name in METHODS} == before


def test_it_depends_on_nothing_but_python() -> None:
    tree = ast.parse(Path(thrashold_probe.__file__).read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    foreign = {name for name in names if name.partition(".")[0] not in sys.stdlib_module_names}
    assert foreign == {"vllm.v1.core.sched.scheduler"}
