"""Every claim that a run is judged by."""

from __future__ import annotations

from tests.real_engine import judge, judge_probe

FIGURES = {**judge.FIGURES, **judge_probe.FIGURES}
