"""What the pack makes of a run, kept beside it for as long as the rules and how they are evaluated are the same."""

from __future__ import annotations

import hashlib
import os
import pickle
from functools import lru_cache

from alerts.pack_settings import PackSettings
from alerts.render import rule_file
from tests.evaluation.evaluating import Evaluated, evaluate
from tests.evaluation.playing import ROOT, Case, play

_EVALUATES = ("analysis/firing.py", "tests/evaluation/evaluating.py", "tests/evaluation/scrapes.py")


def evaluated_once(case: Case) -> Evaluated:
    """Of a case, from what is kept or evaluated now."""
    run = play(case)
    file = run.recording.parent / f"evaluated-{_rules()}.pickle"
    if not file.is_file():
        found = evaluate(run.recording, case.setting.seed)
        part = file.with_suffix(f".{os.getpid()}")
        part.write_bytes(pickle.dumps(found))
        part.replace(file)
    kept: Evaluated = pickle.loads(file.read_bytes())  # noqa: S301 -- our own file, written above
    return kept


@lru_cache(maxsize=1)
def _rules() -> str:
    digest = hashlib.sha256(rule_file(PackSettings()).encode())
    for name in _EVALUATES:
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()[:12]
