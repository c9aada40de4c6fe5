"""Draws the boards with Grafana's own components over a real Prometheus: ``make render``, into docs/img.

Runs a drill unless ``--from FOLDER`` has what one wrote; ``--at HH:MM`` moves the end of what is looked at.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import http.server
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

from alerts.pack_settings import PackSettings
from dashboards.catalogue import boards
from dashboards.provisioning import board_file
from tests.dashboards import browser_tools
from tests.dashboards.past import record
from tests.support.prometheus import serving
from tests.support.scraped import Scraped

IMAGES = browser_tools.ROOT / "docs" / "img"
_SITE = browser_tools.HOME / "site"
_WIDTH, _UNIT, _HEAD = 1600, 38, 140
_SCRAPE = 15.0


@dataclass(frozen=True)
class Look:
    """A scenario, how long of it is shown, and until when; None: to the middle of the trouble, or to the end."""

    scenario: str
    minutes: float
    at: str | None = None


LOOKS = {"incident": Look("incident-pages", 15), "peak": Look("peak", 8)}


def main() -> int:
    """Draws what is asked for; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.dashboards.render", description=__doc__)
    parser.add_argument("looks", nargs="*", metavar="LOOK", help=f"of {', '.join(LOOKS)}; all by default")
    parser.add_argument("--from", dest="folder", type=Path, help="what `thrashold drill run` wrote")
    parser.add_argument("--at", help="HH:MM of the drill, UTC")
    parser.add_argument("--minutes", type=float, help="how much before it is shown")
    given = parser.parse_args()
    unknown = sorted(set(given.looks) - set(LOOKS))
    if unknown:
        parser.error(f"no look {', '.join(unknown)}; there are {', '.join(LOOKS)}")
    browser_tools.install()
    _build()
    for name in given.looks or LOOKS:
        look = LOOKS[name]
        look = Look(look.scenario, given.minutes or look.minutes, given.at or look.at)
        with tempfile.TemporaryDirectory() as scratch:
            _draw(name, look, given.folder, Path(scratch))
    return 0


def _build() -> None:
    (_SITE / "boards").mkdir(parents=True, exist_ok=True)
    shutil.copy(browser_tools.SOURCES / "index.html", _SITE)
    for name, board in boards(PackSettings()).items():
        (_SITE / "boards" / f"{name}.json").write_text(board_file(board.to_json()), encoding="utf-8")
    sources = browser_tools.SOURCES
    browser_tools.node(sources / "build.cjs", sources / "app.jsx", _SITE / "app.js")


def _draw(name: str, look: Look, folder: Path | None, scratch: Path) -> None:
    run = folder or _drilled(look.scenario, scratch / "drill")
    kept = Scraped()
    kept.add_recording(run / "metrics.om", _SCRAPE, cluster="prod", instance="sidecar:9807", job="thrashold")
    first, last = kept.span()
    record(kept, scratch, first, last)
    kept.write(scratch / "scraped.om")
    end = _end(run, look, last)
    with serving(scratch / "scraped.om", scratch) as prometheus, _site() as url:
        for path in sorted((_SITE / "boards").glob("*.json")):
            board = json.loads(path.read_text(encoding="utf-8"))
            bottom = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in board["panels"])
            asked = {
                "board": path.stem,
                "prometheus": prometheus.url,
                "from": int((end - look.minutes * 60) * 1000),
                "to": int(end * 1000),
                "engine": "engine-0" if path.stem == "worker" else "$__all",
            }
            IMAGES.mkdir(parents=True, exist_ok=True)
            picture = IMAGES / f"{path.stem}-{name}.png"
            browser_tools.node(
                browser_tools.SOURCES / "shot.cjs",
                shutil.which("chromium") or "chromium",
                picture,
                str(_WIDTH),
                str(bottom * _UNIT + _HEAD),
                f"{url}/?{urlencode(asked)}",
            )
            sys.stdout.write(f"{picture}\n")


def _drilled(scenario: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "thrashold", "drill", "run", scenario, "--out", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=1200)
    return folder


def _end(run: Path, look: Look, last: float) -> float:
    truth = json.loads((run / "truth.json").read_text(encoding="utf-8"))
    if look.at is not None:
        hour, minute = map(int, look.at.split(":"))
        return datetime.fromtimestamp(last, UTC).replace(hour=hour, minute=minute, second=0).timestamp()
    onset, end = truth["onset"], truth["end"]
    return last if onset is None else float(onset + end) / 2


@contextlib.contextmanager
def _site() -> Iterator[str]:
    handler = functools.partial(_Quiet, directory=str(_SITE))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_told: object) -> None:
        """Says nothing."""


if __name__ == "__main__":
    sys.exit(main())
