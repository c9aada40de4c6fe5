"""The runbook's four questions, one file each: what is known is said in numbers, and what isn't is said too."""

from __future__ import annotations

from collections.abc import Callable

from alerts.thresholds import Thresholds
from alerts.triage.look import Look
from alerts.triage.steps.backpressure import backpressure
from alerts.triage.steps.memory import memory
from alerts.triage.steps.prompts import prompts
from alerts.triage.steps.step import Step
from alerts.triage.steps.swap import swap

STEPS: tuple[Callable[[Look, Thresholds], Step], ...] = (memory, backpressure, prompts, swap)
"""In the runbook's order."""
