"""A report as a page in one file: the answer first, then the figures, then what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analysis.cascade.ranking import Answer
from analysis.cascade.template import Role
from analysis.frame import Frame
from analysis.incident.timeline import minutes
from analysis.incident.unit import UNKNOWN, duration
from analysis.page.charts import MOST_POINTS, charts_html
from analysis.page.document import Block, Tone, document, heading, listing, note, paragraph, table
from analysis.report.action_items import LATER, NOW
from analysis.report.charts import charts
from analysis.report.report import CauseFound, Episode, Metric, Proof, Report
from analysis.report.words import clock, day, listed
from exporter.recorder_times import shown
from exporter.signal import Confidence

_METRICS = (
    "Before and after: medians of three minutes. At worst: the worst instant. Of a percentile nothing but its bucket is"
    " measured: the value in front is interpolated, and > marks a floor."
)
_NOTHING = "No line was crossed that hurts anybody, and no known cause was found."


def page(report: Report, frame: Frame) -> str:
    """The whole page, HTML. ``frame``: what the charts are drawn from."""
    blocks: list[Block] = []
    if not report.episodes:
        blocks.append(
            note(_NOTHING if report.answer is Answer.NOTHING_UNUSUAL else report.headline, Tone.FINE)
        )
    blocks += [note(f"What this can't see: {each}") for each in report.caveats]
    for place, episode in enumerate(report.episodes):
        if len(report.episodes) > 1:
            blocks.append(heading(f"Incident {place + 1}: {episode.headline}"))
        blocks += _episode(episode, frame, place, MOST_POINTS // len(report.episodes))
    if report.untested:
        blocks += [
            heading("Alerts that can't be tried on this history"),
            paragraph(
                f"{len(report.untested)} alerts are PromQL, or look at what isn't recorded; they may have paged."
            ),
            listing(report.untested),
        ]
    return document(_title(report), blocks, _under(report))


def _title(report: Report) -> str:
    return report.headline if len(report.episodes) < 2 else f"{len(report.episodes)} incidents"  # noqa: PLR2004 -- several


def _under(report: Report) -> tuple[str, ...]:
    span = f"{shown(report.start)} to {shown(report.end)} ({duration(report.end - report.start)})"
    return (f"{report.source}: {span}, a value each {report.step_seconds:g} s. All times are UTC.",)


def _episode(episode: Episode, frame: Frame, place: int, most_points: int) -> Iterator[Block]:
    yield heading("What happened")
    yield listing([each.words for each in episode.statements], ordered=True)
    for each in episode.notes:
        yield note(each, Tone.ALARM)
    yield from _first_step(episode)
    yield heading("Key metrics")
    yield paragraph(_METRICS)
    yield _metrics(episode)
    yield heading("Why")
    yield from _causes(episode.causes)
    yield heading("The chain on one time axis")
    drawn = charts(frame, episode)
    if drawn:
        yield charts_html(drawn, name=f"chain-{place}", most_points=most_points)
    else:
        yield paragraph("Nothing that could be drawn is known.")
    yield heading("What would have paged")
    yield from _pages(episode)
    yield heading("Phases")
    yield _phases(episode)
    yield heading("Timeline")
    yield _timeline(episode)
    if episode.disagreements:
        yield heading("Figures beside each other")
        yield listing(
            f"{each.title}{' (they disagree)' if each.contradicts else ''}: {each.words}"
            for each in episode.disagreements
        )
    if episode.actions:
        yield heading("To do")
        yield listing(
            f"{each.when}, against {each.cause}: {each.words} How: {listed(each.runbooks)}"
            for each in episode.actions
        )
    consequences = [each for each in episode.causes if each.explained_by]
    if consequences:
        yield heading("Evidence for what came of it")
        for cause in consequences:
            yield from _evidence_of(cause)
    yield heading("How sure each statement is")
    yield listing((f"{each.how_sure}: {each.why}." for each in episode.statements), ordered=True)


def _first_step(episode: Episode) -> Iterator[Block]:
    """What somebody who reads no further should have read."""
    wanted = NOW if episode.end is None else LATER
    first = next((each for each in episode.actions if each.when == wanted), None)
    if first is not None:
        lead = "Now" if episode.end is None else "So that it doesn't come again"
        tone = Tone.ALARM if episode.end is None else Tone.PLAIN
        yield note(f"{lead}: {first.words} How: {listed(first.runbooks)}", tone)


def _metrics(episode: Episode) -> Block:
    rows = [
        (_sure(each), each.baseline.words, each.peak.words, each.after.words, each.factor)
        for each in episode.metrics
    ]
    return table(("metric", "before", "at worst", "after", "times"), rows)


def _sure(metric: Metric) -> str:
    """What isn't measured says so."""
    if metric.confidence is Confidence.MEASURED:
        return metric.title
    return f"{metric.title} ({metric.confidence.value.replace('_', ' ')})"


def _causes(causes: Sequence[CauseFound]) -> Iterator[Block]:
    if not causes:
        yield paragraph("No known cause fits. The lines that were crossed are in the timeline.")
        return
    yield table(
        ("cause", "since", "how sure", "comes of"),
        [
            (
                each.cause.value,
                clock(each.onset) if each.onset is not None else UNKNOWN,
                f"{each.certainty}; {each.score:.0%} seen",
                listed([one.value for one in each.explained_by]) or "itself",
            )
            for each in causes
        ],
    )
    for each in causes:
        if not each.explained_by:
            yield from _evidence_of(each)


def _evidence_of(cause: CauseFound) -> Iterator[Block]:
    where = f" On {listed(cause.affected)}." if cause.affected else ""
    yield heading(f"Evidence for {cause.cause}", 3)
    yield paragraph(f"{cause.sentence}{where}")
    yield listing(_evidence(proof) for proof in cause.evidence)
    for caveat in cause.caveats:
        yield note(caveat)


def _evidence(proof: Proof) -> str:
    if proof.held is None:
        return f"Not watched: {proof.words}"
    sure = f" ({proof.confidence.value.replace('_', ' ')})" if proof.confidence is not None else ""
    if proof.held and proof.since is not None and proof.until is not None:
        against = "Against it, " if proof.role == Role.AGAINST else ""
        return f"{against}{clock(proof.since)} to {clock(proof.until)}: {proof.words}{sure}"
    return f"{proof.words}{sure}"


def _phases(episode: Episode) -> Block:
    rows = []
    for each in episode.phases:
        begin = each.begin
        late, early = begin.latest - begin.at, begin.at - begin.earliest
        spread = f" (-{early:.0f} s, +{late:.0f} s)" if begin.uncertainty_seconds else ""
        lasts = duration(each.end.at - begin.at) if each.end is not None else "goes on"
        says = listed(begin.said_by, 5) or begin.note or each.name.meaning
        rows.append((each.name.value, f"{clock(begin.at)}{spread}", lasts, says))
    return table(("phase", "begins", "lasts", "who says so"), rows)


def _pages(episode: Episode) -> Iterator[Block]:
    if not episode.pages:
        yield paragraph("Nobody would have been told by the alerts that can be tried on this history.")
        return
    yield table(
        ("at", "alert", "first sign", "runbook"),
        [
            (
                clock(each.at),
                f"{each.name} ({'wakes somebody' if each.wakes else each.severity})",
                f"{duration(abs(each.after_seconds))} {'before' if each.after_seconds >= 0 else 'after'}",
                each.runbook,
            )
            for each in episode.pages
        ],
    )


def _timeline(episode: Episode) -> Block:
    rows = []
    for minute, entries in minutes(episode.timeline):
        for place, each in enumerate(entries):
            words = f"{each.where}: {each.words}" if each.where else each.words
            at = clock(minute)[:5] if not place else ""
            rows.append((f"{at}{clock(each.at)[5:]}", f"{each.kind.value}: {words}"))
    return table(("time", "what"), rows, caption=f"{day(episode.begin)}, minute by minute.")
