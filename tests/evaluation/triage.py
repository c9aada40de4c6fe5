"""Verdicts of ``thrashold triage`` on every scenario: ``python -m tests.evaluation.triage [docs/triage.md] [NAME...]``.

Each small scenario is played to a moment before its trouble and to its peak, and from there on served, a second a read.
The command runs as a process of its own, beside a sidecar's page, by the engine alone, and alone for over a minute.
With a page, the table in it is replaced. Takes some 20 minutes on two cores.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from alerts.causes import Cause
from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.setting import Setting
from tests.evaluation.triage_stage import Stage, played, serving

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, str(ROOT / "thrashold.py"), "triage", "--json")
BEGIN, END = "<!-- verdicts: begin -->", "<!-- verdicts: end -->"
JOBS = 3
SHORT_SECONDS, LONG_SECONDS = 8, 70
CALM_BEFORE_SECONDS = 20
WAIT = "65"
_UNREADABLE = 2
"""The command's exit code."""

PEAKS: Mapping[str, int] = {
    "benign-day": 300,
    "collective-slow": 560,
    "engine-deadlocked": 330,
    "engine-frozen": 270,
    "engine-restarts": 570,  # it is up for good after its fourth death
    "gateway-breaker": 330,
    "gateway-slow": 350,
    "gateway-too-tight": 330,
    "gpu-lost": 300,
    "incident": 450,
    "incident-pages": 450,
    "incident-swap-full": 420,  # before its engines die of it
    "kv-leak": 585,  # its load has been gone for over two minutes
    "long-prompts": 550,  # of five minutes of those that finished
    "metric-rename": 400,
    "offload-thrash": 400,  # outlasts the load that brought it about
    "orphans": 400,
    "overload": 350,
    "pcie-downgraded": 330,
    "pcie-other-tenant": 330,
    "peak": 400,
    "prefill-blocking": 265,
    "prefix-collapse": 330,
    "rank-imbalance": 500,
    "recompute-thrash": 350,  # outlasts the load that brought it about
    "recompute-unreserved": 350,
    "retry-storm": 480,  # a burst is overload until clients have come again
    "sidecar-blind": 330,
    "tail-waste": 170,
}
"""The second of a small run at which its trouble stands highest."""
ELSEWHERE = frozenset(
    {
        Cause.COLLECTIVE_SLOW,
        Cause.ENGINE_RESTARTS,
        Cause.GATEWAY_BREAKER,
        Cause.GATEWAY_SLOW,
        Cause.GATEWAY_TOO_TIGHT,
        Cause.GPU_LOST,
        Cause.ORPHANS,
        Cause.PCIE_DOWNGRADED,
        Cause.PCIE_OTHER_TENANT,
        Cause.RETRY_STORM,
        Cause.SIDECAR_BLIND,
    }
)
"""Causes that no page of an engine tells: of GPUs, of gateways, of what was before it began anew."""


@dataclass(frozen=True, slots=True)
class Told:
    """What one run of the command said. ``seconds``: from its start to its end, the interpreter's among them."""

    verdict: str
    certainty: str
    code: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.verdict}?" if self.certainty == "possible" else self.verdict


@dataclass(frozen=True, slots=True)
class Row:
    """Of one scenario: before its trouble beside a sidecar, and at its peak in three ways."""

    scenario: str
    cause: str
    before: Told
    beside: Told
    alone: Told
    longer: Told

    @property
    def expected(self) -> str:
        """The right verdict."""
        return self.cause or "healthy"

    @property
    def faults(self) -> list[str]:
        """What is wrong with it."""
        found = [] if self.before.verdict == "healthy" else [f"before: {self.before}"]
        if self.beside.verdict != self.expected:
            found.append(f"beside a sidecar: {self.beside}")
        return found


def run(name: str) -> Row:
    """Play a scenario and ask."""
    scenario, setting = SCENARIOS[name], Setting()
    scene = scenario.scene(setting)
    peak = PEAKS[name]
    onset = scene.episodes[0].onset_seconds if scene.episodes else float(peak - SHORT_SECONDS)
    engine = scene.episodes[0].affected[0] if scene.episodes else scene.names[0]
    calm = round(onset) - CALM_BEFORE_SECONDS
    spans = {
        at: range(at, min(at + long, scene.seconds))
        for at, long in ((calm, SHORT_SECONDS), (peak, LONG_SECONDS))
    }
    wanted = frozenset(place for span in spans.values() for place in span)
    pages = played(scene, setting.seed, wanted)
    with serving() as stage:
        stage.show(pages[place] for place in spans[calm])
        (before,) = _asked(stage, engine, [True], "")
        stage.show(pages[place] for place in spans[peak])
        beside, short, long = _asked(stage, engine, [True, False, False], WAIT)
    return Row(name, scenario.cause.value if scenario.cause else "", before, beside, short, long)


def _asked(stage: Stage, engine: str, by_sidecar: Sequence[bool], wait: str) -> list[Told]:
    """All at a time, each a reader of its own; the last one waits, where ``wait`` is told."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("THRASHOLD_")}
    began, running = time.monotonic(), []
    for place, beside in enumerate(by_sidecar):
        reader = f"reader-{place}"
        sidecar = stage.sidecar_url(reader) if beside else "none"
        command = [*COMMAND, stage.engine_url(engine, reader), "--sidecar", sidecar, "--name", engine]
        command += ["--wait", wait] if wait and place == len(by_sidecar) - 1 else []
        running.append(
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        )
    told = []
    for process in running:
        out, err = process.communicate(timeout=300)
        if process.returncode not in {0, 1, 2} or not out:
            raise RuntimeError(err.decode())
        said = json.loads(out)
        verdict = said.get("verdict") or "no answer"
        told.append(Told(verdict, said.get("certainty") or "", process.returncode, time.monotonic() - began))
    return told


def table(rows: Sequence[Row]) -> str:
    """For the docs."""
    lines = [
        "| scenario | before | at its peak, beside a sidecar | by the engine alone | alone, `--wait 65` |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        mark = "" if not row.faults else " **wrong**"
        alone = f"{_alone(row, row.alone)} | {_alone(row, row.longer)}"
        lines.append(f"| {row.scenario} | {row.before} | {row.beside}{mark} | {alone} |")
    right = sum(not row.faults for row in rows)
    lines += ["", f"Right before the trouble and beside a sidecar: {right} of {len(rows)}."]
    return "\n".join(lines)


def _alone(row: Row, told: Told) -> str:
    if told.code == _UNREADABLE:
        return "can't be read"
    if told.verdict == row.expected:
        return str(told)
    return f"{told} (not told by an engine)" if row.cause in ELSEWHERE else f"{told} (not yet known)"


def main(arguments: Sequence[str]) -> int:
    """Run, print, and put the table into the page."""
    page = next((Path(each) for each in arguments if each.endswith(".md")), None)
    names = [each for each in arguments if each in SCENARIOS] or list(SCENARIOS)
    rows = []
    with ProcessPoolExecutor(JOBS) as pool:
        for row in pool.map(run, names):
            rows.append(row)
            print(json.dumps(asdict(row)), *row.faults, file=sys.stderr, flush=True)  # noqa: T201
    made = table(rows)
    print(made)  # noqa: T201
    if page is not None:
        before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        page.write_text(f"{before}{BEGIN}\n\n{made}\n\n{END}{after}", encoding="utf-8")
    return int(any(row.faults for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
