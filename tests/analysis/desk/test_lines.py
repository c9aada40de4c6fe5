from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from analysis.desk.work import lines

LIMIT = 16
_LINES = st.lists(st.text("ab", max_size=3 * LIMIT).map(str.encode), max_size=8)


async def _read(pieces: list[bytes]) -> list[bytes | None]:
    stream = asyncio.StreamReader(limit=LIMIT)

    async def feed() -> None:
        for piece in pieces:
            stream.feed_data(piece)
            await asyncio.sleep(0)
        stream.feed_eof()

    feeding = asyncio.create_task(feed())
    found = [line async for line in lines(stream)]
    await feeding
    return found


@given(_LINES, st.sampled_from([b"", b"\n"]), st.data())
def test_a_line_of_any_length_in_any_pieces_costs_itself_alone(
    said: list[bytes], end: bytes, data: st.DataObject
) -> None:
    body = b"\n".join(said) + (end if said else b"")
    cuts = data.draw(st.lists(st.integers(0, len(body)), max_size=12).map(sorted))
    pieces = [body[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    if said and not end and not said[-1]:
        said = said[:-1]  # nothing is behind the last end
    assert asyncio.run(_read([each for each in pieces if each])) == [
        each if len(each) <= LIMIT else None for each in said
    ]
