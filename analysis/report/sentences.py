"""What happened, in at most five sentences with numbers, each with how sure it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from alerts.causes import Cause
from analysis.cascade.template import Role, Verdict
from analysis.incident.actions import Action
from analysis.incident.annotations import Annotation
from analysis.incident.key_metrics import REQUESTS_HIT, Row
from analysis.incident.measures import FIRST_P99, PACE_P99
from analysis.incident.phase import Boundary, Incident, PhaseName
from analysis.incident.timeline import Entry, Kind
from analysis.incident.unit import duration
from analysis.report.report import Page, Statement
from analysis.report.words import clock, day, listed, lowered
from exporter.signal import Confidence

_ORDER = (Confidence.MEASURED, Confidence.LAGGING, Confidence.LOWER_BOUND, Confidence.ESTIMATE)
_WAITS = (PACE_P99.title, FIRST_P99.title)
_MOST_CONSEQUENCES = 4
_IN_DETAIL = re.compile(r"\(\w+: (at worst .*?)(?:, the line is [^)]*)?\)")
_ORIGINS = 2
_SAME_SECONDS = 15.0
"""A cause that begins so little before its first sign began with it."""
_FLAG = re.compile(r" \(at worst [01], usually [01]\)")
"""What is yes or no has no worst."""


def headline(incident: Incident | None, verdicts: Sequence[Verdict]) -> str:
    """The one line above all."""
    first = verdicts[0] if verdicts else None
    where = f" on {listed(first.affected)}" if first is not None and first.affected else ""
    named = f"{first.cause}{where}" if first is not None else "an incident without a known cause"
    if incident is None:
        return named
    if incident.end is None:
        return f"{named}, since {clock(incident.begin.at)} UTC, and it goes on"
    lasted = duration(incident.end.at - incident.begin.at)
    return f"{named}, {clock(incident.begin.at)} to {clock(incident.end.at)} UTC ({lasted})"


def statements(  # noqa: PLR0913, PLR0917 -- all that sentences are made of
    incident: Incident,
    verdicts: Sequence[Verdict],
    rows: Sequence[Row],
    pages: Sequence[Page],
    actions: Sequence[Action],
    annotations: Sequence[Annotation] = (),
) -> tuple[Statement, ...]:
    """In the order of a story: what, why, for whom, what came of it, how it ended."""
    return (
        _what(incident, verdicts),
        *_why(verdicts),
        *_users(rows),
        *_consequences(verdicts),
        _ended(incident, actions, annotations, pages),
    )


def how_sure(confidences: Sequence[Confidence]) -> tuple[str, str]:
    """The least sure of some signals: a word, and what it says."""
    if not confidences:
        return "measured", Confidence.MEASURED.meaning
    worst = max(confidences, key=_ORDER.index)
    return worst.value.replace("_", " "), worst.meaning


def _what(incident: Incident, verdicts: Sequence[Verdict]) -> Statement:
    begin = incident.begin
    first = verdicts[0] if verdicts else None
    sentence = (
        lowered(first.cause.sentence) if first is not None else "lines were crossed, and no known cause fits"
    )
    since = f"On {day(begin.at)} from {clock(begin.at)} UTC"
    until = " to the end of the history" if incident.end is None else f" to {clock(incident.end.at)}"
    whole = incident.end.at if incident.end is not None else None
    lasted = f" ({duration(whole - begin.at)})" if whole is not None else ""
    where = f", on {listed(first.affected)}" if first is not None and first.affected else ""
    if incident.begins_inside:
        since = f"On {day(begin.at)}, before {clock(begin.at)} UTC already"
    words = f"{since}{until}{lasted}{where}: {sentence}{_dated(first, begin)}."
    if incident.begins_inside:
        return Statement(words, "unknown begin", "the history begins amid it")
    bounds = f"it began between {clock(begin.earliest)} and {clock(begin.latest)}"
    said = f", by {listed(begin.said_by)}" if begin.said_by else ""
    if first is None:
        return Statement(words, "estimate", f"{bounds}{said}")
    return Statement(words, f"{first.certainty} certainty", f"{bounds}{said}; {_judged(first)}")


def _dated(first: Verdict | None, begin: Boundary) -> str:
    """When the cause itself began, where nobody could notice it for a while."""
    if first is None or first.onset is None or begin.at - first.onset <= _SAME_SECONDS:
        return ""
    return f"; the cause itself is dated to {clock(first.onset)}"


def _judged(verdict: Verdict) -> str:
    links = [each for each in verdict.evidence if each.link.role is not Role.AGAINST]
    held = sum(bool(each.held) for each in links)
    watched = sum(each.held is not None for each in links)
    return f"{held} of the {watched} links of {verdict.cause} that were watched were seen"


def _why(verdicts: Sequence[Verdict]) -> Iterator[Statement]:
    """The evidence that weighs most: what is necessary, and what began first."""
    if not verdicts:
        return
    seen = sorted(
        verdicts[0].supporting,
        key=lambda each: (each.link.role is not Role.NECESSARY, each.since or 0.0),
    )[:3]
    told = [each for each in seen if each.words]
    if not told:
        return
    sure, why = how_sure([each.signal.confidence for each in told if each.signal is not None])
    words = " ".join(_plain(each.words) for each in sorted(told, key=lambda each: each.since or 0.0))
    against = verdicts[0].against
    if against:
        why += f"; against it: {lowered(against[0].words)}"
    yield Statement(words, sure, why)


def _plain(words: str) -> str:
    """Evidence without the name of its signal and its line: the table of evidence has them."""
    return _FLAG.sub("", _IN_DETAIL.sub(r"(\1)", words))


def _users(rows: Sequence[Row]) -> Iterator[Statement]:
    by_title = {row.title: row for row in rows}
    parts, confidences = [], []
    for title in _WAITS:
        row = by_title.get(title)
        if row is not None and row.peak.value is not None:
            parts.append(_went(row))
            confidences.append(row.confidence)
    hit = by_title.get(REQUESTS_HIT)
    if hit is not None and hit.peak.value:
        parts.append(f"{hit.words(hit.peak)} requests got no whole answer")
        confidences.append(hit.confidence)
    if parts:
        sure, why = how_sure(confidences)
        yield Statement(
            f"Users: {'; '.join(parts)}.", sure, f"{why}; a percentile is known to its bucket alone"
        )


def _went(row: Row) -> str:
    """From and to; what never left its bucket stayed, as far as anybody can tell."""
    before, peak = row.baseline, row.peak
    if before.bucket is not None and before.bucket == peak.bucket and not peak.is_floor:
        return f"{row.title} stayed within {before.bucket.words}"
    since = f"from {row.words(before)} " if before.value is not None else ""
    return f"{row.title} went {since}to {row.words(peak)}"


def _consequences(verdicts: Sequence[Verdict]) -> Iterator[Statement]:
    """What the first cause brought about, and causes beside it."""
    if len(verdicts) < _ORIGINS:
        return
    first, others = verdicts[0], verdicts[1:]
    came = [each for each in others if first.cause in each.explained_by]
    beside = [each for each in others if each not in came]
    parts = []
    if came:
        parts.append(f"It led to {listed([_since(each) for each in came], _MOST_CONSEQUENCES)}")
    if beside:
        parts.append(
            f"{'beside it' if came else 'Beside it'} there was"
            f" {listed([_since(each) for each in beside], _MOST_CONSEQUENCES)}"
        )
    least = min((each for each in others), key=lambda each: each.confidence)
    yield Statement(
        f"{'; '.join(parts)}.",
        f"{least.certainty} certainty",
        _why_after(first, came),
    )


def _why_after(first: Verdict, came: Sequence[Verdict]) -> str:
    """What makes others its consequences, and where the beginnings that were found don't show that."""
    if not came:
        return f"none of them is what {first.cause} brings about"
    words = f"{len(came)} of them are what {first.cause} brings about"
    onsets = [each.onset for each in came if each.onset is not None]
    if first.onset is None or not (before := [first.onset - at for at in onsets if at < first.onset]):
        return f"{words}, and begin after it"
    return (
        f"{words}; {len(before)} of these seem to begin before it, by {max(before):.0f} s at most: beginnings are"
        " estimates"
    )


def _since(verdict: Verdict) -> str:
    return f"{verdict.cause} ({clock(verdict.onset)})" if verdict.onset is not None else str(verdict.cause)


def _ended(
    incident: Incident, actions: Sequence[Action], annotations: Sequence[Annotation], pages: Sequence[Page]
) -> Statement:
    waking = [each for each in pages if each.wakes]
    told = "no page that can be tried on this history would have come"
    if waking:
        lead = "" if incident.begins_inside else f" ({_later(waking[0].after_seconds)})"
        told = f"{waking[0].name} would have paged at {clock(waking[0].at)}{lead}"
    within = [
        each
        for each in _done(actions, annotations)
        if incident.begin.at <= each.at <= (incident.end.at if incident.end is not None else each.at)
    ]
    first = min(within, key=lambda each: each.at, default=None)
    done = ""
    if first is not None:
        more = f" (and {len(within) - 1} more)" if len(within) > 1 else ""
        did = f"{first.where} {first.words}".strip()
        done = f"; the first thing known to have been done was at {clock(first.at)}: {did}{more}"
    recovery = incident.phase(PhaseName.RECOVERY)
    if incident.end is None:
        over = "it goes on where the history ends"
    elif recovery is not None:
        over = f"from {clock(recovery.begin.at)} on no line was crossed any more"
    else:
        over = f"it was over at {clock(incident.end.at)}"
    return Statement(
        f"{told[0].upper()}{told[1:]}{done}; {over}.",
        "measured",
        "what was done is what engines' own series show, and what was noted",
    )


def _done(actions: Sequence[Action], annotations: Sequence[Annotation]) -> Iterator[Entry]:
    yield from (Entry(each.at, Kind.ACTION, each.where, each.words) for each in actions)
    yield from (Entry(each.at, Kind.ACTION, each.where, each.text) for each in annotations if each.is_action)


def _later(after: float) -> str:
    return (
        f"{duration(after)} after the first sign"
        if after >= 0
        else f"{duration(-after)} before the first sign"
    )


def answerless(first: Cause | None) -> str:
    """The headline where no line was crossed."""
    return "Nothing unusual" if first is None else f"{first}, and no line that hurts was crossed"
