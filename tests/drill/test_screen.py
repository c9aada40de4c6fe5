"""The demo's picture."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from drill.rows import ROWS
from drill.screen import ASCII, BLOCKS, Glyphs, frame, plain, sparkline
from drill.sidecar import Reading
from drill.story import Event
from drill.words import percent, seconds, size
from exporter.catalogue import SIGNALS
from tests.drill.readings import CALM, reading, state, without

ESCAPE = "\x1b"


@pytest.mark.parametrize("width", [20, 40, 60, 79, 80, 81, 100, 200])
@pytest.mark.parametrize("glyphs", [BLOCKS, ASCII])
def test_no_line_is_longer_than_the_terminal(width: int, glyphs: Glyphs) -> None:
    for shown in (state(0.0), state(13.0, CALM, reading()), state(86.0, *[reading()] * 86)):
        lines = frame(shown, width, colour=False, glyphs=glyphs).split("\n")
        assert max(map(len, lines)) <= width
        assert ESCAPE not in "".join(lines)
        assert max(map(len, plain(shown, max(width, 40)).split("\n"))) <= max(width, 40)


def test_a_frame_at_80_columns_tells_the_story() -> None:
    lines = frame(state(13.0, CALM, reading()), 80, colour=False).split("\n")
    assert lines[0].startswith("thrashold ")
    assert lines[0].endswith(" 127.0.0.1:54321")
    assert lines[2].startswith("OVERLOAD  █████████░")
    assert lines[2].endswith("░ 0:13 / 1:26")
    rows = {line[:19].strip(): line for line in lines[5:]}
    assert re.search(r"^KV cache in use     97%  \(peak 100%\) .* measured$", rows["KV cache in use"])
    assert re.search(r" 0: not proven .* lower bound$", rows["ping-pong, at least"])
    assert " 72% of tokens " in rows["moved or recomputed"]
    assert " 58.6 MB " in rows["swapped out so far"]
    assert rows["first token, p99"].endswith("needs 47 s more")
    assert "absent" in rows["slow first tokens"]
    assert " 0:13  1 swapped out: zero-swap invariant broken. Find out why swap is on" in lines


def test_colour_changes_nothing_but_colour() -> None:
    shown = state(13.0, CALM, reading())
    coloured = frame(shown, 80, colour=True)
    assert ESCAPE in coloured
    bare = [line.rstrip() for line in re.sub(r"\x1b\[\d*m", "", coloured).split("\n")]
    assert bare == frame(shown, 80, colour=False).split("\n")


def test_a_short_terminal_keeps_the_bar_and_the_newest_events() -> None:
    shown = state(13.0, CALM, reading())
    for height in range(3, 40):
        lines = frame(shown, 80, colour=False, height=height).split("\n")
        assert len(lines) <= max(height, 4)
        assert lines[0].startswith("thrashold")
        if height >= 6:
            assert lines[-1] == f" 0:13  {shown.events[-1].text}"


def test_24_lines_hold_the_whole_story_and_the_rows_that_tell_most() -> None:
    """As many lines as the demo's recording gives; the first of them is the best."""
    keys = ["demand", "memory", "swap", "preemptions", "full", "first token", "relieved", "clients"]
    events = tuple(Event(13.0 + second, key, key) for second, key in enumerate(keys))
    shown = replace(state(86.0, CALM, reading()), events=events)
    lines = frame(shown, 80, colour=False, height=24).split("\n")
    assert len(lines) == 24
    assert [line[7:] for line in lines[-8:]] == keys
    assert lines[2].startswith("signal (12 of 16)   now ")
    rows = [line[:19].strip() for line in lines[3:15]]
    assert rows[:3] == ["KV cache in use", "KV asked for / pool", "sequences waiting"]
    assert rows[-1] == "thrashing"
    assert "tail fragmentation" not in rows


def test_rows_stand_still_while_events_come() -> None:
    shown = state(13.0, CALM, reading())
    silent = replace(shown, events=()), shown
    pictures = [frame(each, 80, colour=False, height=24).split("\n")[:15] for each in silent]
    assert pictures[0] == pictures[1]


@pytest.mark.parametrize("height", [30, 40, None])
def test_where_there_is_room_all_is_shown(height: int | None) -> None:
    lines = frame(state(13.0, CALM, reading()), 80, colour=False, height=height).split("\n")
    assert lines[1] == lines[3] == ""
    assert [line[:19].strip() for line in lines[5 : 5 + len(ROWS)]] == [row.title for row in ROWS]
    assert lines[4].startswith("signal ")
    assert " of " not in lines[4]


def test_before_the_burst_the_frame_says_when_it_comes() -> None:
    calm = replace(state(3.0, CALM), events=())
    assert frame(calm, 80, colour=False).endswith("The burst comes at 0:12.")
    assert "The burst" not in frame(replace(state(13.0, CALM), events=()), 80, colour=False)


def test_an_absent_value_is_blank_and_a_zero_is_not() -> None:
    usage = ROWS[0]
    shown = replace(
        state(0.0), history=((0.0, reading(usage=0)), (43.0, Reading({}, {})), (85.9, reading(usage=1)))
    )
    assert sparkline(usage, shown, 5, BLOCKS) == "▁   █"


def test_more_cells_than_readings_leave_no_holes() -> None:
    shown = replace(state(0.0, *[reading(usage=0.5)] * 4), total=4.0)
    assert sparkline(ROWS[0], shown, 9, BLOCKS) == "▅▅▅▅▅▅▅  "


def test_plain_lines_hold_the_same_numbers() -> None:
    text = " ".join(plain(state(13.0, CALM, reading()), 80).split())
    assert text.startswith("0:13 OVERLOAD: KV 97% (peak 100%), demand 2.50 x, running 11, waiting 52,")
    assert "ping-pong 0: not proven" in text
    assert ESCAPE not in text


def test_what_is_not_known_yet_says_so() -> None:
    early, late = state(13.0, without(CALM, "thrashing")), state(60.0, without(CALM, "thrashing"))
    assert f"{'thrashing':<19} needs 17 s more" in frame(early, 80, colour=False)
    assert f"{'thrashing':<19} not known yet" in frame(late, 80, colour=False)
    words = " ".join(plain(early, 80).split())
    assert words.endswith("; not known yet: token gap, TTFT p99, thrashing")
    assert "thrashing" not in plain(late, 80)


def test_each_row_shows_a_signal_and_waits_for_its_window() -> None:
    # what these two look further back for only adds to what they know by then
    sooner = {"thrashing": 30.0, "pingpong_ratio": 30.0}
    catalogue = {signal.name: signal for signal in SIGNALS}
    for row in ROWS:
        signal = catalogue[row.signal]
        known = sooner.get(row.signal, signal.window_seconds)
        assert row.window in {0, known}, row.title


def test_numbers_are_worded_short() -> None:
    assert [
        percent(0.974),
        seconds(0.0062),
        seconds(19.89),
        size(0),
        size(999),
        size(58.6e6),
        size(2e15),
    ] == [
        "97%",
        "6.2 ms",
        "19.9 s",
        "0 B",
        "999 B",
        "58.6 MB",
        "2000.0 TB",
    ]
