"""All packs over one run: evaluated once by a real Prometheus, and kept beside it while code and rules are the same."""

from __future__ import annotations

import hashlib
import os
import pickle
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from alerts.alertmanager import configuration
from alerts.pack_settings import PackSettings
from tests.evaluation.evaluating import EVALUATION_SECONDS, Evaluated, over
from tests.evaluation.keeping import evaluated_once
from tests.evaluation.paging import Notification, notifications
from tests.evaluation.playing import ROOT, Case, play
from tests.evaluation.scoreboard_peers import Peer, peers
from tests.evaluation.scoreboard_raw import raw
from tests.evaluation.scrapes import SCRAPE_SECONDS, write_scrapes

OURS = "thrashold"
_PACK = "pack"
_EVALUATES = ("analysis/firing.py", "tests/evaluation/evaluating.py", "tests/evaluation/scoreboard_runs.py")
_PAGES = ("tests/evaluation/paging.py", "tests/evaluation/live_webhook.py")
_NO_LONGER_THERE = f"--query.lookback-delta={1000 * SCRAPE_SECONDS + 500:.0f}ms"
"""Blocks hold no staleness markers; with this a series of a page that isn't answered is gone all the same."""


@dataclass(frozen=True, slots=True)
class Run:
    """A case with what is true of it, and what fired of each pack."""

    case: Case
    truth: Mapping[str, Any]
    evaluated: Mapping[str, Evaluated]


def run(case: Case) -> Run:
    """Of a case, from what is kept or played and evaluated now."""
    return Run(case, play(case).truth, {OURS: evaluated_once(case), **_peers_evaluated(case)})


def _peers_evaluated(case: Case) -> dict[str, Evaluated]:
    packs = peers()
    dump, span = raw(case)
    rules = [
        {**rule, "labels": {**rule["labels"], _PACK: peer.name}} for peer in packs for rule in peer.rules
    ]
    told = repr((rules, dump.name, span)).encode() + _source(_EVALUATES)
    file = dump.parent / f"peers-{hashlib.sha256(told).hexdigest()[:12]}.pickle"

    def evaluated() -> dict[str, Evaluated]:
        with tempfile.TemporaryDirectory(prefix="scoreboard-") as folder:
            sidecar = Path(folder) / "sidecar.om"
            write_scrapes(play(case).recording, sidecar, case.setting.seed * 7.3 % SCRAPE_SECONDS)
            offset = case.setting.seed * 4.1 % EVALUATION_SECONDS
            found = over(rules, [dump, sidecar], span, offset, arguments=[_NO_LONGER_THERE])
        return {peer.name: _of(peer, found) for peer in packs}

    kept: dict[str, Evaluated] = _kept(file, evaluated)
    return kept


def _of(peer: Peer, found: Evaluated) -> Evaluated:
    own = [one for one in found.fired if one.labels[_PACK] == peer.name]
    plain = [
        replace(one, labels={key: value for key, value in one.labels.items() if key != _PACK}) for one in own
    ]
    return Evaluated(plain, found.start, found.end)


def heard(runs: Sequence[Run]) -> dict[tuple[str, str], list[Notification]]:
    """What people got, by pack and title: all that isn't kept through one Alertmanager at once, each as a cluster."""
    files = {(pack, each.case.title): _heard_file(each, pack) for each in runs for pack in each.evaluated}
    cases = {
        f"{pack}: {each.case.title}": each.evaluated[pack]
        for each in runs
        for pack in each.evaluated
        if not files[pack, each.case.title].is_file()
    }
    got = notifications(cases) if cases else {}
    return {
        (pack, title): _kept(file, partial(got.__getitem__, f"{pack}: {title}"))
        for (pack, title), file in files.items()
    }


def _heard_file(each: Run, pack: str) -> Path:
    fired = [(one.alert, sorted(one.labels.items()), one.episode) for one in each.evaluated[pack].fired]
    told = repr((fired, each.evaluated[pack].start, each.evaluated[pack].end, configuration(PackSettings())))
    digest = hashlib.sha256(told.encode() + _source(_PAGES)).hexdigest()[:12]
    return play(each.case).recording.parent / f"heard-{pack}-{digest}.pickle"


def _kept(file: Path, make: Any) -> Any:  # noqa: ANN401 -- what was pickled, whatever it is
    if not file.is_file():
        part = file.with_suffix(f".{os.getpid()}")
        part.write_bytes(pickle.dumps(make()))
        part.replace(file)
    return pickle.loads(file.read_bytes())  # noqa: S301 -- our own file, written above


def _source(names: Sequence[str]) -> bytes:
    return b"".join((ROOT / name).read_bytes() for name in names)
