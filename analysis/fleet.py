"""The same done to many things, here or by the workers of a Dask cluster: a map, and nothing else.

What breaks off costs its own result. Workers need this program, with the extra ``analysis``, and must reach what they
are told to read: files by the same path, servers by the same URL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
WAIT_SECONDS = 20.0
"""For a scheduler to answer, and then for a worker to be there."""


class FleetError(Exception):
    """No cluster to work on: one line of what was wrong, where, and what to do."""


def here(function: Callable[[T], R], items: Sequence[T]) -> Iterator[tuple[int, R | Exception]]:
    """Each in this process: its place among ``items``, and its result or what it raised."""
    for place, item in enumerate(items):
        try:
            yield place, function(item)
        except Exception as error:  # noqa: BLE001 - the others go on; whoever called says what it was
            yield place, error


def over(
    scheduler: str, function: Callable[[T], R], items: Sequence[T], wait_seconds: float = WAIT_SECONDS
) -> Iterator[tuple[int, R | Exception]]:
    """Each on a worker of the cluster at ``scheduler``, ``tcp://HOST:PORT``, as they are done.

    Raises FleetError: nobody answers, no worker is there, the extra ``fleet`` isn't installed, the scheduler is lost.
    """
    try:
        from distributed import Client, as_completed  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise FleetError(
            "--scheduler needs dask and distributed: pip install 'thrashold[analysis,fleet]'"
        ) from error
    try:
        client = Client(  # type: ignore[no-untyped-call] # distributed has no types of its own
            scheduler, timeout=wait_seconds, set_as_default=False
        )
    except (OSError, TimeoutError, ValueError) as error:
        raise FleetError(f"{scheduler}: no Dask scheduler answers there: {error}") from error
    with client:
        try:
            client.wait_for_workers(1, timeout=wait_seconds)
        except TimeoutError as error:
            raise FleetError(
                f"{scheduler}: has no worker; start some with: dask worker {scheduler}"
            ) from error
        futures = {client.submit(function, item, pure=False): place for place, item in enumerate(items)}
        for future in as_completed(futures, loop=client.loop):  # type: ignore[no-untyped-call]
            if future.status in {"cancelled", "lost"}:
                raise FleetError(f"{scheduler}: the scheduler was lost while it worked")
            problem = future.exception()
            yield futures[future], future.result() if problem is None else problem
