"""The first act: a real engine behind a real Envoy is overloaded until the desk has been told, and then all is killed.

It judges nothing: ``engine.json`` holds what was seen. The engine is this run's own and started anew by it, as whoever
runs one would; everything else is ``thrashold stack``'s, which has to bring it back by itself.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.asking import Client
from tests.e2e.kills import Load, killed
from tests.real_engine import envoy, install, serve
from tests.real_engine.install import Installed, Say
from tests.support.stack import RunningStack, running_stack

FILE = "engine.json"
ENGINE = "tiny"
ALERT = "KvCachePressure"
SCRAPE_SECONDS = 5
"""A third of what is usual: what is late by a scrape and an evaluation is half a minute sooner."""
PARTS = ("envoy", "sidecar", "desk", "alertmanager", "prometheus")
_DRIVE = Path(serve.__file__).with_name("drive.py")
_MODEL = Path(serve.__file__).with_name("model.py")
_FLAGS = ("--max-num-seqs", "96")
"""As many as ask: what bounds them is the pool, which sequences of a few blocks keep full to the last twentieth."""
_NO_PLUGINS = {"VLLM_PLUGINS": ""}
_LONGEST_SECONDS = 1800.0
_UP_SECONDS = 240.0


def record(out: Path, say: Say) -> None:
    """Run it and leave its traces in ``out``. Raises ``install.UnavailableError`` where there can be no engine."""
    made, gateway = install.ensure(say), envoy.ensure()
    out.mkdir(parents=True, exist_ok=True)
    model = out / "model"
    subprocess.run([made.python, _MODEL, model], check=True, capture_output=True)
    with ExitStack() as closing:
        say("engine: starting ...")
        engine = serve.start(made, model, out / "engine.log", _FLAGS, _NO_PLUGINS)
        closing.callback(engine.stop)
        say(f"engine: ready after {engine.wait_ready():.0f} s; the stack: starting ...")
        stack = closing.enter_context(
            running_stack(
                out / "stack",
                *("--engine", f"{ENGINE}={engine.url}", "--envoy", "--scrape-seconds", str(SCRAPE_SECONDS)),
                environ={"PATH": f"{gateway.parent}{os.pathsep}{os.environ['PATH']}"},
                seconds=_UP_SECONDS,
            )
        )
        ask = Client(stack)
        closing.callback(ask.close)
        ask.until(lambda: _is_read(ask))
        load = Load(out / "clients.jsonl", _driver(made, stack, out / "clients.jsonl"))
        closing.callback(load.stop)
        told: dict[str, Any] = {"kills": {}, "broke_off": ""}
        try:
            told |= _until_told(ask, say)
            for part in PARTS:
                say(f"{part} is killed")
                told["kills"][part] = killed(part, stack, ask, load)
            told["engine_killed"] = _engine_killed(engine, made, model, out, closing, ask, load, say)
            told |= _at_the_end(ask, told)
        except (RuntimeError, TimeoutError, httpx.HTTPError) as error:
            # what was seen until then is judged all the same
            told["broke_off"] = repr(error)
            say(told["broke_off"])
    told["stack_ended_with"] = stack.process.returncode
    told["said"] = stack.said
    (out / FILE).write_text(json.dumps(told) + "\n", encoding="utf-8")


def _driver(made: Installed, stack: RunningStack, log: Path) -> subprocess.Popen[bytes]:
    log.touch()
    phase = ["pressure", str(_LONGEST_SECONDS), "0", log]
    return subprocess.Popen([made.python, _DRIVE, stack.url("envoy"), *phase])


def _is_read(ask: Client) -> bool:
    return ask.sidecar_says(f'thrashold_source_up{{source="{ENGINE}"}}') == 1.0


def _until_told(ask: Client, say: Say) -> dict[str, Any]:
    """From the first request until the desk has heard of it and has the report."""
    began = time.time()
    say(f"overload, until {ALERT} is at the desk")
    incident = ask.until(lambda: ask.incident_with(ALERT))
    arrived = time.time()
    say(f"{ALERT} is at the desk after {arrived - began:.0f} s; its report is awaited")
    first = ask.report(incident["number"])
    report_at = time.time()
    whole = first if first["end"] >= arrived - 1.0 else ask.report_anew(incident["number"])
    page = ask.get("desk", f"/incidents/{incident['number']}").text
    return {
        "began": began,
        "arrived": arrived,
        "report_at": report_at,
        "report": whole,
        "report_words": ask.get("desk", f"/incidents/{incident['number']}/report.md").text,
        "page_names_it": ALERT in page,
        "incident": ask.incident(incident["number"]),
    }


def _engine_killed(  # noqa: PLR0913, PLR0917 -- who dies, who starts it anew, who sees it
    engine: serve.Engine,
    made: Installed,
    model: Path,
    out: Path,
    closing: ExitStack,
    ask: Client,
    load: Load,
    say: Say,
) -> dict[str, Any]:
    say("the engine's core is killed")
    at = time.time()
    os.kill(engine.core(), signal.SIGKILL)
    engine.process.wait(60.0)
    ask.until(lambda: not _is_read(ask))
    down = time.time()
    again = serve.start(made, model, out / "engine-2.log", _FLAGS, _NO_PLUGINS, engine.port)
    closing.callback(again.stop)
    say(f"the engine is ready again after {again.wait_ready():.0f} s")
    ask.until(lambda: _is_read(ask))
    read = time.time()
    load.answered_since(read)
    return {"at": at, "down": down, "read": read, "answered": time.time()}


def _at_the_end(ask: Client, told: dict[str, Any]) -> dict[str, Any]:
    """What is still known of what was told, once Prometheus has told Alertmanager anew of all that fires."""

    def same() -> bool:
        return ask.firing() <= ask.held()

    ask.until(same)
    ask.report(told["incident"]["number"])
    recorded = ask.recorded(told["began"], time.time(), "generation_tokens_total", "source_up")
    return {"at_the_end": {"incidents": ask.incidents()}, "recorded": recorded}
