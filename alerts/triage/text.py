"""A report for a terminal of 80 columns: the four steps, and last, where the eye is, the verdict and what to do."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

import click

from alerts.triage.findings import Evidence, Finding
from alerts.triage.numbers import of_signal, seconds
from alerts.triage.report import Report
from exporter.signal import Confidence

WIDTH = 80
_STEP, _PART = 16, 9
_RED, _GREEN, _YELLOW = "red", "green", "yellow"


def text(report: Report) -> str:
    """Styled; ``click.echo`` takes the styles off where there is no terminal."""
    lines = [*_head(report), "", *_steps(report), "", *_verdict(report)]
    return "\n".join(line.rstrip() for line in lines)


def _head(report: Report) -> Iterator[str]:
    look, beside = report.look, report.look.beside
    yield from _wrapped(f"{look.engine}: {report.engine}", 0, 2)
    if look.url not in (look.engine, f"http://{look.engine}/metrics"):
        yield f"  at {look.url}"
    took = f"watched for {seconds(look.seconds)}" if look.own else "not read"
    if beside is None:
        yield f"{took}; no sidecar was asked"
    elif beside.witness is not None:
        called = "" if beside.witness.engine == look.engine else f", which calls it {beside.witness.engine}"
        yield from _wrapped(f"{took}, beside the sidecar at {beside.url}{called}", 0, 2)
    elif beside.answers:
        yield from _wrapped(f"{took}, without the sidecar at {beside.url}: {beside.problem}", 0, 2)
    elif beside.asked_for:
        yield from _wrapped(f"{took}; the sidecar is of no use: {beside.problem}", 0, 2)
    else:
        yield from _wrapped(f"{took}, by itself: no sidecar of it at {beside.url} (--sidecar URL)", 0, 2)
    for problem in look.problems:
        yield from _wrapped(f"not read: {problem}", 0, 2)


def _steps(report: Report) -> Iterator[str]:
    for place, step in enumerate(report.steps, 1):
        word, colon, rest = step.answer.partition(":")
        shown = click.style(word, fg=_YELLOW if step.alarming else None, bold=step.alarming)
        head = f"{place} {step.name}".ljust(_STEP)
        first, *more = _wrapped(f"{word}{colon}{rest}", 0, 0, WIDTH - _STEP)
        yield head + first.replace(word, shown, 1)
        yield from (" " * _STEP + line for line in more)
        for line in step.lines:
            deeper = _STEP + len(line) - len(line.lstrip())
            yield from _wrapped(line.strip(), deeper, deeper + 2)


def _verdict(report: Report) -> Iterator[str]:
    verdict = report.verdict
    finding = verdict.finding
    if finding is None:
        so_far = f", as far as {seconds(report.look.seconds)} can tell" if report.unknown else ""
        yield _labelled("VERDICT", click.style(f"healthy{so_far}", fg=_GREEN, bold=True))
    else:
        name = click.style(verdict.name, fg=_RED, bold=True)
        yield _labelled("VERDICT", f"{name} ({finding.certainty}), by {finding.alert.name}")
        yield from _wrapped(finding.alert.cause.sentence, _PART, _PART)
        if finding.says:
            yield from _wrapped(finding.says, _PART, _PART)
        yield from _parts("because", [*_because(finding)])
    if verdict.others:
        names = ", ".join(_named(each) for each in verdict.others)
        yield from _parts("also", _wrapped(names, 0, 0, WIDTH - _PART))
    if report.unknown:
        known_in = ", ".join(f"{each.what} ({each.seconds} s)" for each in report.unknown)
        yield from _parts("unknown", _wrapped(known_in, 0, 0, WIDTH - _PART))
    wrapped = (line for note in report.next.notes for line in _wrapped(note, 2, 2, WIDTH - _PART))
    yield from _parts("next", [*report.next.commands, *wrapped, report.next.page])


def _named(finding: Finding) -> str:
    return finding.alert.name + ("?" if finding.settles_seconds else "")


def _because(finding: Finding) -> Iterator[str]:
    rows = [(_short(each.name), of_signal(each.name, each.told.value), each) for each in finding.evidence]
    wide = max((len(name) for name, _, _ in rows), default=0)
    values = max((len(value) for _, value, _ in rows), default=0)
    limits = max((len(each.limit) for _, _, each in rows), default=0)
    for name, value, each in rows:
        head = f"{name:{wide}}  {value:>{values}}  {each.limit:{limits}}"
        sure = _sure(each)
        if _PART + len(head) + 2 + len(sure) <= WIDTH:
            yield f"{head}  {sure}"
        else:
            yield head
            yield f"  {sure}"


def _sure(evidence: Evidence) -> str:
    told = evidence.told
    over = f" over {seconds(told.seconds)}" if told.seconds else ""
    words = {Confidence.LOWER_BOUND: "at least", Confidence.LAGGING: "measured late"}
    return f"{words.get(told.confidence, told.confidence.value)}{over}, {told.origin}"


def _short(name: str) -> str:
    """``sequences{state="waiting"}`` as a person says it."""
    bare, _, labels = name.partition("{")
    return " ".join(
        [bare, *(part.partition("=")[2].strip('"') for part in labels.rstrip("}").split(",") if part)]
    )


def _labelled(label: str, line: str) -> str:
    return click.style(label.ljust(_PART), bold=True) + line


def _parts(label: str, lines: Sequence[str]) -> Iterator[str]:
    for place, line in enumerate(lines):
        yield ("" if place else label).ljust(_PART) + line


def _wrapped(line: str, first: int, others: int, width: int = WIDTH) -> list[str]:
    return textwrap.wrap(
        line,
        width,
        initial_indent=" " * first,
        subsequent_indent=" " * others,
        break_on_hyphens=False,
        break_long_words=False,
    )
