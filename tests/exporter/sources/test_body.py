"""A packed body is unpacked as it is, in slices between which the loop goes on."""

from __future__ import annotations

import asyncio
import gzip
import random

import pytest

from exporter.sources.body import BoundedBody
from exporter.sources.failure import ReadFailedError
from tests.exporter.sources.reading import run

MEGABYTE = 1 << 20


def turns_of_the_loop_while_unpacking(megabytes: int, most: int) -> int:
    """How often others got their turn while one chunk, a thousandth of its content, was taken."""
    chunk = gzip.compress(b"#" * megabytes * MEGABYTE)
    assert len(chunk) < 65_536, "no more than one read of a socket"

    async def work() -> int:
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        task = asyncio.create_task(others())
        await asyncio.sleep(0)
        before, body = turns, BoundedBody("gzip", most, "http://host")
        try:
            await body.add(chunk)
            assert body.whole() == b"#" * megabytes * MEGABYTE
        finally:
            during = turns - before
            task.cancel()
            await asyncio.wait([task])
        return during

    return run(work())


def test_unpacking_much_lets_the_loop_go_on() -> None:
    assert turns_of_the_loop_while_unpacking(16, most=32 * MEGABYTE) >= 15


def test_a_bomb_is_too_large() -> None:
    with pytest.raises(ReadFailedError, match="larger than 3145728 bytes"):
        turns_of_the_loop_while_unpacking(60, most=3 * MEGABYTE)


@pytest.mark.parametrize("size", [0, 1, MEGABYTE - 1, MEGABYTE, MEGABYTE + 1, 3 * MEGABYTE])
def test_slices_lose_nothing(size: int) -> None:
    half = random.Random(1).randbytes(size // 2)  # noqa: S311 - not for secrets
    content = half + b"#" * (size - len(half))
    sent = gzip.compress(content) + gzip.compress(b"end\n")

    async def work() -> bytes:
        body = BoundedBody("gzip", 4 * MEGABYTE, "http://host")
        for start in range(0, len(sent), 65_536):
            await body.add(sent[start : start + 65_536])
        return body.whole()

    assert run(work()) == content + b"end\n"
