"""What vLLM's scheduler knows and no metric says, told to thrashold's sidecar: a general plugin of vLLM V1.

With THRASHOLD_PROBE_SOCKET set to the path of the sidecar's socket, vLLM's scheduler class gets a wrapper around
four of its methods. They count; once a second the step at hand adds up what the running sequences hold, and a
thread sends it all as one message. Without the variable nothing is touched.

It depends on nothing but Python, and on vLLM as little as it can: what it needs is looked for first. A part that
this vLLM lacks is left out, with a line in the log; whatever surprises it later takes the wrappers off again, with
one line in the log. No error of it reaches the engine, and no step ever waits for it: the socket never blocks, and
what it can't take is dropped, which loses nothing, since all counts are totals.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import logging
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

SOCKET_VARIABLE = "THRASHOLD_PROBE_SOCKET"
MESSAGE_VERSION = 1
BEAT_SECONDS = 1.0
LOOK_SECONDS = 0.05
"""How long before a message the next step is asked to add up what is held: most steps are shorter."""
REPEAT_SECONDS = 30.0
"""A sequence that is preempted again within this time is one that ping-pongs."""
MANY_VICTIMS = 512

# Managers whose block tables hold a sequence's tokens in their order, so that the last block is the tail.
HOLD_TOKENS_IN_ORDER = frozenset(
    {
        "FullAttentionManager",
        "SinkFullAttentionManager",
        "SlidingWindowManager",
        "ChunkedLocalAttentionManager",
    }
)
# Of these no block is given back while its sequence runs.
HOLD_ALL_BLOCKS = frozenset({"FullAttentionManager", "SinkFullAttentionManager"})

# vLLM's own logging shows what is logged below its name, in its format
_log = logging.getLogger("vllm.thrashold_probe")
_probes: weakref.WeakSet[Probe] = weakref.WeakSet()


def register() -> None:
    """Put the probe in place. vLLM calls it once in each of its processes; it raises nothing."""
    path = os.environ.get(SOCKET_VARIABLE)
    if not path:
        return
    try:
        from vllm.v1.core.sched.scheduler import (  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415
            Scheduler,
        )

        install(Scheduler, path)
    except Exception as error:  # noqa: BLE001 - an engine without its probe is better than none
        _log.warning("thrashold's probe stays out: %r", error)


def install(scheduler_class: Any, path: str) -> None:  # noqa: ANN401 - vLLM's, or what a test puts in its place
    """Wrap the methods of ``scheduler_class``; what is counted goes to the socket at ``path``.

    Raises TypeError where there is no schedule() to wrap.
    """
    if "_thrashold_probe" in vars(scheduler_class):
        return  # plugins may be loaded more than once
    if not _is_method(scheduler_class, "schedule", ()):
        raise TypeError(f"{scheduler_class.__name__} has no schedule() of its own")
    patch = Patch(scheduler_class, path)
    wrappers = {"schedule": _schedule}
    if _is_method(scheduler_class, "__init__", ()):
        wrappers["__init__"] = _init
    if _is_method(scheduler_class, "_preempt_request", ("request",)):
        wrappers["_preempt_request"] = _preempt_request
    else:
        patch.without.append("preemptions")
    if _is_method(scheduler_class, "finish_requests", ("request_ids", "finished_status")):
        wrappers["finish_requests"] = _finish_requests
    else:
        patch.without.append("aborts")
    scheduler_class._thrashold_probe = patch  # noqa: SLF001
    for name, wrap in wrappers.items():
        patch.wrap(name, wrap)


def _is_method(owner: Any, name: str, parameters: tuple[str, ...]) -> bool:  # noqa: ANN401
    """Whether ``owner`` itself defines a plain method ``name`` that begins with these parameters after self."""
    method = vars(owner).get(name)
    if not inspect.isfunction(method):
        return False
    names = list(inspect.signature(method).parameters)
    return tuple(names[1 : 1 + len(parameters)]) == parameters


class Patch:
    """The wrappers on one scheduler class, and the switch that takes them off."""

    def __init__(self, scheduler_class: Any, path: str) -> None:  # noqa: ANN401
        self.path = path
        self.on = True  # asked at every call; a test switches it to see what the probe costs
        self.is_over = False
        self.without: list[str] = []
        self._class = scheduler_class
        self._replaced: dict[str, tuple[Any, Any]] = {}

    def wrap(self, name: str, make: Callable[[Any, Patch], Any]) -> None:
        """Put what ``make`` makes of the method in its place."""
        original = vars(self._class)[name]
        wrapper = functools.wraps(original)(make(original, self))
        self._replaced[name] = original, wrapper
        setattr(self._class, name, wrapper)

    def off(self, error: Exception) -> None:
        """Take the wrappers off for good, with one line in the log; nothing is raised."""
        if self.is_over:
            return
        self.on, self.is_over = False, True
        with contextlib.suppress(Exception):
            for name, (original, wrapper) in self._replaced.items():
                if vars(self._class).get(name) is wrapper:  # else somebody else has wrapped it since
                    setattr(self._class, name, original)
        with contextlib.suppress(Exception):
            _log.warning("thrashold's probe has taken itself out, the engine goes on without it: %r", error)


def _init(original: Any, patch: Patch) -> Any:  # noqa: ANN401
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        original(self, *args, **kwargs)
        if patch.on:
            try:
                _probe_of(self, patch)
            except Exception as error:  # noqa: BLE001
                patch.off(error)

    return wrapper


def _schedule(original: Any, patch: Patch) -> Any:  # noqa: ANN401
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        if not patch.on:
            return original(self, *args, **kwargs)
        entered = time.perf_counter()
        try:
            probe = _probe_of(self, patch)
            probe.step_begins(self, entered)
        except Exception as error:  # noqa: BLE001
            patch.off(error)
            return original(self, *args, **kwargs)
        called = time.perf_counter()
        output = original(self, *args, **kwargs)
        returned = time.perf_counter()
        try:
            probe.step_ends(self)
            probe.own_seconds += time.perf_counter() - returned + called - entered
        except Exception as error:  # noqa: BLE001
            patch.off(error)
        return output

    return wrapper


def _preempt_request(original: Any, patch: Patch) -> Any:  # noqa: ANN401
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        result = original(self, *args, **kwargs)
        if patch.on:
            began = time.perf_counter()
            try:
                probe = _probe_of(self, patch)
                probe.preempted(args[0] if args else kwargs["request"])
                probe.own_seconds += time.perf_counter() - began
            except Exception as error:  # noqa: BLE001
                patch.off(error)
        return result

    return wrapper


def _finish_requests(original: Any, patch: Patch) -> Any:  # noqa: ANN401
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        if not patch.on:
            return original(self, *args, **kwargs)
        began = time.perf_counter()
        ending: list[Any] = []
        try:
            probe = _probe_of(self, patch)
            named = args[0] if args else kwargs["request_ids"]
            status = args[1] if len(args) > 1 else kwargs["finished_status"]
            if status.name == "FINISHED_ABORTED":
                ending = _alive(self.requests, named)
            probe.own_seconds += time.perf_counter() - began
        except Exception as error:  # noqa: BLE001
            patch.off(error)
            return original(self, *args, **kwargs)
        result = original(self, *args, **kwargs)
        try:
            for request in ending:
                probe.aborted(request)
        except Exception as error:  # noqa: BLE001
            patch.off(error)
        return result

    return wrapper


def _alive(requests: Any, named: Any) -> list[Any]:  # noqa: ANN401
    """Those requests that are named and have not ended yet. Raises TypeError where the names can be read only once."""
    if named is None:
        ids = list(requests)
    elif isinstance(named, str):
        ids = [named]
    elif isinstance(named, (list, tuple, AbstractSet)):
        ids = list(dict.fromkeys(named))
    else:
        raise TypeError(f"finish_requests() is given a {type(named).__name__}")
    return [each for each in map(requests.get, ids) if each is not None and not each.is_finished()]


def _probe_of(scheduler: Any, patch: Patch) -> Probe:  # noqa: ANN401
    """The probe of a scheduler, made when it is first asked for."""
    probe: Probe | None = scheduler.__dict__.get("_thrashold")
    if probe is None:
        probe = scheduler._thrashold = Probe(scheduler, patch)  # noqa: SLF001
        _probes.add(probe)
        probe.start()
    elif probe.thread is None:  # this process was forked off one that had it
        probe.start()
    return probe


Held = tuple[int, int | None, int | None]
"""Of one KV group: tokens a block holds, blocks that running sequences hold, and the empty slots in those."""


class Seen(NamedTuple):
    """What running sequences held once ``steps`` steps were scheduled, at ``at`` on the monotonic clock."""

    at: float
    steps: int
    running: int
    groups: tuple[Held, ...]


class Probe:
    """What was counted of one scheduler. All but the sending happens in the engine's own thread."""

    def __init__(self, scheduler: Any, patch: Patch) -> None:  # noqa: ANN401
        if not isinstance(scheduler.running, list):
            raise TypeError("the scheduler's running sequences are no list")
        self.thread: threading.Thread | None = None
        self.own_seconds = 0.0
        self._scheduler = weakref.ref(scheduler)
        self._patch = patch
        self._without = list(patch.without)
        self._groups = self._found_groups(scheduler)
        if "aborts" not in self._without and not isinstance(getattr(scheduler, "requests", None), dict):
            self._without.append("aborts")
        self._rank = _rank_of(scheduler)
        self._steps = 0
        self._step_began: float | None = None
        self._busy_seconds = 0.0
        self._longest_step = 0.0
        self._preemptions = 0
        self._repeats = 0
        self._repeat_tokens = 0
        self._hits: dict[str, tuple[float, int, int]] = {}
        self._aborts = 0
        self._unclear_aborts = 0
        self._is_due = True
        self._seen = Seen(time.monotonic(), 0, 0, self._nothing_held())
        self._line: Line | None = None
        missing = f"; this vLLM lacks what it needs for {', '.join(self._without)}" if self._without else ""
        _log.log(
            logging.WARNING if missing else logging.INFO,
            "thrashold's probe watches the scheduler of rank %s for %s%s",
            self._rank,
            patch.path,
            missing,
        )

    def _found_groups(self, scheduler: Any) -> tuple[tuple[Any, bool, bool], ...]:  # noqa: ANN401
        """Each KV group's manager, whether its tail can be told, and whether all its blocks are held."""
        try:
            managers = tuple(scheduler.kv_cache_manager.coordinator.single_type_managers)
            for each in managers:
                if not (isinstance(each.block_size, int) and each.block_size > 0):
                    raise TypeError(f"a block of {each.block_size!r} tokens")  # noqa: TRY301
                if not isinstance(each.req_to_blocks, dict):
                    raise TypeError("block tables that are no dict")  # noqa: TRY301
        except (AttributeError, TypeError) as error:
            _log.debug("thrashold's probe finds no KV groups: %r", error)
            managers = ()
        if not managers:
            self._without.append("tails")
        kinds = ((each, type(each).__name__) for each in managers)
        return tuple((each, kind in HOLD_TOKENS_IN_ORDER, kind in HOLD_ALL_BLOCKS) for each, kind in kinds)

    def step_begins(self, scheduler: Any, now: float) -> None:  # noqa: ANN401
        """A call of schedule(). Where nothing runs, the time since the last one was no step."""
        if scheduler.running and self._step_began is not None:
            seconds = now - self._step_began
            self._busy_seconds += seconds
            self._longest_step = max(self._longest_step, seconds)
        self._step_began = now

    def step_ends(self, scheduler: Any) -> None:  # noqa: ANN401
        """A return of schedule(): computed tokens already include those of the step that now begins."""
        self._steps += 1
        if self._is_due:
            self._is_due = False
            self._look(scheduler)

    def _look(self, scheduler: Any) -> None:  # noqa: ANN401
        now, running = time.monotonic(), scheduler.running
        held: list[Held] = []
        for manager, in_order, holds_all in self._groups:
            size, tables = manager.block_size, manager.req_to_blocks
            blocks = empty = 0
            if in_order:
                for request in running:
                    count = len(tables.get(request.request_id) or ())
                    blocks += count
                    rest = count * size - request.num_computed_tokens
                    if rest < 0:  # then tables are not what they were, and no tail is what it seems
                        raise ValueError(f"{request.num_computed_tokens} tokens in {count} blocks of {size}")
                    empty += rest
            held.append((size, blocks if holds_all else None, empty if in_order else None))
        # as one thing: the thread may read at any moment
        self._seen = Seen(now, self._steps, len(running), tuple(held))
        if len(self._hits) > MANY_VICTIMS:
            oldest = now - REPEAT_SECONDS
            self._hits = {name: hit for name, hit in self._hits.items() if hit[0] >= oldest}

    def _nothing_held(self) -> tuple[Held, ...]:
        return tuple(
            (manager.block_size, 0 if holds_all else None, 0 if in_order else None)
            for manager, in_order, holds_all in self._groups
        )

    def preempted(self, request: Any) -> None:  # noqa: ANN401
        """A sequence has lost its blocks."""
        now, tokens = time.monotonic(), int(request.num_output_tokens)
        count = getattr(request, "num_preemptions", None)
        self._preemptions += 1
        last = self._hits.get(request.request_id)
        # where names aren't made unique, as by some releases and settings, a later request may bear the same
        if last is not None and (count is None or count > last[2]):
            if count is not None and count != last[2] + 1:
                raise ValueError("a preemption that did not come this way")
            if now - last[0] <= REPEAT_SECONDS:
                self._repeats += 1
                self._repeat_tokens += max(0, tokens - last[1])
        self._hits[request.request_id] = now, tokens, count or 0

    def aborted(self, request: Any) -> None:  # noqa: ANN401
        """A request was ended from outside: its client left, its text has come to a stop string, or it is a session."""
        if not request.is_finished():
            return
        sampling = request.sampling_params
        # the front end looks for stop strings in the text and ends such a request from outside too; and a session,
        # whose prompt comes bit by bit, is ended like that once nothing more will come
        is_session = getattr(request, "streaming_queue", None) is not None
        if is_session or (sampling is not None and sampling.stop):
            self._unclear_aborts += 1
        else:
            self._aborts += 1
        self._hits.pop(request.request_id, None)

    def start(self) -> None:
        """Begin to tell. Each start is another sender, by its own name."""
        self._line = Line(self._patch.path)
        name = f"{os.getpid()}-{time.time_ns()}"
        self.thread = threading.Thread(
            target=self._tell, args=(self._line, name), name="thrashold probe", daemon=True
        )
        self.thread.start()

    def forked(self) -> None:
        """Now a new process: the thread is not in it, and the connection is the parent's."""
        self.thread = None
        if self._line is not None:
            self._line.close()

    def _tell(self, line: Line, name: str) -> None:
        try:
            while not self._patch.is_over:
                scheduler = self._scheduler()
                if scheduler is None:
                    break
                self._is_due = True
                time.sleep(LOOK_SECONDS)
                line.send(self.message(scheduler, name, line.dropped))
                del scheduler  # an engine that is no longer wanted must be free to go
                time.sleep(BEAT_SECONDS - LOOK_SECONDS)
        except Exception as error:  # noqa: BLE001
            self._patch.off(error)
        line.close()

    def message(self, scheduler: Any, name: str, dropped: int) -> dict[str, Any]:  # noqa: ANN401
        """All that is known. ``steps``, ``running`` and ``groups`` are of ``age`` seconds ago, the rest is of now."""
        seen, now = self._seen, time.monotonic()
        longest, self._longest_step = self._longest_step, 0.0
        if not scheduler.running:
            # no step comes while nothing runs, and nothing is held then
            seen = Seen(now, self._steps, 0, self._nothing_held())
        elif self._step_began is not None:
            longest = max(longest, time.perf_counter() - self._step_began)
        counts_preemptions = "preemptions" not in self._without
        counts_aborts = "aborts" not in self._without
        return {
            "version": MESSAGE_VERSION,
            "sender": name,
            "rank": self._rank,
            "age": max(0.0, now - seen.at),
            "steps": seen.steps,
            "running": seen.running,
            "groups": seen.groups if self._groups else None,
            "longest_step": longest,
            "preemptions": self._preemptions if counts_preemptions else None,
            "repeats": self._repeats if counts_preemptions else None,
            "repeat_tokens": self._repeat_tokens if counts_preemptions else None,
            "aborts": self._aborts if counts_aborts else None,
            "unclear_aborts": self._unclear_aborts if counts_aborts else None,
            "busy_seconds": self._busy_seconds,
            "own_seconds": self.own_seconds + time.thread_time(),
            "dropped": dropped,
        }


def _rank_of(scheduler: Any) -> str:  # noqa: ANN401
    """The data-parallel rank as vLLM's metrics call it."""
    config = getattr(scheduler, "parallel_config", None)
    for name in ("data_parallel_index", "data_parallel_rank"):
        rank = getattr(config, name, None)
        if isinstance(rank, int):
            return str(rank)
    return "0"


class Line:
    """The way to the sidecar: a connection that keeps messages apart, never blocks, and is opened when it can be."""

    def __init__(self, path: str) -> None:
        self.dropped = 0
        self._path = path
        self._socket: socket.socket | None = None
        self._said = ""

    def send(self, message: dict[str, Any]) -> None:
        """Send it, or drop it where nobody listens or the listener is slow. Raises nothing of the system's."""
        if self._socket is None:
            self._connect()
        if self._socket is None:
            return
        try:
            self._socket.send(json.dumps(message).encode(), socket.MSG_NOSIGNAL)
        except BlockingIOError:
            self.dropped += 1
        except OSError:
            self.close()

    def close(self) -> None:
        """Hang up."""
        with contextlib.suppress(OSError):
            if self._socket is not None:
                self._socket.close()
        self._socket = None

    def _connect(self) -> None:
        line = None
        try:
            line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            line.setblocking(False)
            line.connect(self._path)
        except OSError as error:
            if line is not None:
                line.close()
            # a sidecar that isn't there yet is told of once, and so is one that doesn't let us in
            self._say(f"nobody listens at {self._path} ({error.strerror or error}); it goes on trying")
        else:
            self._socket = line
            self._say(f"connected to {self._path}")

    def _say(self, said: str) -> None:
        """A line in the log, unless it was the last one too: a sidecar may hang up each time."""
        if said != self._said:
            self._said = said
            _log.info("thrashold's probe: %s", said)


def _after_fork() -> None:
    for probe in list(_probes):
        with contextlib.suppress(Exception):
            probe.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
