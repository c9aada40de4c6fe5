"""``thrashold drill list``, and how a run says where it stands."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from alerts.causes import Cause
from drill.actions import Restart
from drill.command import drill
from drill.playing.progress import Progress
from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.listing import as_table
from drill.scenarios.scene import Episode, Scene
from drill.scenarios.setting import Setting, Size
from drill.serving.config import Generation
from drill.words import minute

SCENE: Scene = replace(
    SCENARIOS["overload"].scene(Setting(engines=1)),
    seconds=20,
    start_seconds=6.0,
    plan=((5.0, Restart("engine-0", drain_seconds=0.0)),),
    episodes=(Episode("overload", Cause.OVERLOAD, 4.0, 12.0, ("engine-0",)),),
)


def test_the_list_has_every_scenario_with_its_cause_and_its_sizes() -> None:
    result = CliRunner().invoke(drill, ["list", "--json"])
    assert result.exit_code == 0
    listed = json.loads(result.output)
    assert [each["name"] for each in listed] == sorted(SCENARIOS)
    for each in listed:
        scenario = SCENARIOS[each["name"]]
        assert (each["cause"], each["summary"]) == (scenario.cause, scenario.summary)
        for size in Size:
            scene = scenario.scene(Setting(size))
            assert each[size] == {"engines": len(scene.engines), "seconds": scene.seconds}


def test_the_table_has_a_column_for_each() -> None:
    lines = CliRunner().invoke(drill, ["list"]).output.splitlines()
    assert len(lines) == 1 + len(SCENARIOS)
    head, rows = lines[0], {line.split()[0]: line for line in lines[1:]}
    column = {name: head.index(name) for name in ("cause", "small", "full", "what happens")}
    for name, row in rows.items():
        cause = SCENARIOS[name].cause
        assert row[column["cause"] :].startswith("nothing  " if cause is None else f"{cause}  ")
        assert row[column["what happens"] :] == SCENARIOS[name].summary
    assert rows["benign-day"][column["full"] :].startswith("2 engines, 24 h  ")


def test_on_a_narrow_terminal_what_happens_stands_below() -> None:
    found = [SCENARIOS[name] for name in sorted(SCENARIOS)]
    wide = as_table(found).splitlines()
    assert as_table(found, max(map(len, wide))).splitlines() == wide
    lines = as_table(found, 80).splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines if line[0] != " "] == [
        "scenario",
        *(each.name for each in found),
    ]
    assert " ".join(" ".join(lines).split()) == " ".join(" ".join(wide).split())


def told(*, live: bool, every: int) -> str:
    stream = io.StringIO()
    progress = Progress(SCENE, stream, live=live, every=every)
    for second in SCENE.fleet(1).run(SCENE.seconds):
        progress.see(second, 3.2 if second.seconds == 20 else 0.0)
    progress.say("said")
    progress.end()
    return stream.getvalue()


def test_elsewhere_than_on_a_terminal_it_is_lines_now_and_then() -> None:
    text = told(live=False, every=10)
    assert "\r" not in text
    assert "\x1b" not in text
    lines = text.splitlines()
    assert lines[:3] == [
        "  0:04  onset of overload: engine-0",
        "  0:05  engine-0: drain and restart",
        "  0:10 of 0:20, in overload, engine-0 starting, 0 requests in flight",
    ]
    assert lines[3] == "  0:12  end of overload: engine-0"
    assert lines[4].startswith("  0:20 of 0:20, ")
    assert lines[4].endswith(" requests in flight, 3 s late")
    assert lines[5:] == ["said"]


def test_on_a_terminal_one_line_is_written_over_and_never_wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    text = told(live=True, every=1)
    assert text.endswith("\n")
    shown = text.split("\r\x1b[K")[1:]
    assert len(shown) == 20 + 3 + 1
    assert [line for line in shown if line.endswith("\n")][:2] == [
        "  0:04  onset of overload: engine-0\n",
        "  0:05  engine-0: drain and restart\n",
    ]
    assert max(map(len, shown)) <= 40
    assert shown[0].startswith("  0:01 of 0:20, overload in 0:03, ")


def test_a_run_keeps_its_results_apart_from_what_it_says_meanwhile(tmp_path: Path) -> None:
    scene = SCENARIOS["gpu-lost"].scene(Setting(engines=1))
    result = CliRunner().invoke(drill, ["run", "gpu-lost", "--engines", "1", "--out", str(tmp_path)])
    assert result.exit_code == 0
    assert "TPOT p99" in result.stdout
    assert "requests in flight" not in result.stdout
    assert result.stderr.count(f" of {minute(scene.seconds)}, ") == 10
    assert "  engine-0: GPU 0 lost\n" in result.stderr
    assert "  onset of gpu-lost: engine-0\n" in result.stderr


@pytest.mark.parametrize("command", ["run", "serve"])
@pytest.mark.parametrize(
    "choice", [*(("--size", each) for each in Size), *(("--generation", each) for each in Generation)]
)
def test_choices_are_called_as_they_are_written(command: str, choice: tuple[str, str]) -> None:
    # refused for what comes after it
    result = CliRunner().invoke(drill, [command, "overload", *map(str, choice), "--engines", "0"])
    assert "0 engines asked for" in result.output
    assert result.exit_code == 2
