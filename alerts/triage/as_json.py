"""A report for programs: the same, in base units, by the full names of signals."""

from __future__ import annotations

import json
from typing import Any

from alerts.triage.findings import Finding
from alerts.triage.report import Report


def as_json(report: Report) -> str:
    """One object. ``null``: not known."""
    return json.dumps(_told(report), indent=2)


def failure(problem: str) -> str:
    """Of an engine that can't be looked at."""
    return json.dumps({"error": problem}, indent=2)


def _told(report: Report) -> dict[str, Any]:
    look, verdict = report.look, report.verdict
    finding, beside = verdict.finding, look.beside
    return {
        "verdict": verdict.name,
        "certainty": finding.certainty.value if finding else None,
        "exit_code": verdict.exit_code,
        "finding": _finding(finding) if finding else None,
        "others": [_finding(each) for each in verdict.others],
        "engine": {
            "name": look.engine,
            "url": look.url,
            "what": report.engine,
            "failure": look.failure or None,
        },
        "watched_seconds": look.seconds,
        "sidecar": None
        if beside is None
        else {"url": beside.url, "used": beside.witness is not None, "problem": beside.problem or None},
        "gateways": [{"name": each.gateway, "kind": each.kind} for each in look.gateways],
        "problems": list(look.problems),
        "steps": [
            {"name": step.name, "answer": step.answer, "lines": list(step.lines), "values": dict(step.values)}
            for step in report.steps
        ],
        "unknown": [{"what": each.what, "seconds": each.seconds} for each in report.unknown],
        "next": {
            "page": report.next.page,
            "commands": list(report.next.commands),
            "notes": list(report.next.notes),
        },
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "alert": finding.alert.name,
        "cause": finding.alert.cause.value,
        "severity": finding.alert.severity.value,
        "certainty": finding.certainty.value,
        "says": finding.says or finding.alert.meaning,
        "evidence": [
            {
                "signal": each.name,
                "value": each.told.value,
                "operator": each.operator or None,
                "bound": each.bound,
                "confidence": each.told.confidence.value,
                "origin": each.told.origin.value,
                "over_seconds": each.told.seconds,
            }
            for each in finding.evidence
        ],
    }
