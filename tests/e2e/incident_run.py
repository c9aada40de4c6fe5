"""The second act: the drill's incident, from its onset to the page and the report, several times as fast as life.

Only the drill's own clock is fast. Sidecar, Prometheus, rules, Alertmanager and desk go by the real one, with nothing
of theirs scaled: an alert that waits for 15 s waits for 15 s. It judges nothing: ``incident.json`` holds what was
seen, beside the drill's ``truth.json``.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

from tests.e2e.asking import Client
from tests.real_engine.install import Say
from tests.support.stack import running_stack

FILE, TRUTH, RECORDED = "incident.json", "truth.json", "recorded.om"
SCENARIO, ALERT = "incident", "KvSequencesSwapped"
SPEED = 5.0
"""What is swapped out for seven minutes of the drill is so for 80 s, twice as long as the page takes."""
SCRAPE_SECONDS = 5
SECONDS = 3600
"""Of the drill: none is begun anew before the end, as slow as the machine may be."""
HELD_SECONDS = 10.0
"""So long it goes on once there is a page; numbers are compared until then."""
COUNTERS = ("preemptions_total", "gateway_requests_total")
GAUGES = ("sequences", "kv_usage_ratio")
_UP_SECONDS = 240.0


def record(out: Path, say: Say) -> None:
    """Run it and leave its traces in ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    folder = out / "stack"
    say(f"the drill's {SCENARIO}, {SPEED:g} times as fast as life, until {ALERT} is at the desk")
    with running_stack(
        folder,
        *("--drill", SCENARIO, f"--drill-option=--speed={SPEED:g}", f"--drill-option=--seconds={SECONDS}"),
        *("--scrape-seconds", str(SCRAPE_SECONDS)),
        seconds=_UP_SECONDS,
    ) as stack:
        ask = Client(stack)
        began = time.time()
        incident = ask.until(lambda: ask.incident_with(ALERT))
        arrived = time.time()
        say(f"{ALERT} is at the desk after {arrived - began:.0f} s")
        time.sleep(HELD_SECONDS)
        end = time.time()
        recorded = ask.recorded(began, end, *COUNTERS, *GAUGES)
        scraped = {name: ask.series(f"thrashold_{name}", began, end) for name in (*COUNTERS, *GAUGES)}
        ask.report(incident["number"])
        report_at = time.time()
        report = ask.report_anew(incident["number"])
        told = {
            "began": began,
            "arrived": arrived,
            "end": end,
            "report_at": report_at,
            "incident": ask.incident(incident["number"]),
            "report": report,
            "report_words": ask.get("desk", f"/incidents/{incident['number']}/report.md").text,
            "scraped": scraped,
        }
        (out / RECORDED).write_text(recorded, encoding="utf-8")
        ask.close()
    shutil.copyfile(folder / "drill" / TRUTH, out / TRUTH)
    (out / FILE).write_text(json.dumps(told) + "\n", encoding="utf-8")
