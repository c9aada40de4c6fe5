"""Probes over real Unix sockets: who gets in, what is kept, and what is said when it goes wrong."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import stat
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Self

import pytest

from exporter.observation import Observation
from exporter.probe.thrashold_probe import Line
from exporter.sources import probe, probe_socket
from exporter.sources.probe import ProbeSource
from tests.support.probes import message

PATIENCE_SECONDS = 20.0
Test = Callable[[ProbeSource], Awaitable[None]]


class Peer:
    """A process that connects."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(PATIENCE_SECONDS)
        try:
            self.socket.connect(str(path))
        except OSError:
            self.socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def says(self, **fields: object) -> None:
        self.socket.send(message(**fields))


@contextlib.asynccontextmanager
async def running(source: ProbeSource) -> AsyncIterator[ProbeSource]:
    task = asyncio.ensure_future(source.run())
    try:
        yield source
    finally:
        task.cancel()
        await asyncio.wait({task})
        await asyncio.sleep(0)


async def until(source: ProbeSource, true: Callable[[Observation], object]) -> Observation:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not true(source.observe()):
        assert time.monotonic() < deadline, source.observe()
        await asyncio.sleep(0.005)
    return source.observe()


async def listening(path: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        with contextlib.suppress(OSError), Peer(path):
            return
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)


def tried(path: Path, test: Test, clock: Callable[[], float] = lambda: 100.0) -> None:
    """Run ``test`` beside a source that listens at ``path``."""

    async def whole() -> None:
        async with running(ProbeSource("w", path, clock)) as source:
            await listening(path)
            await test(source)

    asyncio.run(whole())


def errors(seen: Observation) -> dict[str, int]:
    return dict(seen.status.errors)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "probe.sock"


def test_before_a_probe_connects_it_says_what_to_do(path: Path) -> None:
    seen = ProbeSource("w", path, lambda: 1.0).observe()
    assert (seen.probes, seen.status.answering, seen.status.last_at) == ((), False, None)
    assert seen.status.name == "w/probe"
    assert seen.status.last_error == (
        f"{path}: no probe has connected; is it installed in a vLLM V1, and does the engine run with"
        f" THRASHOLD_PROBE_SOCKET={path}? (docs/probe.md)"
    )


def test_the_newest_message_of_each_rank_is_kept(path: Path) -> None:
    async def test(source: ProbeSource) -> None:
        with Peer(path) as first, Peer(path) as second:
            first.says(rank="0", steps=1)
            second.says(rank="1", steps=5)
            first.says(rank="0", steps=2)
            seen = await until(source, lambda seen: [each.steps_total for each in seen.probes] == [2, 5])
            assert [(each.engine, each.rank, each.at) for each in seen.probes] == [
                ("w", "0", 100.0),
                ("w", "1", 100.0),
            ]
            assert (seen.status.answering, seen.status.last_at, seen.status.last_error) == (True, 100.0, "")

    tried(path, test)


def test_the_probe_itself_is_understood(path: Path) -> None:
    async def test(source: ProbeSource) -> None:
        line = Line(str(path))
        line.send(json.loads(message(steps=9)))
        await until(source, lambda seen: [each.steps_total for each in seen.probes] == [9])
        line.close()

    tried(path, test)


def test_a_probe_that_hangs_up_is_gone_at_once_and_may_come_again(path: Path) -> None:
    async def test(source: ProbeSource) -> None:
        for _ in range(2):
            with Peer(path) as peer:
                peer.says()
                await until(source, lambda seen: seen.status.answering)
            seen = await until(source, lambda seen: not seen.status.answering)
            assert seen.probes == ()
            assert seen.status.last_error.startswith(f"{path}: the probe of rank 0 hung up; look whether")
        assert errors(source.observe()) == {"disconnected": 2}

    tried(path, test)


def test_who_connects_and_says_nothing_is_no_failure(path: Path) -> None:
    async def test(source: ProbeSource) -> None:
        with Peer(path):
            pass
        with Peer(path) as peer:
            peer.says()
            await until(source, lambda seen: seen.status.answering)
            assert errors(source.observe()) == {}

    tried(path, test)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"GET / HTTP/1.1", "what comes is no message of a probe (JSON is malformed"),
        (message(version=3), "the probe speaks version 3 and this sidecar version 1; install the probe anew"),
        (b"[" * 100_000, "what comes is no message of a probe ("),
    ],
    ids=["http", "later", "too long"],
)
def test_what_is_no_probe_is_hung_up_on_with_one_line(path: Path, data: bytes, problem: str) -> None:
    async def test(source: ProbeSource) -> None:
        with Peer(path) as probed, Peer(path) as stranger:
            probed.says()
            stranger.socket.send(data)
            seen = await until(source, lambda seen: errors(seen) == {"not_a_probe": 1} and seen.probes)
            assert await asyncio.to_thread(stranger.socket.recv, 1) == b""
            probed.says(steps=2)
            await until(source, lambda seen: seen.probes[0].steps_total == 2)
            assert seen.status.answering

        seen = await until(source, lambda seen: not seen.probes)

    tried(path, test)
    source = ProbeSource("w", path, lambda: 1.0)

    async def alone() -> None:
        async with running(source):
            await listening(path)
            with Peer(path) as stranger:
                stranger.socket.send(data)
                seen = await until(source, errors)
            assert seen.status.last_error.startswith(f"{path}: {problem}"[:150])
            assert "\n" not in seen.status.last_error

    asyncio.run(alone())


def test_a_second_engine_on_the_same_socket_is_refused_and_the_first_goes_on(path: Path) -> None:
    async def test(source: ProbeSource) -> None:
        with Peer(path) as first, Peer(path) as second:
            first.says(sender="a")
            await until(source, lambda seen: seen.probes)
            second.says(sender="b")
            await until(source, lambda seen: errors(seen) == {"not_a_probe": 1})
            assert [each.sender for each in source.observe().probes] == ["a"]

    tried(path, test)


def test_a_connection_that_has_gone_silent_gives_its_rank_away(path: Path) -> None:
    now = [100.0]

    async def test(source: ProbeSource) -> None:
        with Peer(path) as first, Peer(path) as second:
            first.says(sender="a")
            await until(source, lambda seen: seen.probes)
            now[0] += 6.0
            second.says(sender="b")
            await until(source, lambda seen: [each.sender for each in seen.probes] == ["b"])
        seen = await until(source, lambda seen: not seen.probes)
        assert not seen.status.answering

    tried(path, test, lambda: now[0])


def test_only_this_user_and_root_get_in(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(source: ProbeSource) -> None:
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600  # noqa: PTH116 -- a moment's wait in a test
        monkeypatch.setattr(probe, "peer_is_trusted", lambda _: (False, 1234))
        with Peer(path) as stranger:
            seen = await until(source, lambda seen: "unauthorised" in errors(seen))
            assert seen.status.last_error == (
                f"{path}: user 1234 is not let in; let the engine run as this sidecar's user or as root"
            )
            assert await asyncio.to_thread(stranger.socket.recv, 1) == b""
        monkeypatch.undo()

    tried(path, test)


def test_who_is_at_the_other_end_is_asked_of_the_kernel() -> None:
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with here, there:
        assert probe_socket.peer_is_trusted(here) == (True, os.geteuid())


def test_connections_are_counted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "MOST_CONNECTIONS", 2)

    async def test(source: ProbeSource) -> None:
        with Peer(path) as first, Peer(path) as second:
            first.says(rank="0")
            second.says(rank="1")
            await until(source, lambda seen: len(seen.probes) == 2)
            with Peer(path) as third:
                assert await asyncio.to_thread(third.socket.recv, 1) == b""
            assert errors(source.observe()) == {"unauthorised": 1}

    tried(path, test)


def test_a_path_that_is_swept_away_is_made_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_LOOK_SECONDS", 0.05)

    async def test(source: ProbeSource) -> None:
        with Peer(path) as old:
            old.says(rank="0")
            await until(source, lambda seen: seen.probes)
            os.unlink(path)  # noqa: PTH108 -- the same
            await listening(path)
            with Peer(path) as new:
                new.says(rank="1")
                await until(source, lambda seen: [each.rank for each in seen.probes] == ["1"])

    tried(path, test)


def test_what_a_killed_sidecar_has_left_is_taken_over_and_the_end_leaves_nothing(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as left:
        left.bind(str(path))

    async def test(source: ProbeSource) -> None:
        with Peer(path) as peer:
            peer.says()
            await until(source, lambda seen: seen.probes)

    tried(path, test)
    assert not path.exists()


def refused(path: Path) -> str:
    async def whole() -> str:
        async with running(ProbeSource("w", path, lambda: 1.0)) as source:
            seen = await until(source, errors)
            assert errors(seen) == {"no_socket": 1}
            return seen.status.last_error

    return asyncio.run(whole())


def test_a_file_in_the_way_is_left_alone(path: Path) -> None:
    path.write_text("precious")
    assert refused(path) == f"{path}: is there already and no socket; name another path, or take it away"
    assert path.read_text() == "precious"


def test_a_folder_that_is_missing_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "probe.sock"
    assert refused(path) == (
        f"{path}: the socket can't be made (No such file or directory); is its folder there, and this user's?"
    )


def test_another_sidecar_s_socket_is_left_to_it(path: Path) -> None:
    async def test(source: ProbeSource) -> None:
        assert await asyncio.to_thread(refused, path) == (
            f"{path}: another process listens there; if it is a sidecar that is meant to run, its page says how the"
            " probe does, else end it or name another path"
        )
        with Peer(path) as peer:
            peer.says()
            await until(source, lambda seen: seen.probes)

    tried(path, test)


def test_another_user_s_socket_is_left_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as left:
        left.bind(str(path))
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    assert refused(path) == f"{path}: is the socket of user {mine}; name another path, or take it away"
    assert path.exists()


def test_once_waits_for_a_probe_and_no_longer_than_three_seconds(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def whole(*, connects: bool) -> Observation:
        source = ProbeSource("w", path, lambda: 1.0)
        reading = asyncio.ensure_future(source.read_once())
        if connects:
            await listening(path)
            with Peer(path) as peer:
                peer.says(steps=4)
                await reading
        else:
            await reading
        return source.observe()

    assert [each.steps_total for each in asyncio.run(whole(connects=True)).probes] == [4]
    monkeypatch.setattr(probe, "_ONCE_SECONDS", 0.1)
    assert not asyncio.run(whole(connects=False)).status.answering
    assert not path.exists()
