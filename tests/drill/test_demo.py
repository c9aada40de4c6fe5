"""The demo's picture, its words, and one short run of the real thing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from drill.recording import Scrape
from drill.screen import ASCII, BLOCKS, Glyphs, State, frame, plain, sparkline
from drill.sidecar import Cost, Reading, parsed
from drill.story import LINES, ROWS, new_events, percent, seconds, size
from drill.summary import NEXT, Run, failures, report

ROOT = Path(__file__).resolve().parents[2]
ESCAPE = "\x1b"


def reading(**changed: float) -> Reading:
    values = {
        "usage": 0.97,
        "demand": 2.5,
        "waiting": 52.0,
        "swapped": 1.0,
        "preemptions": 9.0,
        "each": 800.0,
        **changed,
    }
    whose = 'engine="e",model_name="m",rank="0"'
    page = f"""
thrashold_source_up{{source="e"}} 1
thrashold_kv_usage_ratio{{{whose}}} {values["usage"]}
thrashold_kv_usage_ratio_peak{{{whose}}} 1
thrashold_kv_demand_ratio{{{whose}}} {values["demand"]}
thrashold_sequences{{state="running",{whose}}} 11
thrashold_sequences{{state="waiting",{whose}}} {values["waiting"]}
thrashold_swapped_sequences{{{whose}}} {values["swapped"]}
thrashold_preemptions_total{{{whose}}} {values["preemptions"]}
thrashold_tokens_per_preemption{{{whose}}} {values["each"]}
thrashold_swap_bytes_estimate_total{{{whose}}} 58635080
thrashold_pingpong_ratio{{method="bound",{whose}}} 0
thrashold_client_aborts_total{{engine="e"}} 77
thrashold_signal_info{{signal="kv_usage_ratio",confidence="measured",method="gauge"}} 1
thrashold_signal_info{{signal="thrashold_pingpong_ratio",confidence="lower_bound",method="x"}} 1
"""
    return parsed(page)


CALM = reading(usage=0.16, demand=0.2, waiting=0, swapped=0, preemptions=0)
PHASES = ((12.0, "load"), (82.0, "overload"), (float("inf"), "after"))


def state(elapsed: float, *readings: Reading) -> State:
    history = tuple((float(second), each) for second, each in enumerate(readings))
    events = new_events((), elapsed, readings[-1]) if readings else ()
    return State(elapsed, 86.0, "http://127.0.0.1:54321", PHASES, history, events)


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
    assert " 58.6 MB " in rows["swapped out so far"]
    assert rows["first token, p99"].endswith("needs 47 s more")
    assert "absent" in rows["slow first tokens"]
    assert " 0:13  1 swapped out: zero-swap invariant broken. Drain, restart this worker" in lines


def test_colour_changes_nothing_but_colour() -> None:
    shown = state(13.0, CALM, reading())
    coloured = frame(shown, 80, colour=True)
    assert ESCAPE in coloured
    bare = [line.rstrip() for line in re.sub(r"\x1b\[\d*m", "", coloured).split("\n")]
    assert bare == frame(shown, 80, colour=False).split("\n")


def test_a_short_terminal_keeps_the_bar_and_the_newest_events() -> None:
    shown = state(13.0, CALM, reading())
    for height in range(3, 40):
        assert len(frame(shown, 80, colour=False, height=height).split("\n")) <= max(height, 6)
    lines = frame(shown, 80, colour=False, height=len(ROWS) + 5 + 2).split("\n")
    assert lines[-2] == ""
    assert lines[-1] == f" 0:13  {shown.events[-1].text}"


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


def test_each_line_speaks_once_and_in_80_columns() -> None:
    first = new_events((), 1.0, reading())
    assert [event.key for event in first] == [
        "demand",
        "memory",
        "swap",
        "preemptions",
        "tokens per preemption",
    ]
    assert new_events(first, 2.0, reading()) == ()
    after = new_events(first, 3.0, reading(usage=0.3, waiting=0))
    assert [(event.key, event.is_good) for event in after] == [("relieved", True)]
    assert [event.key for event in new_events(first + after, 4.0, reading())] == ["clients"]
    assert max(len(event.text) for event in first + after) <= 80 - len(" 0:13  ")


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"demand": 1.0}, "demand"),
        ({"usage": 0.90}, "memory"),
        ({"waiting": 0}, "memory"),
        ({"swapped": 0}, "swap"),
        ({"preemptions": 0}, "preemptions"),
    ],
)
def test_a_line_that_is_only_reached_is_not_crossed(changed: dict[str, float], key: str) -> None:
    assert key in {line.key for line in LINES}
    assert key not in {event.key for event in new_events((), 0.0, reading(**changed))}


def test_tokens_per_preemption_tell_thrash_from_a_full_pool() -> None:
    def said(each: float) -> str:
        events = new_events((), 0.0, reading(each=each))
        return next(event.text for event in events if event.key == "tokens per preemption")

    assert said(2) == "only 2 tokens per preemption: thrash"
    assert said(100) == "100 tokens per preemption: close to thrash (that is below 50)"
    assert said(800) == "800 tokens per preemption: full, but not thrashing (that is below 50)"


def page(usage: float, preemptions: float) -> bytes:
    return f'vllm:gpu_cache_usage_perc{{m="x"}} {usage}\nvllm:num_preemptions_total{{m="x"}} {preemptions}\n'.encode()


def run(*readings: Reading, reads: int = 86) -> Run:
    history = tuple((float(second), each) for second, each in enumerate(readings))
    played = (
        Scrape(17.0, "load", page(0.1, 0)),
        Scrape(30.0, "overload", page(0.97, 9)),
        Scrape(33.0, "after", page(0.0, 9)),
    )
    events = new_events((), 0.0, readings[-1]) if readings else ()
    return Run(86.0, played, history, events, departures=77, reads=reads, cost=Cost(0.43, 46e6))


def test_a_run_that_saw_the_story_has_no_failures() -> None:
    assert failures(run(CALM, reading())) == []


def test_a_run_that_missed_something_says_what() -> None:
    assert failures(run()) == ["the sidecar was never read"]
    assert failures(run(reading(), reads=3)) == ["the sidecar read the engine only 3 times in 86 s"]
    assert failures(run(CALM)) == [
        "preemptions moved on the engine's page (vllm:num_preemptions_total), but not in the sidecar"
    ]
    assert failures(run(Reading({}, {})))[0] == "the sidecar no longer reads the engine (source_up is None)"


def test_what_the_engine_said_last_may_still_be_on_its_way() -> None:
    full = run(CALM)
    assert failures(replace(full, played=full.played[:2])) == []


def test_the_report_keeps_to_the_width_and_scales_the_swap() -> None:
    text = report(run(CALM, reading()), 80)
    assert max(map(len, (text + "\n" + NEXT).split("\n"))) <= 80
    words = " ".join(text.split())
    assert "peaked at 97% with up to 52 sequences waiting, and stands at 97%." in words
    assert "800 tokens were generated for each: a full pool, not yet thrash" in words
    assert "on the incident's model, at 320 KiB a token, it is 37.5 GB each way." in words
    assert "77 clients left early; vLLM itself counts 0, the clients' own log 77." in words
    assert "with 0.5% of one core and at most 46.0 MB of memory." in words


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


def demo(*arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "COLUMNS": "80", "THRASHOLD_LISTEN": "not an address"}
    return subprocess.Popen(
        [sys.executable, "-m", "drill.demo", *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_short_run_end_to_end() -> None:
    with demo("--from", "26", "--seconds", "8") as process:
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert ESCAPE not in output
    assert max(map(len, output.split("\n"))) <= 80
    # Which numbers it is that a read meets depends on when it comes; that demand told it first does not.
    asked = re.search(r"\*\* asked for [\d.]+ x the KV pool, while usage still says \d+%", output)
    assert asked is not None, output
    assert asked.start() < output.index("zero-swap invariant broken")
    assert "WHERE TO LOOK NEXT" in output


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc to find the sidecar's process")
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_ended_early_it_leaves_no_process_behind(kind: signal.Signals) -> None:
    with demo() as process:
        assert process.stdout is not None
        while "calm load" not in (line := process.stdout.readline()):
            assert line, "the demo ended before it began to play"
        (sidecar,) = children(process.pid)
        process.send_signal(kind)
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 130
        assert output.endswith("stopped; the sidecar and the replayed engine are gone too\n")
        deadline = time.monotonic() + 30
        while Path(f"/proc/{sidecar}").exists():
            assert time.monotonic() < deadline, "the sidecar outlived the demo"
            time.sleep(0.05)


def test_a_part_that_the_recording_has_not_is_refused() -> None:
    with demo("--from", "100", "--seconds", "60") as process:
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "the recording ends at second 110: begin or end earlier" in output
