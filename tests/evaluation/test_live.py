"""The way of an alert from an engine's page to a person, with all of its programs, and what is measured of it."""

from __future__ import annotations

import contextlib
import math
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from alerts.alert import Severity
from alerts.pack_settings import AlertSettings, PackSettings
from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.setting import Setting
from exporter.recorder_reader import Recording
from tests.evaluation.live import after_seconds
from tests.evaluation.live import arguments as asked_of
from tests.evaluation.live_figures import figures, measure
from tests.evaluation.live_stack import CLUSTER, Pace, live
from tests.evaluation.live_webhook import Notification, read
from tests.support.alertmanager import PACKAGE
from tests.support.prometheus import tool

PAGED_SECONDS = 240.0
"""On a busy machine; on an idle one it takes some 15, of which Alertmanager waits 10."""


def test_an_engine_s_fault_reaches_a_person_with_its_runbook_and_ctrl_c_ends_all_of_it(
    tmp_path: Path,
) -> None:
    tool("prometheus")
    tool("prometheus-alertmanager", PACKAGE)
    at_once = AlertSettings(severity=Severity.PAGE, for_seconds=0)
    settings = PackSettings(alerts={"KvSwapEnabled": at_once})
    drill = ["incident", "--engines", "1"]
    with contextlib.suppress(KeyboardInterrupt), live(tmp_path, drill, settings, Pace(1)) as stack:
        until = time.monotonic() + PAGED_SECONDS
        heard = stack.webhook.heard
        while not {"page", "watchdog"} <= {each.receiver for each in heard}:
            assert stack.served.running, stack.served.log.read_text()
            assert time.monotonic() < until, heard
            time.sleep(0.1)
        raise KeyboardInterrupt
    told = next(each for each in heard if each.receiver == "page").firing[0]
    assert (told.name, told.cause) == ("KvSwapEnabled", "swap-thrash")
    assert told.labels["cluster"] == CLUSTER
    assert told.labels["engine"] == "engine-0"
    assert told.runbook.endswith("/KvSwapEnabled.md")
    # all of it has ended, and what it kept is whole
    assert not stack.served.running
    for url in (stack.prometheus.url, *stack.sidecars):
        with pytest.raises(httpx.ConnectError):
            httpx.get(url, trust_env=False)
    assert (tmp_path / "truth.json").is_file()
    with Recording(stack.recordings["engine-0"]) as recording:
        assert recording.cycles() > 0


def notification(at: float, receiver: str, *alerts: tuple[str, str, str]) -> Notification:
    """``alerts``: name, status, cause."""
    return read(
        at,
        {
            "receiver": receiver,
            "alerts": [
                {"labels": {"alertname": name, "cause": cause}, "status": status, "fingerprint": name}
                for name, status, cause in alerts
            ],
        },
    )


def truth(swapped: list[float], repeated: list[int]) -> dict[str, Any]:
    """Of one engine, a second a value, from 1000 on; the onset is at 1002."""
    return {
        "cause": "swap-thrash",
        "onset": 1002.0,
        "seconds": [1001.0 + place for place in range(len(swapped))],
        "engines": {"a": {"swap_in_bytes": swapped, "repeat_preemptions_30s": repeated}},
    }


STORY = (
    notification(1001.0, "tell", ("TailWaste", "firing", "tail-waste")),
    notification(1003.0, "watchdog", ("Watchdog", "firing", "not-watched")),
    notification(1030.0, "page", ("RetryStorm", "firing", "retry-storm")),
    notification(1040.0, "page", ("KvSequencesSwapped", "firing", "swap-thrash")),
    notification(1400.0, "page", ("KvSequencesSwapped", "resolved", "swap-thrash")),
    notification(1700.0, "page", ("KvSequencesSwapped", "firing", "swap-thrash")),
)


def test_who_was_told_when_is_counted_from_the_onset_on_and_for_people_alone() -> None:
    measured = measure(
        truth([9.0, 0.0, 0.0, 5.0], [0, 0, 1, 0]),
        STORY,
        {"a": {1001.0: 5.0, 1110.0: 2.5, 1111.0: 2.0}, "b": {1120.0: 3.0, 1121.0: 3.0}},
    )
    assert (measured.trouble, measured.any_page, measured.page, measured.slow) == (
        1003.0,
        1030.0,
        1040.0,
        1110.0,
    )
    assert measured.slow_seconds == 2
    assert (measured.told, measured.pages, measured.before, measured.flaps) == (4, 3, 1, 1)
    found = {each.name: (each.value, each.met) for each in figures(measured, ramp=False)}
    assert found == {
        "first swap-in or repeat preemption to page": (37.0, True),
        "page to TPOT p99 above 2 s": (70.0, True),
        "notifications": (4.0, True),
        "notifications before the onset": (1.0, False),
        "notifications of a flap": (1.0, False),
    }


def test_a_lead_on_a_ramp_has_to_be_a_minute_and_a_page_that_never_came_is_no_page() -> None:
    late = measure(truth([0.0, 0.0, 5.0], [0, 0, 0]), STORY, {"a": {1090.0: 2.5}})
    assert {each.name: each.met for each in figures(late, ramp=True)}["page to TPOT p99 above 2 s"] is False
    never = figures(measure(truth([0.0, 0.0, 5.0], [0, 0, 0]), STORY[:3], {"a": {1090.0: 2.5}}), ramp=False)
    assert [math.isnan(each.value) for each in never[:2]] == [True, True]
    assert [each.met for each in never[:2]] == [False, False]


def test_where_nothing_goes_wrong_nobody_may_be_told() -> None:
    quiet = truth([0.0], [0]) | {"cause": None, "onset": None}
    assert [each.met for each in figures(measure(quiet, STORY[:1], {}), ramp=False)] == [False, True, True]
    assert all(each.met for each in figures(measure(quiet, (), {}), ramp=False))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], "invalid choice: 'nothing'"),
        (["incident", "--ramp", "100000"], "take 470 or less"),
        (["incident", "--seconds", "0"], "--seconds is 0: take 1 or more"),
        (["incident", "--speed", "0"], "--speed is 0: take a number above 0"),
    ],
)
def test_what_cannot_be_run_is_refused(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        asked_of(arguments)
    assert refused.value.code == 2
    assert words in capsys.readouterr().err


def test_it_lasts_until_it_is_told_that_pages_are_over(capsys: pytest.CaptureFixture[str]) -> None:
    tool("prometheus")
    tool("prometheus-alertmanager", PACKAGE)
    asked = asked_of(["incident"])
    ends = max(round(each.end_seconds) for each in SCENARIOS["incident"].scene(Setting()).episodes)
    assert asked.seconds == ends + after_seconds()
    assert asked_of(["incident", "--seconds", "100"]).seconds == 100
    assert not capsys.readouterr().err
