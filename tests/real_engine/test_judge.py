"""The judges themselves: who says nothing passes nothing."""

from __future__ import annotations

import dataclasses

import pytest

from tests.real_engine import judge_gateway, report
from tests.real_engine.judging import instants
from tests.real_engine.recorder import Row, Value
from tests.real_engine.recording import Recording
from tests.real_engine.truth import End, Oracle, Preemption, Request, Step, Toggled

STOPS = [f"{name}_stop{part}" for name in ("short", "long") for part in ("", "_over", "_settled")]
LOADS = ["load", "load_over", "overload", "overload_over", "quiet_over"]
MARKS = ["watching", "ready", *LOADS, "toggle", "toggle_over", *STOPS, "kill", "gone", "over", "cost"]
SILENT = Recording(
    rows=[Row(float(at), 0.01, "", []) for at in range(400)],
    oracle=Oracle(
        [Step(at / 10, 2, 31) for at in range(4000)],
        [Preemption(float(at), "a") for at in range(400)],
        [End(float(at), "a", aborted=at % 2 == 0, preemptions=2, untold=0) for at in range(400)],
    ),
    requests=[Request("steady", 0.0, 399.0, "done", 100, 1.0, 399.0, 1.0)],
    marks={mark: 20.0 * i for i, mark in enumerate(MARKS)},
    facts={"engine": "here:1"},
    probed=[Row(float(at), 0.01, "", []) for at in range(400)],
    toggled=[Toggled(at % 2 == 0, at / 100, 0.001) for at in range(400)],
)


def held(run: Recording) -> set[str]:
    return {name for name, figure in report.judged(run).items() if figure.holds}


def test_a_sidecar_that_says_nothing_fails_every_claim_but_those_of_being_there() -> None:
    assert held(SILENT) == {"always answers", "requests survive the stop", "unknown is absent"}


def test_a_gauge_before_the_first_answer_is_a_made_up_one() -> None:
    zero = Value("kv_usage_ratio", {"engine": "here:1"}, 0.0, "gauge")
    early = SILENT.rows[3]._replace(values=[zero])
    run = dataclasses.replace(SILENT, rows=[*SILENT.rows[:3], early, *SILENT.rows[4:]])
    assert "unknown is absent" not in held(run)


def test_one_failed_scrape_is_told() -> None:
    failed = SILENT.rows[3]._replace(error="timeout")
    run = dataclasses.replace(SILENT, rows=[*SILENT.rows[:3], failed, *SILENT.rows[4:]])
    assert "always answers" not in held(run)


def test_the_table_says_what_is_true_beside_what_was_measured() -> None:
    lines = report.table(report.judged(SILENT))
    assert lines[0].split() == ["figure", "measured", "true", "allowed"]
    assert any(line.startswith("preemptions") and " NO " in line for line in lines)


def looks(*claims: float | None, seconds: float = 0.05) -> list[judge_gateway.Told]:
    """A look each quarter of a second, each of them taking so long."""
    return [
        {
            "began": at / 4,
            "at": at / 4 + seconds / 2,
            "over": at / 4 + seconds,
            "running": 0.0,
            "said": [
                *([] if claim is None else [("orphan_sequences", {"gateway": "g"}, claim)]),
                ("source_read_seconds", {"source": "e"}, 0.01),
                ("cycles_skipped_total", {}, 0.0),
            ],
        }
        for at, claim in enumerate(claims)
    ]


def test_an_orphan_that_the_engine_freed_at_once_is_a_false_claim_and_the_line_says_when() -> None:
    claims = looks(*[0.0] * 20, 1.0, None, *[0.0] * 9)
    (line,) = judge_gateway.false_claims(claims, [(4.0, 4.1)])
    assert line.startswith("1 orphans after 5.0 s, of which 0 were held")
    assert judge_gateway.false_claims(claims, [(4.0, 4.95)]) == []
    assert judge_gateway.false_claims(looks(*[0.0] * 20, 2.0), [(4.0, 4.95)]) != []


def test_an_orphan_may_be_claimed_until_the_sidecar_must_have_seen_it_gone_and_no_longer() -> None:
    held = [(0.0, 1.0)]
    assert judge_gateway.false_claims(looks(*[1.0] * 17), held) == []
    assert len(judge_gateway.false_claims(looks(*[1.0] * 20), held)) == 2


def test_what_a_machine_is_allowed_grows_by_what_it_was_seen_to_be_late() -> None:
    assert judge_gateway.allowed(looks(0.0, 0.0)) == pytest.approx(3.0 + 0.05 + 0.25)
    slow = looks(0.0, 0.0, seconds=1.5)
    slow[1]["said"][1:] = [("source_read_seconds", {"source": "e"}, 0.5), ("cycles_skipped_total", {}, 2.0)]
    assert judge_gateway.allowed(slow) == pytest.approx(3.0 + 1.5 + 0.25 + 2.5 + 2.0)
    assert judge_gateway.quick(slow) == []


def read(at: float, seconds: float) -> Row:
    """A scrape just after a read of the engine that took so long."""
    told = [("source_age_seconds", 0.2), ("source_read_seconds", seconds)]
    return Row(at, 0.01, "", [Value(name, {"source": "here:1"}, value, "gauge") for name, value in told])


@pytest.mark.parametrize(("slow", "holds"), [(0, True), (9, True), (12, False)])
def test_reads_that_took_long_are_left_out_and_too_many_of_them_are_told(slow: int, holds: bool) -> None:  # noqa: FBT001
    marks = SILENT.marks | {"overload": 100.0, "overload_over": 139.0}
    rows = [read(100.0 + at, 1.5 if at < slow else 0.01) for at in range(40)]
    run = dataclasses.replace(SILENT, rows=rows, marks=marks)
    assert ("pace of the machine" in held(run)) is holds
    assert len(list(instants(run, "overload", "overload_over"))) == 40 - slow


def test_few_reads_are_too_few_however_quick() -> None:
    marks = SILENT.marks | {"overload": 100.0, "overload_over": 139.0}
    run = dataclasses.replace(SILENT, rows=[read(100.0 + 2 * at, 0.01) for at in range(20)], marks=marks)
    assert "pace of the machine" not in held(run)


def test_a_stall_is_held_against_the_scheduler_s_own_standstills() -> None:
    begin = SILENT.marks["short_stop"]
    steps = [step for step in SILENT.oracle.steps if not begin + 1 < step.at < begin + 8]
    counted = [
        row._replace(
            values=[Value("decode_stall_seconds_total", {}, 7.4 if row.at > begin + 8 else 0.0, "counter")]
        )
        for row in SILENT.rows
    ]
    stalled = dataclasses.replace(SILENT, rows=counted, oracle=SILENT.oracle._replace(steps=steps))
    assert "decode stall" in held(stalled)
    assert "decode stall" not in held(dataclasses.replace(stalled, oracle=SILENT.oracle))
