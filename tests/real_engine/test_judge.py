"""The judges themselves: who says nothing passes nothing."""

from __future__ import annotations

import dataclasses

from tests.real_engine import report
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
