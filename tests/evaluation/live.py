"""Plays a scenario to the whole stack in real time and says how soon, and how often, people were told.

    python -m tests.evaluation.live incident [--size full] [--ramp 240] [--out DIR]

Prints a timeline and writes ``live.json`` into the folder, beside all logs, recordings and the truth. Exit code 1 where
a bar is missed, 130 where it was broken off, with the figures until then. What is measured: docs/alerts-live.md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import re
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx

from alerts.alertmanager import PAGE, PEOPLE, configuration
from alerts.catalogue import ALERTS
from alerts.pack_settings import PackSettings
from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.setting import Setting, SettingError, Size
from drill.terminal import is_live
from tests.bench.report import Figure, line, load
from tests.evaluation.live_figures import figures, measure, tpot_p99_of
from tests.evaluation.live_stack import Pace, Stack, live
from tests.evaluation.live_timeline import Timeline

PROGRAMS = {
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "prometheus-alertmanager": "prometheus-alertmanager",
}
RESULT = "live.json"
_ASK_SECONDS, _SILENT_SECONDS = 5.0, 60.0
_GRACE = 1.5
"""A drill that falls behind lasts longer; one that lasts so much longer measures nothing any more."""
_LATE_RATIO = 0.05
"""Of its time, by which a drill may be late on a busy machine: all rates are read so much too low."""
BROKEN_OFF = 130
_IS_EVENT = re.compile(r" *\d+:\d\d  |falls behind")
"""Of what the drill says: what is done and what goes wrong, not how far it is."""


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """Of the command. Raises SystemExit with what is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.evaluation.live", description=__doc__.partition("\n")[0]
    )
    parser.add_argument(
        "scenario", choices=sorted(SCENARIOS), metavar="SCENARIO", help=", ".join(sorted(SCENARIOS))
    )
    parser.add_argument("--size", choices=[each.value for each in Size], default=Size.SMALL.value)
    parser.add_argument("--ramp", type=float, default=0.0, metavar="SECONDS", help="let load rise slowly")
    parser.add_argument("--engines", type=int, help="how many; the scenario's own unless set")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, help="of the drill; until all has been told of, unless set")
    parser.add_argument("--speed", type=float, default=1.0, help="other than 1 nothing is judged")
    parser.add_argument("--out", type=Path, help="where to; live-SCENARIO unless set")
    asked = parser.parse_args(given)
    if not (asked.speed > 0 and math.isfinite(asked.speed)):
        parser.error(f"--speed is {asked.speed:g}: take a number above 0")
    if asked.seconds is not None and asked.seconds < 1:
        parser.error(f"--seconds is {asked.seconds}: take 1 or more")
    try:
        setting = Setting(Size(asked.size), asked.seed, engines=asked.engines, ramp_seconds=asked.ramp)
        scene = SCENARIOS[asked.scenario].scene(setting)
    except SettingError as error:
        parser.error(str(error))
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None:
            parser.error(f"no {program} here: apt-get install -y --no-install-recommends {package}")
    if asked.seconds is None:
        ends = [round(each.end_seconds) + after_seconds() for each in scene.episodes]
        asked.seconds = max([scene.seconds, *ends])
    asked.out = (asked.out or Path(f"live-{asked.scenario}")).resolve()
    return asked


def after_seconds() -> int:
    """From the end of what went wrong until Alertmanager has told that pages are over.

    They go on firing for a time, and a group that was told of isn't told of again before its interval has passed.
    """
    route = configuration(PackSettings())["route"]
    (page,) = [each for each in route["routes"] if each["receiver"] == PAGE]
    longest = max(int(each["group_interval"].removesuffix("m")) for each in (page, *page["routes"]))
    keeps = max(each.keep_firing_seconds for each in ALERTS.values())
    return keeps + longest * 60 + 60


def watch(stack: Stack, timeline: Timeline, until: float) -> None:
    """Tell of all that happens until the drill has ended.

    Raises TimeoutError where it should have long since, or where Prometheus gives no answer for a minute.
    """
    told, asked_at, answered_at = 0, 0.0, time.time()
    while stack.served.running:
        if time.time() > until:
            raise TimeoutError("the drill falls so far behind that there is nothing to measure")
        for words in stack.served.new_lines():
            if _IS_EVENT.match(words):
                timeline.say("drill", words.strip())
        heard = [each for each in list(stack.webhook.heard) if each.receiver in PEOPLE]
        for notification in heard[told:]:
            timeline.hear(notification)
        told = len(heard)
        if time.time() - asked_at >= _ASK_SECONDS:
            asked_at = time.time()
            with contextlib.suppress(httpx.HTTPError):
                timeline.alerts(stack.prometheus.alerts())
                answered_at = time.time()
            if time.time() - answered_at > _SILENT_SECONDS:
                raise TimeoutError(f"{stack.prometheus.url} gives no answer any more")
        timeline.draw(told)
        time.sleep(0.5)


def run(asked: argparse.Namespace) -> int:
    """All of it; gives the exit code. Raises RuntimeError."""
    drill = [
        asked.scenario,
        *("--size", asked.size, "--seed", str(asked.seed), "--speed", str(asked.speed)),
        *("--seconds", str(asked.seconds), "--ramp", str(asked.ramp)),
        *(() if asked.engines is None else ("--engines", str(asked.engines))),
    ]
    shutil.rmtree(asked.out, ignore_errors=True)
    line(f"the stack starts, all of it in {asked.out}; {load()}")
    broken_off = ""
    with contextlib.ExitStack() as left:
        stack = left.enter_context(live(asked.out, drill, PackSettings(), Pace()))
        length = asked.seconds / asked.speed
        timeline = Timeline(sys.stdout, is_live(sys.stdout), time.time(), length)
        try:
            watch(stack, timeline, time.time() + _GRACE * length + 60)
        except (KeyboardInterrupt, TimeoutError) as error:
            broken_off = str(error) or "broken off"
        heard = list(stack.webhook.heard)
        timeline.end()
    truth = json.loads((asked.out / "truth.json").read_text())
    measured = measure(truth, heard, tpot_p99_of(stack.recordings))
    judged = figures(measured, ramp=asked.ramp > 0)
    pace = (len(truth["seconds"]) - 1) / asked.speed
    late = truth["seconds"][-1] - truth["seconds"][0] - pace
    is_judged = asked.speed == 1 and not broken_off and late <= _LATE_RATIO * pace
    result = {
        "scenario": asked.scenario,
        "size": asked.size,
        "seed": asked.seed,
        "ramp_seconds": asked.ramp,
        "speed": asked.speed,
        "seconds": len(truth["seconds"]),
        "late_seconds": late,
        "broken_off": broken_off,
        "load": load(),
        "judged": is_judged,
        "measured": asdict(measured),
        "figures": [_row(each) for each in judged],
        "notifications": [asdict(each) for each in heard if each.receiver in PEOPLE],
        "timeline": timeline.said,
    }
    (asked.out / RESULT).write_text(json.dumps(result, indent=2) + "\n")
    _conclude(result, judged, measured.onset)
    if broken_off:
        return BROKEN_OFF
    return int(is_judged and any(each.met is False for each in judged))


def _row(figure: Figure) -> dict[str, Any]:
    value = None if math.isnan(figure.value) else figure.value
    return {"name": figure.name, "value": value, "unit": figure.unit, "bar": figure.bar, "met": figure.met}


_MILESTONES = {
    "trouble": "first swap-in or repeat preemption",
    "any_page": "first page",
    "page": "first page that names the cause",
    "slow": "TPOT p99 above 2 s",
}


def _conclude(result: dict[str, Any], judged: Sequence[Figure], onset: float | None) -> None:
    for name, words in _MILESTONES.items():
        at = result["measured"][name]
        if onset is not None:
            line(f"{words}: " + ("never" if at is None else f"{at - onset:.0f} s after the onset"))
    if result["measured"]["slow_seconds"]:
        line(f"TPOT p99 above 2 s in {result['measured']['slow_seconds']} seconds in all")
    line(f"the drill was {result['late_seconds']:.1f} s late at the end; {result['load']}")
    for each in judged:
        verdict = each.verdict if result["judged"] else "not judged"
        value = "never" if math.isnan(each.value) else f"{each.value:.4g} {each.unit}".rstrip()
        line(f"{each.name}: {value} ({each.promise}: {verdict})")
    if not result["judged"]:
        line(
            "not judged: rates and stalls are those of the drill only at its own pace, from beginning to end"
        )
    if result["broken_off"]:
        line(f"until then: {result['broken_off']}")


def main() -> int:
    """The command."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    try:
        return run(arguments(sys.argv[1:]))
    except RuntimeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        return BROKEN_OFF


if __name__ == "__main__":
    sys.exit(main())
