"""Made-up schedulers: what the probe uses of vLLM's, and nothing else. Each call makes a class of its own."""

from __future__ import annotations

import contextlib
import json
import socket
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any


class Status:
    def __init__(self, name: str) -> None:
        self.name = name


ABORTED, STOPPED, RUNNING = Status("FINISHED_ABORTED"), Status("FINISHED_STOPPED"), Status("RUNNING")


@dataclass(eq=False)
class Request:
    request_id: str
    num_computed_tokens: int = 0
    num_output_tokens: int = 0
    stop: tuple[str, ...] = ()
    status: Status = RUNNING
    streaming_queue: object = None

    @property
    def sampling_params(self) -> SimpleNamespace:
        return SimpleNamespace(stop=list(self.stop))

    def is_finished(self) -> bool:
        return self.status is not RUNNING


class FullAttentionManager:
    def __init__(self, block_size: int = 16) -> None:
        self.block_size = block_size
        self.req_to_blocks: dict[str, list[object]] = defaultdict(list)


class SlidingWindowManager(FullAttentionManager):
    pass


class MambaManager(FullAttentionManager):
    pass


def scheduler_class() -> Any:  # noqa: ANN401 - wrapped by the probe
    class Scheduler:
        def __init__(self, *managers: object, rank: object = 0) -> None:
            self.running: list[Request] = []
            self.requests: dict[str, Request] = {}
            self.parallel_config = SimpleNamespace(data_parallel_index=rank)
            self.kv_cache_manager = SimpleNamespace(
                coordinator=SimpleNamespace(single_type_managers=managers or (FullAttentionManager(),))
            )
            self.answers: list[object] = []

        def schedule(self, throttle_prefills: bool = False) -> object:  # noqa: FBT001, FBT002 - vLLM's own
            answer = ("scheduled", throttle_prefills)
            self.answers.append(answer)
            return answer

        def _preempt_request(self, request: Request, timestamp: float) -> None:  # noqa: ARG002
            self.running.remove(request)
            request.num_computed_tokens = 0

        def finish_requests(self, request_ids: Any, finished_status: Status) -> list[Request]:  # noqa: ANN401
            ids = {request_ids} if isinstance(request_ids, str) else set(request_ids or self.requests)
            ended = [self.requests[each] for each in ids if each in self.requests]
            for request in ended:
                request.status = finished_status
                self.running = [each for each in self.running if each is not request]
                del self.requests[request.request_id]
            return ended

        def admit(self, *requests: Request, blocks: int = 1) -> None:
            for request in requests:
                self.running.append(request)
                self.requests[request.request_id] = request
                for manager in self.kv_cache_manager.coordinator.single_type_managers:
                    manager.req_to_blocks[request.request_id] = [object()] * blocks

    return Scheduler


class Listener:
    """A sidecar's end of the line."""

    def __init__(self, path: Path, backlog: int = 8) -> None:
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listening.bind(str(path))
        self._listening.listen(backlog)
        self._listening.settimeout(20)

    def accept(self) -> socket.socket:
        connection, _ = self._listening.accept()
        connection.settimeout(20)
        return connection

    def close(self) -> None:
        self._listening.close()


@contextlib.contextmanager
def listening(path: Path) -> Iterator[Listener]:
    listener = Listener(path)
    try:
        yield listener
    finally:
        listener.close()
        path.unlink(missing_ok=True)


def received(connection: socket.socket) -> dict[str, Any]:
    """The next message."""
    data = connection.recv(1 << 16)
    assert data, "the probe hung up"
    message: dict[str, Any] = json.loads(data)
    return message
