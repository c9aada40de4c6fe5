from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from exporter.sources.lines import Lines


@given(st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")), max_size=9), st.data())
def test_lines_come_whole_however_they_arrive_and_those_too_long_do_not_come(
    lines: list[bytes], data: st.DataObject
) -> None:
    got: list[bytes] = []
    cutter = Lines(6, got.append)
    stream = b"".join(line + b"\n" for line in lines)
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        cutter.feed(stream[:size])
        stream = stream[size:]
    assert got == [line for line in lines if len(line) <= 6]
    assert cutter.dropped == len(lines) - len(got)


def test_of_a_line_without_end_nothing_is_kept() -> None:
    got: list[bytes] = []
    cutter = Lines(100, got.append)
    for _ in range(1000):
        cutter.feed(b"x" * 64)
    cutter.feed(b"\nshort\n")
    assert got == [b"short"]
